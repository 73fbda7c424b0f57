// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/test/measure"
)

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
	body := bytes.Repeat([]byte("a"), size)
	measure.Proxy(b, w.client, w.upstream.URL, w.url, func(url string) (*http.Request, error) {
		req, err := http.NewRequest(http.MethodPost, url+chatPath, bytes.NewReader(body))
		if err == nil {
			req.Header = http.Header{
				"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Authorization": {"Bearer " + callerKey}, "User-Agent": {"OpenAI/Python 1.0"},
				"X-Stainless-Lang": {"python"}, "X-Stainless-Os": {"Linux"}, "X-Stainless-Arch": {"x64"}, "X-Stainless-Retry-Count": {"0"},
			}
		}
		return req, err
	})
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
	for _, to := range []struct{ name, url string }{{"direct", w.upstream.URL}, {"reverse", measure.ReverseProxy(b, w.upstream.URL)}, {"proxy", w.url}} {
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
