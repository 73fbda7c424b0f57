// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// BenchmarkStart launches the built command over a published document and
// reports what a pod pays for it: the time from exec until /startupz answers
// 200 (start-ms), and the resident memory once it has been idle for a moment,
// before (rss-MiB) and after it looked at an image over HTTP (used-rss-MiB).
// The targets are 100 ms and 15 MiB idle.
func BenchmarkStart(b *testing.B) {
	w := newWorld(b)
	w.publish(nil)
	picture := w.picture("a.png")
	if _, err := built(); err != nil {
		b.Fatal(err)
	}
	var start time.Duration
	var idle, used float64
	n := 0
	for b.Loop() {
		p, took := launch(b, w.flags()...)
		start += took
		n++
		b.StopTimer()
		time.Sleep(300 * time.Millisecond)
		idle += residentMiB(b, p.cmd.Process.Pid)
		if got := post(b, p.agents+"/v1/view-image", fmt.Appendf(nil, `{"path":%q,"prompt":"look"}`, picture)); got.status != 200 {
			b.Fatalf("status %d: %s", got.status, got.body)
		}
		time.Sleep(300 * time.Millisecond)
		used += residentMiB(b, p.cmd.Process.Pid)
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		b.StartTimer()
	}
	b.ReportMetric(float64(start.Microseconds())/1e3/float64(n), "start-ms")
	b.ReportMetric(idle/float64(n), "rss-MiB")
	b.ReportMetric(used/float64(n), "used-rss-MiB")
}

// BenchmarkLargeImage looks at images of 20 MiB, the largest that are read by
// default, and reports the process's highest resident memory above what it has
// when idle, as a multiple of the image (x-image): the file, its base64 and the
// request around it. The target is 2.5.
func BenchmarkLargeImage(b *testing.B) {
	const size = 20 << 20
	w := newWorld(b)
	url, _ := slowUpstream(b, 0)
	w.publish(func(d *router.Document) { d.Providers[0].Endpoints[0].URL = url })
	picture := w.large(0, size)
	p, _ := launch(b, w.flags()...)
	idle := residentMiB(b, p.cmd.Process.Pid)
	n := 0
	for b.Loop() {
		n++ // another prompt each time, so that the cache does not answer
		look(b, p, picture, n)
	}
	peak := memoryMiB(b, p.cmd.Process.Pid, "VmHWM")
	b.ReportMetric(peak, "peak-MiB")
	b.ReportMetric((peak-idle)*(1<<20)/size, "x-image")
}

// BenchmarkUncachedView looks at an image of 1 MiB that is not in the cache, and
// reports what it costs the runtime itself: the processor time of its process
// (cpu-ms), from the request to the answer, base64 included, without what the
// provider takes. The target is 4 ms.
func BenchmarkUncachedView(b *testing.B) {
	w := newWorld(b)
	url, _ := slowUpstream(b, 0)
	w.publish(func(d *router.Document) { d.Providers[0].Endpoints[0].URL = url })
	picture := w.large(0, 1<<20)
	p, _ := launch(b, w.flags()...)
	look(b, p, picture, 0)
	before := processorTime(b, p.cmd.Process.Pid)
	n := 0
	for b.Loop() {
		n++
		look(b, p, picture, n)
	}
	spent := processorTime(b, p.cmd.Process.Pid) - before
	b.ReportMetric(spent.Seconds()*1e3/float64(n), "cpu-ms")
}

func look(b *testing.B, p *process, picture string, n int) {
	b.Helper()
	if got := post(b, p.agents+"/v1/view-image", fmt.Appendf(nil, `{"path":%q,"prompt":"look %d"}`, picture, n)); got.status != 200 {
		b.Fatalf("status %d: %s", got.status, got.body)
	}
}

// processorTime is what a process has used, in user and system mode: fields 14
// and 15 of its stat, in ticks of 10 ms (proc_pid_stat(5)).
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func residentMiB(b testing.TB, pid int) float64 { return memoryMiB(b, pid, "VmRSS") }

// memoryMiB is one size of a process as Linux counts it.
func memoryMiB(b testing.TB, pid int, name string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatalf("no %s in the status of process %d", name, pid)
	return 0
}
