// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// answered is the outcome of an attempt that a provider answered.
	answered = "answered"
	// maxEndpoints bounds the endpoints that are told apart. A router can come to
	// name others for as long as a process lives; those beyond count as other.
	maxEndpoints = 256
)

// bounds are the upper bounds of the buckets of an attempt's duration, in
// seconds: those that OpenTelemetry's semantic conventions advise for
// gen_ai.client.operation.duration.
var bounds = [...]float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}

// upstream holds what was asked of providers' endpoints.
type upstream struct {
	mu        sync.Mutex
	durations map[attempts]*histogram
	tokens    map[string]*tokens // by endpoint; its size is that of endpoints known
}

type attempts struct{ endpoint, outcome string }

type tokens struct{ input, output int64 }

type histogram struct {
	buckets [len(bounds)]int64 // not cumulative; what is above all bounds is in count alone
	count   int64
	seconds float64
}

// Attempted counts one question to a provider's endpoint, "namespace/name@endpoint":
// how long it took, the reason of the fault that it ended with (a CamelCase word
// of the program's own; empty for an answer), and the tokens that the provider
// says it counted.
func (m *Metrics) Attempted(endpoint, reason string, took time.Duration, inputTokens, outputTokens int64) {
	u := &m.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tokens == nil {
		u.tokens, u.durations = map[string]*tokens{}, map[attempts]*histogram{}
	}
	if u.tokens[endpoint] == nil {
		if len(u.tokens) >= maxEndpoints {
			endpoint = other
		}
		u.tokens[endpoint] = cmp.Or(u.tokens[endpoint], &tokens{})
	}
	u.tokens[endpoint].input += max(inputTokens, 0)
	u.tokens[endpoint].output += max(outputTokens, 0)
	key := attempts{endpoint, cmp.Or(snake(reason), answered)}
	if u.durations[key] == nil {
		u.durations[key] = &histogram{}
	}
	u.durations[key].add(took.Seconds())
}

func (h *histogram) add(seconds float64) {
	h.count++
	h.seconds += seconds
	if i, _ := slices.BinarySearch(bounds[:], seconds); i < len(bounds) {
		h.buckets[i]++
	}
}

// write writes the histogram's lines.
func (h *histogram) write(w io.Writer, name, labels string) {
	below := int64(0)
	for i, bound := range bounds {
		below += h.buckets[i]
		fmt.Fprintf(w, "%s_bucket{%s,le=\"%s\"} %d\n", name, labels, number(bound), below)
	}
	fmt.Fprintf(w, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, labels, h.count)
	fmt.Fprintf(w, "%s_sum{%s} %s\n", name, labels, number(h.seconds))
	fmt.Fprintf(w, "%s_count{%s} %d\n", name, labels, h.count)
}

// write writes the metrics of what was asked, in order of their labels.
func (u *upstream) write(w io.Writer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	const duration = "vision_upstream_attempt_duration_seconds"
	head(w, duration, "histogram", "Time that attempts at a provider's endpoint took, by outcome: answered, or the failure's reason.")
	keys := slices.SortedFunc(maps.Keys(u.durations), func(a, b attempts) int {
		return cmp.Or(cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.outcome, b.outcome))
	})
	for _, key := range keys {
		labels := fmt.Sprintf(`endpoint="%s",outcome="%s"`, label(key.endpoint), label(key.outcome))
		u.durations[key].write(w, duration, labels)
	}
	head(w, "vision_upstream_tokens_total", "counter", "Tokens that providers say they counted, by type: input or output.")
	for _, endpoint := range slices.Sorted(maps.Keys(u.tokens)) {
		for _, kind := range []struct {
			name string
			n    int64
		}{{"input", u.tokens[endpoint].input}, {"output", u.tokens[endpoint].output}} {
			fmt.Fprintf(w, "vision_upstream_tokens_total{endpoint=\"%s\",type=\"%s\"} %d\n", label(endpoint), kind.name, kind.n)
		}
	}
}

// label escapes a label's value.
func label(value string) string { return escapes.Replace(value) }

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// snake turns a CamelCase word into snake_case.
func snake(word string) string {
	var b strings.Builder
	small := false // the letter before is a small one
	for _, r := range word {
		if unicode.IsUpper(r) && small {
			b.WriteByte('_')
		}
		small = !unicode.IsUpper(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
