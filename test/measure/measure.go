// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package measure takes the times that benchmarks report: the processor's, which
// does not count what other processes take, and those of requests that go to one
// server on several ways.
package measure

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"
)

// CPU returns the processor time that this process has used so far, in user and
// system mode, its garbage collector included.
func CPU(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// PerMiB runs a benchmark over size bytes and reports the processor time for each
// MiB of them, as "cpu-ms/MiB".
func PerMiB(b *testing.B, size int, do func()) {
	b.Helper()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	before := CPU(b)
	for b.Loop() {
		do()
	}
	used := CPU(b) - before
	b.ReportMetric(used.Seconds()*1e3/float64(b.N)/(float64(size)/(1<<20)), "cpu-ms/MiB")
}

// Percentile returns the time that p percent of all are not above, and sorts them.
func Percentile(took []time.Duration, p int) time.Duration {
	slices.Sort(took)
	return took[len(took)*p/100]
}

// ReverseProxy starts a httputil.ReverseProxy to an address that does nothing
// else, and returns its URL. It ends with the benchmark.
func ReverseProxy(b *testing.B, to string) string {
	b.Helper()
	target, err := url.Parse(to)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{}
	s := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	b.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	return s.URL
}

// burst is how many requests go one way before the next way has its turn, so that
// all ways are measured under the same conditions.
const burst = 20

// way is one of the ways to the upstream that are compared.
type way struct {
	url  string
	cpu  time.Duration
	took []time.Duration
}

// Proxy compares a proxy with a httputil.ReverseProxy that does nothing, and both
// with no proxy at all: what client and upstream take is taken off. It reports the
// CPU time of both proxies for a request and its ratio, and by how much the 99th
// percentile of a request's time is over the other's. Request makes a request to
// the server at a URL.
func Proxy(b *testing.B, client *http.Client, upstream, proxy string, request func(url string) (*http.Request, error)) {
	b.Helper()
	direct, reverse, ours := &way{url: upstream}, &way{url: ReverseProxy(b, upstream)}, &way{url: proxy}
	ways := []*way{direct, reverse, ours}
	for _, to := range ways {
		to.call(b, client, request) // opens the connections
		to.cpu, to.took = 0, nil
	}
	for b.Loop() {
		for _, to := range ways {
			to.call(b, client, request)
		}
	}
	nothing, spent := reverse.perCall()-direct.perCall(), ours.perCall()-direct.perCall()
	b.ReportMetric(float64(nothing)/1e3, "reverse-cpu-µs")
	b.ReportMetric(float64(spent)/1e3, "proxy-cpu-µs")
	b.ReportMetric(float64(spent)/float64(nothing), "cpu-ratio")
	b.ReportMetric(float64(Percentile(ours.took, 99)-Percentile(reverse.took, 99))/1e3, "added-p99-µs")
	b.ReportMetric(0, "ns/op")
}

// call sends a burst of requests, one after the other.
func (to *way) call(b *testing.B, client *http.Client, request func(url string) (*http.Request, error)) {
	b.Helper()
	before := CPU(b)
	for range burst {
		began := time.Now()
		req, err := request(to.url)
		if err != nil {
			b.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("status %d, error %v: %s", resp.StatusCode, err, answer)
		}
		_ = resp.Body.Close()
		to.took = append(to.took, time.Since(began))
	}
	to.cpu += CPU(b) - before
}

func (to *way) perCall() time.Duration { return to.cpu / time.Duration(len(to.took)) }
