// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// BenchmarkProxy compares the model proxy with a httputil.ReverseProxy that does
// nothing, over bodies with an image and with preflight on. What client and
// upstream take is measured without a proxy and taken off. The metrics are the CPU
// time of both proxies, its ratio, and by how much the 99th percentile of a
// request's time is over the other's.
func BenchmarkProxy(b *testing.B) {
	for _, size := range []int{1 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) { benchmarkProxy(b, size) })
	}
}

func benchmarkProxy(b *testing.B, size int) {
	w := newWorld(b)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(fmt.Appendf(nil, `{"id":"c1","choices":[{"message":{"content":"%0900d"}}]}`, 7))
	}))
	b.Cleanup(plain.Close)
	w.publish(func(doc *router.Document) {
		withProxy(doc)
		doc.Providers[0].Endpoints[0].URL = plain.URL + "/v1"
	})
	cfg := w.config()
	s, err := start(cfg, newLogger(io.Discard, slog.LevelInfo))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.shutdown(time.Second) })
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	b.Cleanup(client.CloseIdleConnections)
	ways := []*way{{url: plain.URL}, {url: doingNothing(b, plain.URL)}, {url: s.url("")}}
	body := bodyOf(b, size)
	for _, to := range ways {
		to.call(b, client, body) // opens the connections
		to.cpu, to.took = 0, nil
	}
	for b.Loop() {
		for _, to := range ways {
			to.call(b, client, body)
		}
	}
	direct, nothing, ours := ways[0].perCall(), ways[1].perCall(), ways[2].perCall()
	b.ReportMetric(float64(nothing-direct)/1e3, "reverse-cpu-µs")
	b.ReportMetric(float64(ours-direct)/1e3, "proxy-cpu-µs")
	b.ReportMetric(float64(ours-direct)/float64(nothing-direct), "cpu-ratio")
	b.ReportMetric(float64(ways[2].p99()-ways[1].p99())/1e3, "added-p99-µs")
	b.ReportMetric(0, "ns/op")
}

// bodyOf is a request of about size bytes with one image, which takes nearly all
// of them.
func bodyOf(b *testing.B, size int) []byte {
	side := 8
	for {
		img := image.NewGray(image.Rect(0, 0, side, side))
		noise := rand.New(rand.NewPCG(1, uint64(side)))
		for i := range img.Pix {
			img.Pix[i] = byte(noise.Uint32())
		}
		var out bytes.Buffer
		if err := png.Encode(&out, img); err != nil {
			b.Fatal(err)
		}
		body := fmt.Appendf(nil, `{"model":"eye-1","messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`,
			base64.StdEncoding.EncodeToString(out.Bytes()))
		if len(body) >= size {
			return body
		}
		side += 1 + side/20
	}
}

// way is one of the ways to the upstream that are compared.
type way struct {
	url  string
	cpu  time.Duration
	took []time.Duration
}

// call sends some requests in a row, so that all ways take turns.
func (to *way) call(b *testing.B, client *http.Client, body []byte) {
	before := cpuTime(b)
	for range 20 {
		began := time.Now()
		resp, err := client.Post(to.url+"/openai/v1/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("status %d, error %v: %s", resp.StatusCode, err, answer)
		}
		_ = resp.Body.Close()
		to.took = append(to.took, time.Since(began))
	}
	to.cpu += cpuTime(b) - before
}

func (to *way) perCall() time.Duration { return to.cpu / time.Duration(len(to.took)) }

func (to *way) p99() time.Duration {
	slices.Sort(to.took)
	return to.took[len(to.took)*99/100]
}

// cpuTime is the processor time that this process has taken.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// doingNothing starts a ReverseProxy.
func doingNothing(b *testing.B, to string) string {
	target, err := url.Parse(to)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{}
	s := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	b.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	return s.URL
}
