// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

func TestOutcomesAreSortedBecauseTheyAreSearched(t *testing.T) {
	for _, outcomes := range [][]string{viewOutcomes, uploadOutcomes, reviewOutcomes, injectOutcomes} {
		if !slices.IsSorted(outcomes) || !slices.Contains(outcomes, other) {
			t.Fatalf("outcomes are not sorted, or not complete: %q", outcomes)
		}
	}
}

func TestEveryOutcomeIsCountedUnderItsOwnName(t *testing.T) {
	m := New(time.Unix(1700000000, 0))
	for i, outcome := range viewOutcomes {
		for range i + 1 {
			m.ViewStarted()(outcome)
		}
	}
	m.ViewStarted()("never heard of")
	m.ViewStarted() // stays in flight
	m.FellBack()
	m.UploadEnded(Kept)
	m.UploadEnded(string(fault.BudgetExceeded))
	m.UploadEnded(Cached) // no outcome of an upload
	m.ReviewEnded(Denied)
	m.ReviewEnded(Denied)
	m.ReviewEnded(string(fault.InvalidToolInput))
	m.InjectEnded(Changed)
	m.InjectEnded(Denied) // no outcome of such a question
	text := write(t, m, State{
		Router: Router{Loaded: true, LoadedAt: time.Unix(1700000100, 500e6)}, CacheEntries: 3, CacheBytes: 4096,
		CircuitOpen: map[string]bool{"team/b@main": true, "team/a@main": false},
	})
	want := []string{
		`vision_view_requests_total{outcome="budget_exceeded"} 1`,
		`vision_view_requests_total{outcome="cached"} 2`,
		`vision_view_requests_total{outcome="other"} 7`,
		`vision_view_requests_total{outcome="vision_observation_failed"} 11`,
		`vision_view_duration_seconds_count 67`,
		`vision_views_in_flight 1`,
		`vision_view_fallbacks_total 1`,
		`vision_upload_requests_total{outcome="kept"} 1`,
		`vision_upload_requests_total{outcome="budget_exceeded"} 1`,
		`vision_upload_requests_total{outcome="other"} 1`,
		`vision_inject_requests_total{outcome="changed"} 1`,
		`vision_inject_requests_total{outcome="other"} 1`,
		`vision_inject_requests_total{outcome="unchanged"} 0`,
		`vision_review_requests_total{outcome="allowed"} 0`,
		`vision_review_requests_total{outcome="denied"} 2`,
		`vision_review_requests_total{outcome="invalid_tool_input"} 1`,
		`vision_upstream_circuit_open{endpoint="team/a@main"} 0`,
		`vision_upstream_circuit_open{endpoint="team/b@main"} 1`,
		`vision_cache_entries 3`,
		`vision_cache_bytes 4096`,
		`vision_router_loaded 1`,
		`vision_router_loaded_timestamp_seconds 1.7000001005e+09`,
		`vision_router_failing 0`,
		`go_goroutines ` + strconv.Itoa(runtime.NumGoroutine()),
		`process_start_time_seconds 1.7e+09`,
	}
	for _, line := range want {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in:\n%s", line, text)
		}
	}
}

func TestEveryKindOfFaultHasAnOutcome(t *testing.T) {
	for _, kind := range []fault.Kind{
		fault.InvalidToolInput, fault.PolicyDenied, fault.BudgetExceeded, fault.ImageReadFailed,
		fault.VisionAdapterUnavailable, fault.QuotaExceeded, fault.VisionObservationFailed, fault.RouterUnavailable,
	} {
		if !slices.Contains(viewOutcomes, string(kind)) || !slices.Contains(uploadOutcomes, string(kind)) || !slices.Contains(reviewOutcomes, string(kind)) {
			t.Errorf("%s is not counted by name", kind)
		}
	}
}

func TestEveryLineIsWellFormedAndEveryMetricIsExplained(t *testing.T) {
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="([^"\\]|\\[\\"n])+"(,[a-z]+="([^"\\]|\\[\\"n])+")*\})? [0-9.e+-]+$`)
	explained := map[string]bool{}
	m := New(time.Now())
	m.Attempted("team/odd\"\\\n@main", "Connection", time.Second, 0, 0)
	for line := range strings.Lines(write(t, m, State{CircuitOpen: map[string]bool{"team/odd\"\\\n@main": true}})) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			explained[strings.Fields(name)[0]] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		match := sample.FindStringSubmatch(line)
		if match == nil {
			t.Errorf("malformed line %q", line)
			continue
		}
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(match[1], "_sum"), "_count"), "_bucket")
		if !explained[match[1]] && !explained[base] {
			t.Errorf("%q comes without a TYPE", line)
		}
	}
}

func write(t *testing.T, m *Metrics, state State) string {
	t.Helper()
	var out bytes.Buffer
	if err := m.Write(&out, state); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
