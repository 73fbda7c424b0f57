// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
)

func TestTheProxysWordsAreSortedBecauseTheyAreSearched(t *testing.T) {
	for _, words := range [][]string{proxyDialects, proxyOperations, proxyOutcomes} {
		if !slices.IsSorted(words) || !slices.Contains(words, other) {
			t.Errorf("words are not sorted, or not complete: %q", words)
		}
	}
	for _, d := range message.Dialects() {
		if _, ok := genAI[string(d)]; !ok || of(proxyDialects, string(d)) == other {
			t.Errorf("%s is not counted by name", d)
		}
	}
}

func TestProxiedRequestsAreCounted(t *testing.T) {
	m := New(time.Now())
	m.Proxied(Proxied{
		Dialect: "openai-chat", Operation: "generate", Outcome: "answered", Asked: true, Status: 200, Took: 3 * time.Second, Sent: 10, Received: 20,
		Injected: 1, Observed: 2, Degraded: 3, Unavailable: 4, Retried: true,
	})
	m.Proxied(Proxied{Dialect: "openai-responses", Operation: "generate", Outcome: "answered", Asked: true, Status: 429, Took: time.Second, Sent: 1})
	m.Proxied(Proxied{Dialect: "gemini-contents", Operation: "generate", Outcome: string(fault.VisionAdapterUnavailable), Asked: true, Took: time.Second})
	m.Proxied(Proxied{Dialect: "anthropic-messages", Operation: "count", Outcome: "answered", Asked: true, Status: 200})
	m.Proxied(Proxied{Dialect: "anthropic-messages", Operation: "generate", Outcome: string(fault.PolicyDenied)})
	m.Proxied(Proxied{Dialect: "made up", Operation: "made up", Outcome: "made up", Status: 9999})
	text := write(t, m, State{})
	for _, line := range []string{
		`vision_proxy_requests_total{dialect="anthropic-messages",operation="count",outcome="answered"} 1`,
		`vision_proxy_requests_total{dialect="anthropic-messages",operation="generate",outcome="policy_denied"} 1`,
		`vision_proxy_requests_total{dialect="openai-chat",operation="generate",outcome="answered"} 1`,
		`vision_proxy_requests_total{dialect="other",operation="other",outcome="other"} 1`,
		`vision_proxy_upstream_replies_total{dialect="openai-chat",status="2xx"} 1`,
		`vision_proxy_upstream_replies_total{dialect="openai-responses",status="4xx"} 1`,
		`vision_proxy_images_total{outcome="injected"} 1`,
		`vision_proxy_images_total{outcome="observed"} 2`,
		`vision_proxy_images_total{outcome="degraded"} 3`,
		`vision_proxy_images_total{outcome="unavailable"} 4`,
		`vision_proxy_signature_retries_total 1`,
		`vision_proxy_bytes_total{direction="received"} 20`,
		`vision_proxy_bytes_total{direction="sent"} 11`,
		`gen_ai_client_operation_duration_seconds_bucket{gen_ai_operation_name="chat",gen_ai_provider_name="openai",le="2.56"} 0`,
		`gen_ai_client_operation_duration_seconds_bucket{gen_ai_operation_name="chat",gen_ai_provider_name="openai",le="5.12"} 1`,
		`gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="openai",error_type="429"} 1`,
		`gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="generate_content",gen_ai_provider_name="gcp.gemini",error_type="vision_adapter_unavailable"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in:\n%s", line, text)
		}
	}
	if strings.Contains(text, "made up") || strings.Contains(text, `gen_ai_provider_name="anthropic"`) || strings.Contains(text, "99xx") {
		t.Errorf("a word that is on no list, or a request that asked nobody, is told:\n%s", text)
	}
}
