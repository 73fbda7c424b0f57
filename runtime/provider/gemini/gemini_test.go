// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var wire = exchangetest.Protocol{
	New: gemini.New, Base: "/v1beta/", Path: "/v1beta/models/{model}:generateContent",
	Key:   exchangetest.Key{Header: "X-Goog-Api-Key", Value: key},
	Model: newModel, Slot: `{"mimeType":"image/png","data":""}`, Format: `"responseJsonSchema":`,
	Schema: `{
			"type": "object",
			"properties": {"schema": {"const": "visual_observation.v1"}, "title": {"type": ["string", "null"]}},
			"required": ["schema", "title"],
			"additionalProperties": false
		}`,
	Answer: candidate("STOP", `{"role":"model","parts":[{"text":"ok"}]}`), Reply: "a generateContent response",
}

const (
	key      = "AIza-very-secret-0123456789"
	newModel = "gemini-3.1-flash"
	oldModel = "gemini-2.0-flash"
)

const usage = `"usageMetadata":{"promptTokenCount":1024,"candidatesTokenCount":30,"thoughtsTokenCount":3,"totalTokenCount":1057}`

// candidate is a response with one candidate: its finish reason and its content.
func candidate(finish, content string) string {
	return `{"candidates":[{"finishReason":"` + finish + `","index":0,"content":` + content + `}],` + usage + `,"modelVersion":"gemini-see-2026","responseId":"x"}`
}

func TestTheContractOfProtocols(t *testing.T) { wire.Contract(t) }

func TestTheBytesOfARequest(t *testing.T) {
	wire.GoldenRequests(t, map[string]provider.Request{
		"a newer model with instructions and a schema": wire.Look(),
		"an older model with another form of schema":   wire.LookWith(oldModel),
		"an output limit":              exchangetest.Limited(exchangetest.Plain(newModel)),
		"an output limit and a schema": exchangetest.Limited(wire.Look()),
		"plain":                        exchangetest.Plain(newModel),
	}, "text_image_text.json")
}

func TestH52_PartsKeepTheOrderTextImageText(t *testing.T) {
	got, err := gemini.EncodeAround(wire.Look(), "before", "after")
	if err != nil {
		t.Fatal(err)
	}
	exchangetest.Golden(t, "text_image_text.json", got)
	before, image, after := bytes.Index(got, []byte("before")), bytes.Index(got, []byte("iVBORw0KGgo")), bytes.Index(got, []byte("after"))
	if before < 0 || image < before || after < image {
		t.Errorf("the parts are at %d, %d and %d", before, image, after)
	}
}

func TestTheAddressOfAModel(t *testing.T) {
	const base = "https://generativelanguage.googleapis.com/v1beta"
	for model, want := range map[string]string{
		"gemini-2.5-flash":        "/models/gemini-2.5-flash:generateContent",
		"models/gemini-2.5-flash": "/models/gemini-2.5-flash:generateContent",
		"tunedModels/mine-x1":     "/tunedModels/mine-x1:generateContent",
		"google/gemini-3":         "/models/google%2Fgemini-3:generateContent",
		"a?b#c d%e:f":             "/models/a%3Fb%23c%20d%25e%3Af:generateContent",
		"../../v1/secrets":        "/models/..%2F..%2Fv1%2Fsecrets:generateContent",
		"漢":                       "/models/%E6%BC%A2:generateContent",
	} {
		if got, _ := wire.Sent(t, exchange.Endpoint{BaseURL: base + "/"}, wire.LookWith(model)); got.String() != base+want {
			t.Errorf("%s gave %s, want %s", model, got, base+want)
		}
	}
}

func TestTheTextComesBeforeTheImageWhichArrivesWhole(t *testing.T) {
	req := wire.Look()
	wire.ImagesArriveWhole(t, req, func(t *testing.T, body []byte, encoded string) {
		var got struct{ Contents []any }
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		want := []any{map[string]any{"role": "user", "parts": []any{
			map[string]any{"text": req.Prompt},
			map[string]any{"inlineData": map[string]any{"mimeType": "image/png", "data": encoded}},
		}}}
		if diff := cmp.Diff(want, got.Contents); diff != "" {
			t.Errorf("the contents are not [text, image] (-want +got):\n%.2000s", diff)
		}
	})
}

func TestH49_TheInstructionsOccurOnce(t *testing.T) {
	wire.InstructionsOccurOnce(t, newModel, oldModel)
}

func FuzzRequest(f *testing.F) {
	f.Add(oldModel, wire.Slot, "image/png", []byte{})
	wire.FuzzRequest(f, `"}}]}]`, func(t *testing.T, to *url.URL) {
		if path := to.EscapedPath(); strings.Count(path, "/") != 2 || strings.Count(path, ":") != 1 || !strings.HasSuffix(path, ":generateContent") {
			t.Errorf("it is asked for at %s", path)
		}
	})
}

func BenchmarkRequestOf5MiB(b *testing.B) { wire.BenchmarkRequest(b) }
