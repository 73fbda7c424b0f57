// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// edits is how many edits one figure is taken from: the third slowest is the
// 99th percentile.
const edits = 300

// edition makes every edit of a run another one.
var edition int

// BenchmarkFleet measures the operator over fleets of 100, 500 and 2,000 objects
// in 200 namespaces, all of which a baseline with a shared provider serves as
// well. On every line objects stands for the size.
//
//	First     from the operator's start, with nothing published, until every
//	          router is right (routers-s) and every status is written (all-s)
//	Resync    from its start, with every router wrong, until every router is right
//	          cpu-s is the processor time of the operator alone, here and below
//	Edit      from the request that edits a policy until its router is there,
//	          admission included, one edit at once after the other; the writes that
//	          an edit costs. Target at 2,000: p99 of 1,000 ms
//	Shared    from the edit of the provider until all 200 routers are there (last-s).
//	          Target: 10 s. One edit of a policy meanwhile (edit-meanwhile-ms)
//	Baseline  the same for the baseline
//	Memory    of the process after all that (rss-MiB), and its highest (peak-MiB).
//	          Target at 2,000: 120 MiB
func BenchmarkFleet(b *testing.B) {
	for _, size := range []int{100, 500, 2000} {
		b.Run(fmt.Sprintf("objects=%d", size), func(b *testing.B) { measure(b, size) })
	}
}

func measure(b *testing.B, size int) {
	grown.grow(b, size)
	routers := observe(b)
	b.Run("First", func(b *testing.B) { first(b, routers) })
	b.Run("Resync", func(b *testing.B) { resync(b, routers) })
	p, from := launch(b), mark(b)
	timed(b, routers, grown.policies[0]) // now it leads
	settle(b, from)
	b.Run("Edit", func(b *testing.B) { editing(b, routers, p) })
	b.Run("Shared", func(b *testing.B) {
		fanOut(b, routers, p, func(text string) error {
			return move(b.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: shared}, "https://"+text+".example.com/v1")
		})
	})
	b.Run("Baseline", func(b *testing.B) {
		fanOut(b, routers, p, func(text string) error {
			return ask(b.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: baseline}, text)
		})
	})
	b.Run("Memory", func(b *testing.B) {
		for b.Loop() {
			time.Sleep(time.Second)
		}
		b.ReportMetric(p.memory(b, "VmRSS"), "rss-MiB")
		b.ReportMetric(p.memory(b, "VmHWM"), "peak-MiB")
	})
	allRight(b, routers)
}

func first(b *testing.B, routers *observer) {
	var published, settled, used time.Duration
	n, writes := 0, 0
	for b.Loop() {
		b.StopTimer()
		grown.unpublish(b)
		from := mark(b)
		b.StartTimer()
		p := launch(b)
		published += allRight(b, routers).Sub(p.started)
		writes += total(count(settle(b, from)))
		settled += time.Since(p.started) - quiet
		used += p.cpu(b)
		n++
		p.stop(b)
	}
	b.ReportMetric(used.Seconds()/float64(n), "cpu-s")
	b.ReportMetric(published.Seconds()/float64(n), "routers-s")
	b.ReportMetric(settled.Seconds()/float64(n), "all-s")
	b.ReportMetric(float64(writes)/float64(n), "writes")
}

func resync(b *testing.B, routers *observer) {
	var took time.Duration
	n, writes := 0, 0
	for b.Loop() {
		b.StopTimer()
		spoil(b)
		routers.await(b, everyNamespace(), func(_, data string) bool { return data == "{}" })
		from := mark(b)
		b.StartTimer()
		p := launch(b)
		took += allRight(b, routers).Sub(p.started)
		writes += total(count(settle(b, from)))
		n++
		p.stop(b)
	}
	b.ReportMetric(took.Seconds()/float64(n), "routers-s")
	b.ReportMetric(float64(writes)/float64(n), "writes")
}

// timed edits a policy and returns how long its router took.
func timed(b *testing.B, routers *observer, policy client.ObjectKey) time.Duration {
	b.Helper()
	text := nextText()
	from := time.Now()
	if err := ask(b.Context(), policy, text); err != nil {
		b.Fatal(err)
	}
	at := routers.await(b, []string{policy.Namespace}, carrying(text))
	return at[0].Sub(from)
}

// nextText is a text that no router carries yet.
func nextText() string {
	edition++
	return fmt.Sprintf("edition-%06d", edition)
}

func carrying(text string) func(namespace, data string) bool {
	return func(_, data string) bool { return strings.Contains(data, text) }
}

func editing(b *testing.B, routers *observer, p *process) {
	random := rand.New(rand.NewPCG(6, uint64(grown.size)))
	var took []time.Duration
	counts, used := map[string]int{}, p.cpu(b)
	for b.Loop() {
		from := mark(b)
		for range edits {
			took = append(took, timed(b, routers, grown.policies[random.IntN(len(grown.policies))]))
		}
		for kind, c := range count(settle(b, from)) {
			counts[kind] += c
		}
	}
	slices.Sort(took)
	b.ReportMetric(milliseconds(p.cpu(b)-used)/float64(len(took)), "cpu-ms/edit")
	b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
	b.ReportMetric(milliseconds(took[len(took)-1-len(took)/100]), "p99-ms")
	for kind, unit := range map[string]string{"configmaps": "routers/edit", "visionpolicies/status": "statuses/edit"} {
		b.ReportMetric(float64(counts[kind])/float64(len(took)), unit)
		delete(counts, kind)
	}
	if len(counts) > 0 {
		b.Errorf("edits of policies wrote %s as well", list(counts))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// fanOut measures an edit that changes all routers.
func fanOut(b *testing.B, routers *observer, p *process, edit func(text string) error) {
	var last, median, all, meanwhile time.Duration
	n, writes, used := 0, 0, p.cpu(b)
	for b.Loop() {
		text, from, start := nextText(), mark(b), time.Now()
		if err := edit(text); err != nil {
			b.Fatal(err)
		}
		meanwhile += timed(b, routers, grown.policies[len(grown.policies)-1-n%len(grown.policies)])
		at := routers.await(b, everyNamespace(), carrying(text))
		slices.SortFunc(at, time.Time.Compare)
		median += at[len(at)/2].Sub(start)
		last += at[len(at)-1].Sub(start)
		writes += total(count(settle(b, from)))
		all += time.Since(start) - quiet
		n++
	}
	b.ReportMetric((p.cpu(b)-used).Seconds()/float64(n), "cpu-s")
	b.ReportMetric(median.Seconds()/float64(n), "median-s")
	b.ReportMetric(last.Seconds()/float64(n), "last-s")
	b.ReportMetric(all.Seconds()/float64(n), "all-s")
	b.ReportMetric(milliseconds(meanwhile)/float64(n), "edit-meanwhile-ms")
	b.ReportMetric(float64(writes)/float64(n), "writes")
}
