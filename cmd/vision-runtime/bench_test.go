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

// BenchmarkLargeImage looks at one image of 20 MiB, the largest that is read by
// default, and reports the process's highest resident memory (peak-MiB): the
// file, its base64 and the request around it. A container's memory limit must
// leave room for as many of them as agents send at once.
func BenchmarkLargeImage(b *testing.B) {
	w := newWorld(b)
	w.publish(nil)
	picture := w.picture("large.png")
	if err := os.Truncate(picture, 20<<20); err != nil {
		b.Fatal(err)
	}
	p, _ := launch(b, w.flags()...)
	n := 0
	for b.Loop() {
		n++ // another prompt each time, so that the cache does not answer
		got := post(b, p.agents+"/v1/view-image", fmt.Appendf(nil, `{"path":%q,"prompt":"look %d"}`, picture, n))
		if got.status != 200 {
			b.Fatalf("status %d: %s", got.status, got.body)
		}
	}
	b.ReportMetric(memoryMiB(b, p.cmd.Process.Pid, "VmHWM"), "peak-MiB")
}

func residentMiB(b *testing.B, pid int) float64 { return memoryMiB(b, pid, "VmRSS") }

// memoryMiB is one size of a process as Linux counts it.
func memoryMiB(b *testing.B, pid int, name string) float64 {
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
