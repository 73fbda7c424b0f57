// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry counts what the runtime does and writes the counts in the
// Prometheus text exposition format (version 0.0.4). It keeps to the standard
// library, because the sidecar's memory is counted in single megabytes.
//
// Label values come from closed lists or from the router document, bounded in
// number, so that no caller can grow the output.
package telemetry

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"runtime"
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
	// Kept is an upload that is kept.
	Kept = "kept"
	// Allowed is a review whose request may be sent as it is, Degraded one whose
	// request may be sent with images left out, and Denied one whose request may not.
	Allowed  = "allowed"
	Degraded = "degraded"
	Denied   = "denied"
	// Changed is a question about messages whose answer changes them, and Unchanged
	// one whose answer leaves them as they are.
	Changed   = "changed"
	Unchanged = "unchanged"
	// other is a kind that is not on the list.
	other = "other"
)

// kinds are the outcomes of whatever failed.
var kinds = []string{
	string(fault.BudgetExceeded), string(fault.ImageReadFailed), string(fault.InvalidToolInput), other, string(fault.PolicyDenied),
	string(fault.QuotaExceeded), string(fault.RouterUnavailable), string(fault.VisionAdapterUnavailable), string(fault.VisionObservationFailed),
}

// viewOutcomes, uploadOutcomes, reviewOutcomes and injectOutcomes are the values of the label outcome, sorted.
var (
	viewOutcomes   = slices.Sorted(slices.Values(append([]string{Cached, Observed}, kinds...)))
	uploadOutcomes = slices.Sorted(slices.Values(append([]string{Kept}, kinds...)))
	injectOutcomes = slices.Sorted(slices.Values(append([]string{Changed, Unchanged}, kinds...)))
	reviewOutcomes = slices.Sorted(slices.Values(append([]string{Allowed, Degraded, Denied}, kinds...)))
)

// counter counts by outcome.
type counter struct {
	outcomes []string // sorted; other is among them
	counts   []atomic.Int64
}

func newCounter(outcomes []string) counter {
	return counter{outcomes, make([]atomic.Int64, len(outcomes))}
}

func (c *counter) add(outcome string) {
	i, found := slices.BinarySearch(c.outcomes, outcome)
	if !found {
		i, _ = slices.BinarySearch(c.outcomes, other)
	}
	c.counts[i].Add(1)
}

// write writes the counter, and returns the sum over its outcomes.
func (c *counter) write(w io.Writer, name, help string) (total int64) {
	head(w, name, "counter", help)
	for i, outcome := range c.outcomes {
		n := c.counts[i].Load()
		total += n
		fmt.Fprintf(w, "%s{outcome=%q} %d\n", name, outcome, n)
	}
	return total
}

// Metrics holds the runtime's counters. Its methods may be called from any goroutine.
type Metrics struct {
	started   time.Time
	views     counter
	uploads   counter
	reviews   counter
	injects   counter
	seconds   atomic.Int64 // sum of views' durations, in microseconds
	inFlight  atomic.Int64
	fallbacks atomic.Int64
	upstream  upstream
	proxied   proxied
}

// New returns counters at zero of a process that started at a given time.
func New(started time.Time) *Metrics {
	return &Metrics{
		started: started, views: newCounter(viewOutcomes), uploads: newCounter(uploadOutcomes),
		reviews: newCounter(reviewOutcomes), injects: newCounter(injectOutcomes),
	}
}

// ViewStarted counts a view as in flight. The function it returns counts it as
// done, with its outcome: Observed, Cached or a fault.Kind. Call it once.
func (m *Metrics) ViewStarted() (done func(outcome string)) {
	m.inFlight.Add(1)
	began := time.Now()
	return func(outcome string) {
		m.inFlight.Add(-1)
		m.seconds.Add(time.Since(began).Microseconds())
		m.views.add(outcome)
	}
}

// FellBack counts a view that a fallback model answered in place of the default.
func (m *Metrics) FellBack() { m.fallbacks.Add(1) }

// UploadEnded counts an upload by its outcome: Kept or a fault.Kind.
func (m *Metrics) UploadEnded(outcome string) { m.uploads.add(outcome) }

// ReviewEnded counts a review by its outcome: Allowed, Degraded, Denied or a fault.Kind.
func (m *Metrics) ReviewEnded(outcome string) { m.reviews.add(outcome) }

// InjectEnded counts a question about messages by its outcome: Changed, Unchanged or a fault.Kind.
func (m *Metrics) InjectEnded(outcome string) { m.injects.add(outcome) }

// State is what the metrics say of the runtime at a moment, as its parts tell.
type State struct {
	Router Router
	// CacheEntries and CacheBytes are what the cache holds in memory.
	CacheEntries int
	CacheBytes   int64
	// CircuitOpen says for each endpoint in use, "namespace/name@endpoint",
	// whether it is not asked because it keeps failing.
	CircuitOpen map[string]bool
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

// Write writes every metric; state is read by the caller at that moment.
func (m *Metrics) Write(w io.Writer, state State) error {
	out := bufio.NewWriter(w)
	total := m.views.write(out, "vision_view_requests_total", "Views answered, by outcome: observed, cached, or the error's kind.")
	head(out, "vision_view_duration_seconds", "summary", "Time that answered views took.")
	fmt.Fprintf(out, "vision_view_duration_seconds_sum %s\n", number(float64(m.seconds.Load())/1e6))
	fmt.Fprintf(out, "vision_view_duration_seconds_count %d\n", total)
	gauge(out, "vision_views_in_flight", "Views being answered now.", float64(m.inFlight.Load()))
	head(out, "vision_view_fallbacks_total", "counter", "Views that a fallback model answered in place of the default.")
	fmt.Fprintf(out, "vision_view_fallbacks_total %d\n", m.fallbacks.Load())
	m.uploads.write(out, "vision_upload_requests_total", "Uploads answered, by outcome: kept, or the error's kind.")
	m.reviews.write(out, "vision_review_requests_total", "Reviews of model requests, by outcome: allowed, degraded (allowed with images left out), denied, or the kind of the error for which there was no verdict.")
	m.injects.write(out, "vision_inject_requests_total", "Questions what to show in messages, by outcome: changed, unchanged, or the error's kind.")
	m.proxied.write(out)
	m.upstream.write(out)
	head(out, "vision_upstream_circuit_open", "gauge", "Whether an endpoint is not asked at the moment, because it keeps failing.")
	for _, endpoint := range slices.Sorted(maps.Keys(state.CircuitOpen)) {
		fmt.Fprintf(out, "vision_upstream_circuit_open{endpoint=\"%s\"} %s\n", label(endpoint), number(truth(state.CircuitOpen[endpoint])))
	}
	gauge(out, "vision_cache_entries", "Observations that the cache holds in memory.", float64(state.CacheEntries))
	gauge(out, "vision_cache_bytes", "Bytes that they take, their keys included.", float64(state.CacheBytes))
	gauge(out, "vision_router_loaded", "Whether a router document is in use.", truth(state.Router.Loaded))
	gauge(out, "vision_router_loaded_timestamp_seconds", "When the router document in use was loaded; 0 when none is.", seconds(state.Router.LoadedAt))
	gauge(out, "vision_router_failing", "Whether the newest router document could not be read, so that an older one serves.", truth(state.Router.Failing))
	gauge(out, "go_goroutines", "Goroutines that exist now: more and more of them are a leak.", float64(runtime.NumGoroutine()))
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
