// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Proxied is what came of one request that the model proxy took.
type Proxied struct {
	// Dialect and Operation are words of the program's own; others count as other.
	Dialect, Operation string
	// Outcome is answered, canceled, broken or a fault.Kind.
	Outcome string
	// Asked says that the request went to a provider; Status is its answer's, 0
	// without one.
	Asked  bool
	Status int
	Took   time.Duration
	// Sent and Received count bytes of bodies, to providers and from them.
	Sent, Received int64
	// Injected, Observed, Degraded and Unavailable count images.
	Injected, Observed, Degraded, Unavailable int
	// Retried says that the request was sent again, without signed reasoning.
	Retried bool
}

// The values of the proxy's labels, sorted.
var (
	proxyDialects   = []string{"anthropic-messages", "gemini-contents", "openai-chat", "openai-responses", other}
	proxyOperations = []string{"count", "generate", "model", "models", other, "passthrough", "unknown"}
	proxyOutcomes   = slices.Sorted(slices.Values(append([]string{answered, "broken", "canceled"}, kinds...)))
)

// genAI are the words of OpenTelemetry's semantic conventions for generative AI
// (gen_ai.operation.name and gen_ai.provider.name) for a dialect.
var genAI = map[string]struct{ operation, provider string }{
	"openai-chat": {"chat", "openai"}, "openai-responses": {"chat", "openai"},
	"anthropic-messages": {"chat", "anthropic"}, "gemini-contents": {"generate_content", "gcp.gemini"},
}

// proxied holds what the proxy did.
type proxied struct {
	mu             sync.Mutex
	requests       map[proxyRequest]int64
	replies        map[proxyReply]int64
	durations      map[genAICall]*histogram
	sent, received int64
	images         [len(imageOutcomes)]int64
	retries        int64
}

type (
	proxyRequest struct{ dialect, operation, outcome string }
	proxyReply   struct{ dialect, class string }
	genAICall    struct{ operation, provider, failure string }
)

// imageOutcomes are the values of the label outcome of images.
var imageOutcomes = [...]string{"degraded", "injected", "observed", "unavailable"}

// of is a value when it is on a sorted list, else other.
func of(list []string, value string) string {
	if _, found := slices.BinarySearch(list, value); found {
		return value
	}
	return other
}

// Proxied counts a request that the model proxy took.
func (m *Metrics) Proxied(r Proxied) {
	dialect := of(proxyDialects, r.Dialect)
	p := &m.proxied
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.requests == nil {
		p.requests, p.replies, p.durations = map[proxyRequest]int64{}, map[proxyReply]int64{}, map[genAICall]*histogram{}
	}
	p.requests[proxyRequest{dialect, of(proxyOperations, r.Operation), of(proxyOutcomes, r.Outcome)}]++
	if r.Status >= 100 && r.Status < 600 {
		p.replies[proxyReply{dialect, strconv.Itoa(r.Status/100) + "xx"}]++
	}
	p.sent += max(r.Sent, 0)
	p.received += max(r.Received, 0)
	for i, n := range [...]int{r.Degraded, r.Injected, r.Observed, r.Unavailable} {
		p.images[i] += int64(max(n, 0))
	}
	if r.Retried {
		p.retries++
	}
	if words, ok := genAI[r.Dialect]; ok && r.Asked && r.Operation == "generate" {
		key := genAICall{words.operation, words.provider, r.failure()}
		if p.durations[key] == nil {
			p.durations[key] = &histogram{}
		}
		p.durations[key].add(r.Took.Seconds())
	}
}

// failure is the conventions' error.type: the status of a refusal, else how the
// request ended; "" for an answer.
func (r *Proxied) failure() string {
	switch {
	case r.Status >= 400 && r.Status < 600:
		return strconv.Itoa(r.Status)
	case r.Outcome != answered:
		return of(proxyOutcomes, r.Outcome)
	}
	return ""
}

// write writes the proxy's metrics, in order of their labels.
func (p *proxied) write(w io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	head(w, "vision_proxy_requests_total", "counter", "Model requests that the proxy took, by dialect, operation and outcome: answered, canceled, broken (the reply broke off), or the kind of the error that the proxy refused with.")
	for _, k := range slices.SortedFunc(maps.Keys(p.requests), func(a, b proxyRequest) int {
		return cmp.Or(cmp.Compare(a.dialect, b.dialect), cmp.Compare(a.operation, b.operation), cmp.Compare(a.outcome, b.outcome))
	}) {
		fmt.Fprintf(w, "vision_proxy_requests_total{dialect=%q,operation=%q,outcome=%q} %d\n", k.dialect, k.operation, k.outcome, p.requests[k])
	}
	head(w, "vision_proxy_upstream_replies_total", "counter", "Replies of providers to model requests, by dialect and class of their status.")
	for _, k := range slices.SortedFunc(maps.Keys(p.replies), func(a, b proxyReply) int {
		return cmp.Or(cmp.Compare(a.dialect, b.dialect), cmp.Compare(a.class, b.class))
	}) {
		fmt.Fprintf(w, "vision_proxy_upstream_replies_total{dialect=%q,status=%q} %d\n", k.dialect, k.class, p.replies[k])
	}
	head(w, "vision_proxy_images_total", "counter", "Images of model requests that the proxy put in (injected), showed as text (observed), left out for a limit (degraded) or could not show (unavailable).")
	for i, outcome := range imageOutcomes {
		fmt.Fprintf(w, "vision_proxy_images_total{outcome=%q} %d\n", outcome, p.images[i])
	}
	head(w, "vision_proxy_signature_retries_total", "counter", "Model requests that were sent again without signed reasoning, because its vendor refused it beside an image.")
	fmt.Fprintf(w, "vision_proxy_signature_retries_total %d\n", p.retries)
	head(w, "vision_proxy_bytes_total", "counter", "Bytes of bodies that went to providers (sent) and came from them (received).")
	fmt.Fprintf(w, "vision_proxy_bytes_total{direction=\"received\"} %d\nvision_proxy_bytes_total{direction=\"sent\"} %d\n", p.received, p.sent)
	p.writeDurations(w)
}

// writeDurations writes the metric that OpenTelemetry's semantic conventions for
// generative AI call gen_ai.client.operation.duration.
func (p *proxied) writeDurations(w io.Writer) {
	const name = "gen_ai_client_operation_duration_seconds"
	head(w, name, "histogram", "Time that model requests took through the proxy until the end of their replies, by the conventions' operation, provider and error type.")
	for _, k := range slices.SortedFunc(maps.Keys(p.durations), func(a, b genAICall) int {
		return cmp.Or(cmp.Compare(a.operation, b.operation), cmp.Compare(a.provider, b.provider), cmp.Compare(a.failure, b.failure))
	}) {
		labels := fmt.Sprintf("gen_ai_operation_name=%q,gen_ai_provider_name=%q", k.operation, k.provider)
		if k.failure != "" {
			labels += fmt.Sprintf(",error_type=%q", k.failure)
		}
		p.durations[k].write(w, name, labels)
	}
}
