// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// burst is how many requests go one way before the next way has its turn, so that
// all ways are measured under the same conditions.
const burst = 20

// way is one of the ways to the upstream that are compared.
type way struct {
	url  string
	cpu  time.Duration
	took []time.Duration
}

// BenchmarkPassing compares the proxy, without an engine, with a
// httputil.ReverseProxy that does nothing, and both with no proxy at all: what
// client and upstream take is taken off. The metrics are the CPU time of both
// proxies, its ratio, and what the 99th percentile of the time of a request is over
// the other's.
func BenchmarkPassing(b *testing.B) {
	for _, size := range []int{1 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) { benchmarkPassing(b, size) })
	}
}

func benchmarkPassing(b *testing.B, size int) {
	answer := []byte(`{"id":"x","choices":[{"message":{"content":"` + strings.Repeat("a", 900) + `"}}]}`)
	w := newWorld(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}, nil)
	ways := []*way{{url: w.upstream.URL}, {url: reverse(b, w.upstream.URL)}, {url: w.url}}
	body := bytes.Repeat([]byte("a"), size)
	for _, to := range ways {
		to.call(b, w.client, body) // opens the connections
		to.cpu, to.took = 0, nil
	}
	for b.Loop() {
		for _, to := range ways {
			to.call(b, w.client, body)
		}
	}
	direct, plain, ours := ways[0].perCall(), ways[1].perCall(), ways[2].perCall()
	b.ReportMetric(float64(plain-direct)/1e3, "reverse-cpu-µs")
	b.ReportMetric(float64(ours-direct)/1e3, "proxy-cpu-µs")
	b.ReportMetric(float64(ours-direct)/float64(plain-direct), "cpu-ratio")
	b.ReportMetric(float64(ours)/float64(plain), "cpu-ratio-all")
	b.ReportMetric(float64(ways[2].p99()-ways[1].p99())/1e3, "added-p99-µs")
	b.ReportMetric(0, "ns/op")
}

// reverse starts a ReverseProxy that does nothing.
func reverse(b *testing.B, to string) string {
	target, err := url.Parse(to)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{}
	s := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	b.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	return s.URL
}

func (to *way) call(b *testing.B, client *http.Client, body []byte) {
	before := cpu(b)
	for range burst {
		began := time.Now()
		req, err := http.NewRequest(http.MethodPost, to.url+chatPath, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Authorization": {"Bearer " + callerKey}, "User-Agent": {"OpenAI/Python 1.0"},
			"X-Stainless-Lang": {"python"}, "X-Stainless-Os": {"Linux"}, "X-Stainless-Arch": {"x64"}, "X-Stainless-Retry-Count": {"0"},
		}
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("status %d, error %v", resp.StatusCode, err)
		}
		_ = resp.Body.Close()
		to.took = append(to.took, time.Since(began))
	}
	to.cpu += cpu(b) - before
}

func (to *way) perCall() time.Duration { return to.cpu / time.Duration(len(to.took)) }

func (to *way) p99() time.Duration {
	slices.Sort(to.took)
	return to.took[len(to.took)*99/100]
}

// cpu is the processor time that this process has taken.
func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkFirstToken is the time until the first event of a stream, through the
// proxy and through a ReverseProxy that does nothing.
func BenchmarkFirstToken(b *testing.B) {
	w := newWorld(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "data: {}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	}, nil)
	for _, to := range []struct{ name, url string }{{"direct", w.upstream.URL}, {"reverse", reverse(b, w.upstream.URL)}, {"proxy", w.url}} {
		b.Run(to.name, func(b *testing.B) {
			var first time.Duration
			for b.Loop() {
				began := time.Now()
				resp, err := w.client.Post(to.url+chatPath, "application/json", strings.NewReader("{}"))
				if err != nil {
					b.Fatal(err)
				}
				var one [1]byte
				if _, err := io.ReadFull(resp.Body, one[:]); err != nil {
					b.Fatal(err)
				}
				first += time.Since(began)
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			b.ReportMetric(float64(first.Microseconds())/float64(b.N), "first-µs")
		})
	}
}
