// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestTheTransportsThatTheRouterNamesAreTheOnesSpoken(t *testing.T) {
	for _, transport := range []string{
		router.TransportOpenAIChatCompletions, router.TransportOpenAIResponses,
		router.TransportAnthropicMessages, router.TransportGeminiGenerateContent,
	} {
		if _, spoken := protocols[transport]; spoken != router.Speaks(transport) {
			t.Errorf("%s is spoken: %t; router.Speaks says %t", transport, spoken, router.Speaks(transport))
		}
	}
}

func TestEachVendorGetsTheKeyInItsOwnHeader(t *testing.T) {
	for _, tc := range []struct {
		transport, url string
		want           keyPlace
	}{
		{router.TransportOpenAIChatCompletions, "https://api.openai.com/v1", keyPlace{"Authorization", "Bearer "}},
		{router.TransportOpenAIChatCompletions, "https://x.openai.azure.com/openai/deployments/d", keyPlace{"Api-Key", ""}},
		{router.TransportOpenAIChatCompletions, "https://x.cognitiveservices.azure.com/openai/v1", keyPlace{"Api-Key", ""}},
		{router.TransportOpenAIChatCompletions, "https://x.services.ai.azure.com/models", keyPlace{"Api-Key", ""}},
		{router.TransportOpenAIChatCompletions, "https://openai.azure.com.example/v1", keyPlace{"Authorization", "Bearer "}},
		{router.TransportOpenAIChatCompletions, "https://generativelanguage.googleapis.com/v1beta/openai", keyPlace{"Authorization", "Bearer "}},
		{router.TransportOpenAIResponses, "https://api.openai.com/v1", keyPlace{"Authorization", "Bearer "}},
		{router.TransportOpenAIResponses, "https://x.openai.azure.com/openai/v1", keyPlace{"Api-Key", ""}},
		{router.TransportAnthropicMessages, "https://api.anthropic.com", keyPlace{"X-Api-Key", ""}},
		{router.TransportGeminiGenerateContent, "https://generativelanguage.googleapis.com/v1beta", keyPlace{"X-Goog-Api-Key", ""}},
	} {
		if got := protocols[tc.transport].key(exchange.Endpoint{BaseURL: tc.url}); got != tc.want {
			t.Errorf("%s at %s: %+v; want %+v", tc.transport, tc.url, got, tc.want)
		}
	}
}
