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
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/measure"
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
	body := bodyOf(b, size)
	measure.Proxy(b, client, plain.URL, s.url(""), func(url string) (*http.Request, error) {
		req, err := http.NewRequest(http.MethodPost, url+"/openai/v1/chat/completions", bytes.NewReader(body))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
		}
		return req, err
	})
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
