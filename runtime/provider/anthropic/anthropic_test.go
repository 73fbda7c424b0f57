// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key      = "sk-ant-very-secret-0123456789"
	newModel = "claude-sonnet-5-5"
	oldModel = "claude-3-5-sonnet-20241022"
)

var wire = exchangetest.Protocol{
	New: anthropic.New, Path: "/v1/messages",
	Key: exchangetest.Key{Header: "X-Api-Key", Value: key}, Header: http.Header{"Anthropic-Version": {"2023-06-01"}},
	Model: newModel, Slot: `{"type":"base64","media_type":"image/png","data":""}`, Format: `"output_config":`,
	Schema: `{
			"type": "object",
			"properties": {"schema": {"const": "visual_observation.v1"}, "title": {"type": ["string", "null"], "minLength": 1}},
			"required": ["schema", "title"],
			"additionalProperties": false
		}`,
	Answer: message("end_turn", `[{"type":"text","text":"ok"}]`), Reply: "a message",
}

// message is a message with a stop reason and a content, which is JSON.
func message(stop, content string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-see-2026","stop_reason":"` + stop + `","content":` + content +
		`,"usage":{"input_tokens":1000,"cache_creation_input_tokens":20,"cache_read_input_tokens":4,"output_tokens":33}}`
}

func TestTheContractOfProtocols(t *testing.T) { wire.Contract(t) }

func TestTheBytesOfARequest(t *testing.T) {
	unformatted := wire.LookWith(oldModel)
	unformatted.Schema = nil
	wire.GoldenRequests(t, map[string]provider.Request{
		"a newer model with instructions and a schema": wire.Look(),
		"an older model with a forced tool":            wire.LookWith(oldModel),
		"an older model without a schema":              unformatted,
		"an output limit":                              exchangetest.Limited(wire.Look()),
		"plain":                                        exchangetest.Plain(newModel),
		"plain for the oldest that see":                exchangetest.Plain("claude-3-haiku-20240307"),
	})
}

func TestTheVersionIsOnceInTheAddress(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.anthropic.com":                       "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1":                    "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1/":                   "https://api.anthropic.com/v1/messages",
		"https://x.services.ai.azure.com/anthropic/":      "https://x.services.ai.azure.com/anthropic/v1/messages",
		"https://openrouter.ai/api/v1":                    "https://openrouter.ai/api/v1/messages",
		"http://gateway.models.svc:8080/team-a/anthropic": "http://gateway.models.svc:8080/team-a/anthropic/v1/messages",
		"https://gateway.example/notv1":                   "https://gateway.example/notv1/v1/messages",
	} {
		if got, _ := wire.Sent(t, exchange.Endpoint{BaseURL: base}, wire.Look()); got.String() != want {
			t.Errorf("%s gave %s, want %s", base, got, want)
		}
	}
}

func TestH43_TheTextIsCachedAndComesBeforeTheImageWhichArrivesWhole(t *testing.T) {
	req := wire.Look()
	wire.ImagesArriveWhole(t, req, func(t *testing.T, body []byte, encoded string) {
		var got struct{ Messages []any }
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		want := []any{map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "text", "text": req.Prompt, "cache_control": map[string]any{"type": "ephemeral"}},
			map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": encoded}},
		}}}
		if diff := cmp.Diff(want, got.Messages); diff != "" {
			t.Errorf("the content is not [cached text, image] (-want +got):\n%.2000s", diff)
		}
	})
}

func TestH49_TheInstructionsOccurOnce(t *testing.T) {
	wire.InstructionsOccurOnce(t, newModel, oldModel)
}

func FuzzRequest(f *testing.F) {
	f.Add(oldModel, wire.Slot, "image/png", []byte{})
	wire.FuzzRequest(f, `"}}]}]`, func(*testing.T, *url.URL) {})
}

func BenchmarkRequestOf5MiB(b *testing.B) { wire.BenchmarkRequest(b) }
