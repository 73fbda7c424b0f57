// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

func TestTheBytesOfARequest(t *testing.T) {
	wire.GoldenRequests(t, map[string]provider.Request{
		"with instructions and a schema": wire.Look(),
		"with an output limit":           exchangetest.Limited(wire.Look()),
		"plain":                          exchangetest.Plain("see"),
	})
}

func TestH41_TheContentIsTextAndImageAndNothingIsStored(t *testing.T) {
	req := wire.Look()
	req.MaxOutputTokens = 99
	wire.ImagesArriveWhole(t, req, func(t *testing.T, body []byte, encoded string) {
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"model": req.Model, "instructions": req.Instructions, "store": false, "max_output_tokens": 99.0,
			"input": []any{map[string]any{"type": "message", "role": "user", "content": []any{
				map[string]any{"type": "input_text", "text": req.Prompt},
				map[string]any{"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64," + encoded},
			}}},
			"text": map[string]any{"format": map[string]any{
				"type": "json_schema", "name": "visual_observation_v1", "strict": true,
				"schema": map[string]any{"type": "object", "additionalProperties": false},
			}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%.2000s", diff)
		}
	})
}

func TestH49_TheInstructionsOccurOnce(t *testing.T) { wire.InstructionsOccurOnce(t, wire.Model) }

// Each vendor's documented base URL, and what becomes of it.
func TestWhereRequestsGo(t *testing.T) {
	for name, tc := range map[string]struct{ base, version, url string }{
		"OpenAI":                 {"https://api.openai.com/v1", "", "https://api.openai.com/v1/responses"},
		"Azure":                  {"https://team.openai.azure.com/openai/v1/", "", "https://team.openai.azure.com/openai/v1/responses"},
		"Azure, a preview of it": {"https://team.openai.azure.com/openai/v1", "preview", "https://team.openai.azure.com/openai/v1/responses?api-version=preview"},
		"Azure, before that":     {"https://team.openai.azure.com/openai", "2025-03-01-preview", "https://team.openai.azure.com/openai/responses?api-version=2025-03-01-preview"},
		"OpenRouter":             {"https://openrouter.ai/api/v1", "", "https://openrouter.ai/api/v1/responses"},
		"xAI":                    {"https://api.x.ai/v1", "", "https://api.x.ai/v1/responses"},
		"vLLM":                   {"http://vllm.models.svc:8000/v1", "", "http://vllm.models.svc:8000/v1/responses"},
		"Ollama":                 {"http://ollama:11434/v1", "", "http://ollama:11434/v1/responses"},
		"LM Studio":              {"http://localhost:1234/v1", "", "http://localhost:1234/v1/responses"},
		"a server below a path":  {"https://models.example/team/see/v1/", "", "https://models.example/team/see/v1/responses"},
	} {
		t.Run(name, func(t *testing.T) {
			if to, _ := wire.Sent(t, exchange.Endpoint{BaseURL: tc.base, APIVersion: tc.version}, wire.Look()); to.String() != tc.url {
				t.Errorf("sent to %s, want %s", to, tc.url)
			}
		})
	}
}

func FuzzRequest(f *testing.F) { wire.FuzzRequest(f, `"}]}]`, func(*testing.T, *url.URL) {}) }

func BenchmarkRequestOf5MiB(b *testing.B) { wire.BenchmarkRequest(b) }
