// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

func TestH42_TheContentIsTextAndImage(t *testing.T) {
	req := wire.Look()
	wire.ImagesArriveWhole(t, req, func(t *testing.T, body []byte, encoded string) {
		var got struct{ Messages []map[string]any }
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		want := []map[string]any{
			{"role": "system", "content": req.Instructions},
			{"role": "user", "content": []any{
				map[string]any{"type": "text", "text": req.Prompt},
				map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + encoded}},
			}},
		}
		if diff := cmp.Diff(want, got.Messages); diff != "" {
			t.Errorf("the content is not [text, image] (-want +got):\n%.2000s", diff)
		}
	})
}

func TestTheBytesOfARequest(t *testing.T) {
	wire.GoldenRequests(t, map[string]provider.Request{
		"with instructions and a schema": wire.Look(),
		"with an output limit":           exchangetest.Limited(wire.Look()),
		"plain":                          exchangetest.Plain("see"),
	})
}

func TestH49_TheInstructionsOccurOnce(t *testing.T) { wire.InstructionsOccurOnce(t, wire.Model) }

// Each vendor's documented base URL, and what becomes of it.
func TestWhereRequestsGoAndHowTheirOutputIsLimited(t *testing.T) {
	for name, tc := range map[string]struct{ base, version, url, limit string }{
		"OpenAI":                      {"https://api.openai.com/v1", "", "https://api.openai.com/v1/chat/completions", "max_completion_tokens"},
		"OpenAI in a region":          {"https://eu.api.openai.com/v1/", "", "https://eu.api.openai.com/v1/chat/completions", "max_completion_tokens"},
		"Azure, its next generation":  {"https://team.openai.azure.com/openai/v1", "", "https://team.openai.azure.com/openai/v1/chat/completions", "max_completion_tokens"},
		"Azure, a preview of it":      {"https://team.openai.azure.com/openai/v1/", "preview", "https://team.openai.azure.com/openai/v1/chat/completions?api-version=preview", "max_completion_tokens"},
		"Azure, a deployment":         {"https://team.openai.azure.com/openai/deployments/see", "2024-10-21", "https://team.openai.azure.com/openai/deployments/see/chat/completions?api-version=2024-10-21", "max_completion_tokens"},
		"Azure, a deployment by AI":   {"https://team.cognitiveservices.azure.com/openai/deployments/see", "2024-10-21", "https://team.cognitiveservices.azure.com/openai/deployments/see/chat/completions?api-version=2024-10-21", "max_completion_tokens"},
		"OpenRouter":                  {"https://openrouter.ai/api/v1", "", "https://openrouter.ai/api/v1/chat/completions", "max_tokens"},
		"vLLM":                        {"http://vllm.models.svc:8000/v1", "", "http://vllm.models.svc:8000/v1/chat/completions", "max_tokens"},
		"vLLM below a path":           {"https://models.example/team/see/v1/", "", "https://models.example/team/see/v1/chat/completions", "max_tokens"},
		"Ollama":                      {"http://ollama:11434/v1", "", "http://ollama:11434/v1/chat/completions", "max_tokens"},
		"LM Studio":                   {"http://localhost:1234/v1", "", "http://localhost:1234/v1/chat/completions", "max_tokens"},
		"Gemini, OpenAI's way":        {"https://generativelanguage.googleapis.com/v1beta/openai/", "", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", "max_tokens"},
		"a host that looks like one":  {"https://openai.com.example/v1", "", "https://openai.com.example/v1/chat/completions", "max_tokens"},
		"a host that ends like one":   {"https://notopenai.com/v1", "", "https://notopenai.com/v1/chat/completions", "max_tokens"},
		"a host with OpenAI's as key": {"https://proxy.example/api.openai.com/v1", "", "https://proxy.example/api.openai.com/v1/chat/completions", "max_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			req := wire.Look()
			req.MaxOutputTokens = 9
			to, body := wire.Sent(t, exchange.Endpoint{BaseURL: tc.base, APIVersion: tc.version}, req)
			if to.String() != tc.url {
				t.Errorf("sent to %s, want %s", to, tc.url)
			}
			if !bytes.Contains(body, []byte(`"`+tc.limit+`":9`)) || bytes.Count(body, []byte("_tokens")) != 1 {
				t.Errorf("did not get %s alone: %s", tc.limit, body)
			}
		})
	}
}

func FuzzRequest(f *testing.F) { wire.FuzzRequest(f, `"}}]}`, func(*testing.T, *url.URL) {}) }

func BenchmarkRequestOf5MiB(b *testing.B) { wire.BenchmarkRequest(b) }
