// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

const ourTool = `{"type":"tool_use","id":"toolu_1","name":"structured_response_visual_observation_v1","input":{"a":{"b":1}}}`

func TestRepliesThatHoldText(t *testing.T) {
	text := func(s string) string { return `{"type":"text","text":"` + s + `","citations":null}` }
	for name, tc := range map[string]struct{ model, stop, content, want string }{
		"a text":                              {newModel, "end_turn", `[` + text(" {} ") + `]`, "{}"},
		"texts, blank ones skipped":           {newModel, "end_turn", `[` + text(" a ") + `,` + text("  ") + `,` + text("b") + `]`, "a\n\nb"},
		"a stop sequence":                     {newModel, "stop_sequence", `[` + text("a") + `]`, "a"},
		"a stop reason that is not known yet": {newModel, "tired", `[` + text("a") + `]`, "a"},
		"thinking before the text": {newModel, "end_turn",
			`[{"type":"thinking","thinking":"hm","signature":"x","text":"no"},{"type":"redacted_thinking","data":"x"},` + text("a") + `]`, "a"},
		"blocks that are not known yet":  {newModel, "end_turn", `[{"type":"dream","text":{"rem":true}},` + text("a") + `,null]`, "a"},
		"H44: a call of the forced tool": {oldModel, "tool_use", `[` + ourTool + `]`, `{"a":{"b":1}}`},
		"a call of the forced tool after a preamble": {oldModel, "tool_use",
			`[` + text("Here {is} it:") + `,` + ourTool + `]`, `{"a":{"b":1}}`},
		"a text although a tool was forced": {oldModel, "end_turn", `[` + text("a") + `]`, "a"},
		"a call of another tool beside a text": {oldModel, "tool_use",
			`[{"type":"tool_use","name":"search","input":{"q":1}},` + text("a") + `]`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			wire.Reads(t, wire.LookWith(tc.model), message(tc.stop, tc.content),
				provider.Reply{Text: tc.want, Model: "claude-see-2026", Usage: provider.Usage{InputTokens: 1024, OutputTokens: 33}})
		})
	}
}

// vendorError is an error as Anthropic writes it. Its message may hold anything.
func vendorError(kind string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + key + `"},"request_id":"req_1"}`
}

func TestFailures(t *testing.T) {
	status := exchangetest.Says
	text := `[{"type":"text","text":"{\"ty` + key + `"}]`
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
		after     time.Duration
		says      string
	}{
		"a refused key":                 {status(401, vendorError("authentication_error")), "Unauthorized", false, 0, "401 (authentication_error)"},
		"a forbidden model":             {status(403, vendorError("permission_error")), "Unauthorized", false, 0, "403 (permission_error)"},
		"a missing model":               {status(404, vendorError("not_found_error")), "UpstreamStatus", false, 0, "404 (not_found_error)"},
		"a request over 32 MB":          {status(413, vendorError("request_too_large")), "RequestTooLarge", false, 0, "413"},
		"a rate limit":                  {status(429, vendorError("rate_limit_error"), "Retry-After", "7"), "RateLimited", true, 7 * time.Second, "rate"},
		"a broken provider":             {status(500, vendorError("api_error")), "UpstreamStatus", true, 0, "500 (api_error)"},
		"an overloaded provider":        {status(529, vendorError("overloaded_error")), "UpstreamStatus", true, 0, "529 (overloaded_error)"},
		"a bad request":                 {status(400, vendorError("invalid_request_error")), "UpstreamStatus", false, 0, "400 (invalid_request_error)"},
		"an image over the limit":       {status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 10 MB maximum: 23045044 bytes > 10485760 bytes"}}`), "ImageRefused", false, 0, "image"},
		"JSON of another shape":         {status(200, `{"content":"`+key+`"}`), "InvalidResponse", false, 0, "not a message"},
		"an error with status 200":      {status(200, vendorError("invalid_request_error")), "UpstreamStatus", false, 0, "invalid_request_error"},
		"an overload with status 200":   {status(200, vendorError("overloaded_error")), "UpstreamStatus", true, 0, "overloaded_error"},
		"an error that says nothing":    {status(200, `{"type":"error"}`), "UpstreamStatus", false, 0, "error"},
		"no content":                    {status(200, message("end_turn", `[]`)), "Empty", true, 0, "no text"},
		"null content":                  {status(200, message("end_turn", `null`)), "Empty", true, 0, "no text"},
		"nothing but thinking":          {status(200, message("end_turn", `[{"type":"thinking","thinking":"hm"}]`)), "Empty", true, 0, "no text"},
		"a tool that was not asked for": {status(200, message("tool_use", `[`+ourTool+`]`)), "Empty", true, 0, "no text"},
		"a refusal":                     {status(200, message("refusal", text)), "Refused", false, 0, "refused"},
		"a reply that was cut off":      {status(200, message("max_tokens", text)), "Truncated", false, 0, "cut off"},
		"thinking that was cut off":     {status(200, message("max_tokens", `[{"type":"thinking","thinking":"hm"}]`)), "Truncated", false, 0, "cut off"},
		"a context window that is full": {status(200, message("model_context_window_exceeded", text)), "Truncated", false, 0, "cut off"},
	} {
		t.Run(name, func(t *testing.T) { wire.Fails(t, tc.handler, tc.reason, tc.retryable, tc.after, tc.says) })
	}
}

func TestARepliesCostIsInTheFault(t *testing.T) {
	for _, stop := range []string{"max_tokens", "refusal", "end_turn"} {
		_, err := wire.Read(wire.Look(), message(stop, `[]`))
		if f := exchangetest.Fault(t, err); f.Details["input_tokens"] != int64(1024) || f.Details["output_tokens"] != int64(33) {
			t.Errorf("%s: details = %v", stop, f.Details)
		}
	}
}

func TestAModelThatRefusesStructuredOutputIsAskedOnceMoreWithoutAndThenNeverAgain(t *testing.T) {
	for model, member := range map[string]string{
		newModel:                           "output_config",
		oldModel:                           "tool_choice",
		"us.anthropic.claude-opus-4-7-v1":  "output_config",
		"vendor-of-imitations/see-through": "output_config",
	} {
		t.Run(model, func(t *testing.T) {
			wire.FallsBack(t, wire.LookWith(model), `"`+member+`":`, 400, vendorError("invalid_request_error"))
		})
	}
}

func TestAServerThatNamesWhatItRefusesIsAskedAgainOnlyWhenItIsStructuredOutput(t *testing.T) {
	for _, tc := range []struct {
		model, param string
		requests     int
	}{
		{newModel, "output_config", 2}, {newModel, "output_config.format.schema", 2}, {newModel, "tool_choice", 1}, {newModel, "max_tokens", 1},
		{oldModel, "tool_choice", 2}, {oldModel, "output_config", 1}, {oldModel, "messages.0.content", 1},
	} {
		n := wire.Asked(t, wire.LookWith(tc.model), 400, `{"type":"error","error":{"type":"invalid_request_error","param":"`+tc.param+`"}}`)
		if n != tc.requests {
			t.Errorf("%s, refused for its %s, was asked %d times, want %d", tc.model, tc.param, n, tc.requests)
		}
	}
}

func FuzzReply(f *testing.F) {
	wire.FuzzReply(f, []provider.Request{wire.Look(), wire.LookWith(oldModel)},
		message("tool_use", `[`+ourTool+`]`), message("refusal", `[]`), `{"content":[null]}`, `{"content":[{"type":"text","text":1}]}`,
		`{"content":[{"type":"tool_use","name":"structured_response_visual_observation_v1","input":" "}]}`, vendorError("api_error"),
	)
}
