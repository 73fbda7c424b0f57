// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAttemptsAreCountedByEndpointAndOutcomeWithTheirTimeAndTokens(t *testing.T) {
	m := New(time.Unix(0, 0))
	m.Attempted("team/openai@main", "", 500*time.Millisecond, 1200, 80)
	m.Attempted("team/openai@main", "", 640*time.Millisecond, 100, 20) // just on a bound
	m.Attempted("team/openai@main", "RateLimited", 20*time.Millisecond, 0, 0)
	m.Attempted("team/ocr@local", "IO", 100*time.Second, -1, 0)
	text := write(t, m, State{})
	const name = "vision_upstream_attempt_duration_seconds"
	for _, line := range []string{
		name + `_bucket{endpoint="team/openai@main",outcome="answered",le="0.32"} 0`,
		name + `_bucket{endpoint="team/openai@main",outcome="answered",le="0.64"} 2`,
		name + `_bucket{endpoint="team/openai@main",outcome="answered",le="81.92"} 2`,
		name + `_bucket{endpoint="team/openai@main",outcome="answered",le="+Inf"} 2`,
		name + `_sum{endpoint="team/openai@main",outcome="answered"} 1.1400000000000001`,
		name + `_count{endpoint="team/openai@main",outcome="answered"} 2`,
		name + `_bucket{endpoint="team/openai@main",outcome="rate_limited",le="0.01"} 0`,
		name + `_bucket{endpoint="team/openai@main",outcome="rate_limited",le="0.02"} 1`,
		name + `_bucket{endpoint="team/ocr@local",outcome="io",le="81.92"} 0`,
		name + `_bucket{endpoint="team/ocr@local",outcome="io",le="+Inf"} 1`,
		`vision_upstream_tokens_total{endpoint="team/openai@main",type="input"} 1300`,
		`vision_upstream_tokens_total{endpoint="team/openai@main",type="output"} 100`,
		`vision_upstream_tokens_total{endpoint="team/ocr@local",type="input"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in:\n%s", line, text)
		}
	}
}

func TestEndpointsBeyondTheBoundAreCountedTogether(t *testing.T) {
	m := New(time.Unix(0, 0))
	var calls sync.WaitGroup
	for i := range maxEndpoints + 50 {
		calls.Go(func() { m.Attempted(fmt.Sprintf("team/p%d@main", i), "", time.Second, 1, 0) })
	}
	calls.Wait()
	text := write(t, m, State{})
	if n := strings.Count(text, `,outcome="answered",le="+Inf"}`); n != maxEndpoints+1 {
		t.Errorf("%d endpoints are told apart", n)
	}
	if !strings.Contains(text, `_count{endpoint="other",outcome="answered"} 50`+"\n") || !strings.Contains(text, `{endpoint="other",type="input"} 50`+"\n") {
		t.Error("those beyond the bound are lost")
	}
}
