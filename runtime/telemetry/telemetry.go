// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry counts what the runtime does and writes the counts in the
// Prometheus text exposition format (version 0.0.4). It keeps to the standard
// library, because the sidecar's memory is counted in single megabytes.
//
// Label values come from closed lists, so that no caller can grow the output.
package telemetry

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// ContentType is the media type of what Write writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Outcomes of a view besides the kinds of faults.
const (
	// Observed is a view that a model answered.
	Observed = "observed"
	// Cached is a view that the cache answered.
	Cached = "cached"
	// other is a kind that is not on the list.
	other = "other"
)

// outcomes are the values of the label outcome, sorted.
var outcomes = []string{
	string(fault.BudgetExceeded), Cached, string(fault.ImageReadFailed), string(fault.InvalidToolInput),
	Observed, other, string(fault.PolicyDenied), string(fault.QuotaExceeded), string(fault.RouterUnavailable),
	string(fault.VisionAdapterUnavailable), string(fault.VisionObservationFailed),
}

// Metrics holds the runtime's counters. Its methods may be called from any goroutine.
type Metrics struct {
	started  time.Time
	views    []atomic.Int64 // by index in outcomes
	seconds  atomic.Int64   // sum of views' durations, in microseconds
	inFlight atomic.Int64
}

// New returns counters at zero of a process that started at a given time.
func New(started time.Time) *Metrics {
	return &Metrics{started: started, views: make([]atomic.Int64, len(outcomes))}
}

// ViewStarted counts a view as in flight. The function it returns counts it as
// done, with its outcome: Observed, Cached or a fault.Kind. Call it once.
func (m *Metrics) ViewStarted() (done func(outcome string)) {
	m.inFlight.Add(1)
	began := time.Now()
	return func(outcome string) {
		m.inFlight.Add(-1)
		m.seconds.Add(time.Since(began).Microseconds())
		i, found := slices.BinarySearch(outcomes, outcome)
		if !found {
			i, _ = slices.BinarySearch(outcomes, other)
		}
		m.views[i].Add(1)
	}
}

// Router is what the metrics say of the router document.
type Router struct {
	// Loaded says whether a document is in use.
	Loaded bool
	// LoadedAt is when it came into use; zero when none has.
	LoadedAt time.Time
	// Failing says that the newest reading failed, so that an older document serves.
	Failing bool
}

// Write writes every metric; router is read by the caller at that moment.
func (m *Metrics) Write(w io.Writer, router Router) error {
	out := bufio.NewWriter(w)
	head(out, "vision_view_requests_total", "counter", "Views answered, by outcome: observed, cached, or the error's kind.")
	var total int64
	for i, outcome := range outcomes {
		n := m.views[i].Load()
		total += n
		fmt.Fprintf(out, "vision_view_requests_total{outcome=%q} %d\n", outcome, n)
	}
	head(out, "vision_view_duration_seconds", "summary", "Time that answered views took.")
	fmt.Fprintf(out, "vision_view_duration_seconds_sum %s\n", number(float64(m.seconds.Load())/1e6))
	fmt.Fprintf(out, "vision_view_duration_seconds_count %d\n", total)
	gauge(out, "vision_views_in_flight", "Views being answered now.", float64(m.inFlight.Load()))
	gauge(out, "vision_router_loaded", "Whether a router document is in use.", truth(router.Loaded))
	gauge(out, "vision_router_loaded_timestamp_seconds", "When the router document in use was loaded; 0 when none is.", seconds(router.LoadedAt))
	gauge(out, "vision_router_failing", "Whether the newest router document could not be read, so that an older one serves.", truth(router.Failing))
	gauge(out, "process_start_time_seconds", "When this process started.", seconds(m.started))
	return out.Flush()
}

func head(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func gauge(w io.Writer, name, help string, value float64) {
	head(w, name, "gauge", help)
	fmt.Fprintf(w, "%s %s\n", name, number(value))
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1e3
}
