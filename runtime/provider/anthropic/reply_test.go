// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
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
			got, err := call(t, look(tc.model), "10s", says(message(tc.stop, tc.content)))
			if err != nil {
				t.Fatal(err)
			}
			want := provider.Reply{Text: tc.want, Model: "claude-see-2026", Usage: provider.Usage{InputTokens: 1024, OutputTokens: 33}}
			if got != want {
				t.Errorf("reply = %+v, want %+v", got, want)
			}
		})
	}
}

// status answers with a status, a body and headers.
func status(code int, text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// vendorError is an error as Anthropic writes it. Its message may hold anything.
func vendorError(kind string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + key + `"},"request_id":"req_1"}`
}

func TestFailures(t *testing.T) {
	text := `[{"type":"text","text":"{\"ty` + key + `"}]`
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
		after     time.Duration
		says      string
	}{
		"a refused key":                    {status(401, vendorError("authentication_error")), "Unauthorized", false, 0, "401 (authentication_error)"},
		"a forbidden model":                {status(403, vendorError("permission_error")), "Unauthorized", false, 0, "403 (permission_error)"},
		"a missing model":                  {status(404, vendorError("not_found_error")), "UpstreamStatus", false, 0, "404 (not_found_error)"},
		"a request over 32 MB":             {status(413, vendorError("request_too_large")), "RequestTooLarge", false, 0, "413"},
		"a rate limit":                     {status(429, vendorError("rate_limit_error"), "Retry-After", "7"), "RateLimited", true, 7 * time.Second, "rate"},
		"a broken provider":                {status(500, vendorError("api_error")), "UpstreamStatus", true, 0, "500 (api_error)"},
		"an overloaded provider":           {status(529, vendorError("overloaded_error")), "UpstreamStatus", true, 0, "529 (overloaded_error)"},
		"a gateway that timed out":         {status(504, "<html>"), "Timeout", true, 0, "504"},
		"a bad request":                    {status(400, vendorError("invalid_request_error")), "UpstreamStatus", false, 0, "400 (invalid_request_error)"},
		"an image over the limit":          {status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 10 MB maximum: 23045044 bytes > 10485760 bytes"}}`), "ImageRefused", false, 0, "image"},
		"a redirect to another host":       {status(307, "", "Location", "https://elsewhere.example/"), "UpstreamStatus", false, 0, "307"},
		"no JSON":                          {status(200, "hello "+key), "InvalidResponse", false, 0, "not a message"},
		"a page of HTML":                   {status(200, "<html>"+key), "InvalidResponse", false, 0, "not a message"},
		"JSON of another shape":            {status(200, `{"content":"`+key+`"}`), "InvalidResponse", false, 0, "not a message"},
		"a list":                           {status(200, `[]`), "InvalidResponse", false, 0, "not a message"},
		"an error with status 200":         {status(200, vendorError("invalid_request_error")), "UpstreamStatus", false, 0, "invalid_request_error"},
		"an overload with status 200":      {status(200, vendorError("overloaded_error")), "UpstreamStatus", true, 0, "overloaded_error"},
		"an error that says nothing":       {status(200, `{"type":"error"}`), "UpstreamStatus", false, 0, "error"},
		"no content":                       {status(200, message("end_turn", `[]`)), "Empty", true, 0, "no text"},
		"null content":                     {status(200, message("end_turn", `null`)), "Empty", true, 0, "no text"},
		"nothing but thinking":             {status(200, message("end_turn", `[{"type":"thinking","thinking":"hm"}]`)), "Empty", true, 0, "no text"},
		"a tool that was not asked for":    {status(200, message("tool_use", `[`+ourTool+`]`)), "Empty", true, 0, "no text"},
		"a refusal":                        {status(200, message("refusal", text)), "Refused", false, 0, "refused"},
		"a reply that was cut off":         {status(200, message("max_tokens", text)), "Truncated", false, 0, "cut off"},
		"thinking that was cut off":        {status(200, message("max_tokens", `[{"type":"thinking","thinking":"hm"}]`)), "Truncated", false, 0, "cut off"},
		"a context window that is full":    {status(200, message("model_context_window_exceeded", text)), "Truncated", false, 0, "cut off"},
		"a reply over the limit":           {status(200, strings.Repeat(" ", transport.MaxResponseBytes+1)), "InvalidResponse", false, 0, "8388608"},
		"a status of success without text": {status(204, ""), "UpstreamStatus", false, 0, "204"},
		"a connection that is cut": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		}, "Connection", true, 0, "reached"},
		"a body that ends early": {status(200, key, "Content-Length", "100"), "Connection", true, 0, "reached"},
		"no answer in time": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "Timeout", true, 0, "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := "10s"
			if tc.reason == "Timeout" {
				timeout = "50ms"
			}
			_, err := call(t, look(newModel), timeout, tc.handler)
			if err == nil {
				t.Fatal("no error")
			}
			f := fault.As(err)
			if f.Kind != fault.VisionObservationFailed || f.Reason != tc.reason || f.Retryable != tc.retryable || f.RetryAfter != tc.after {
				t.Errorf("fault = %s %s retryable=%v after=%v; want %s retryable=%v after=%v", f.Kind, f.Reason, f.Retryable, f.RetryAfter, tc.reason, tc.retryable, tc.after)
			}
			if !strings.Contains(f.Message, tc.says) {
				t.Errorf("message %q does not say %q", f.Message, tc.says)
			}
			if all := fmt.Sprintf("%v %v %v", f, f.Details, f.Cause); strings.Contains(all, "secret") || strings.Contains(all, "<html") {
				t.Errorf("the fault repeats the key or the body: %s", all)
			}
		})
	}
}

func TestARepliesCostIsInTheFault(t *testing.T) {
	for _, stop := range []string{"max_tokens", "refusal", "end_turn"} {
		_, err := call(t, look(newModel), "10s", says(message(stop, `[]`)))
		if f := fault.As(err); f.Details["input_tokens"] != int64(1024) || f.Details["output_tokens"] != int64(33) {
			t.Errorf("%s: details = %v", stop, f.Details)
		}
	}
}

func TestAProviderThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = client(t, "http://"+l.Addr().String(), "10s").Observe(context.Background(), look(newModel))
	if f := fault.As(err); f.Reason != "Connection" || !f.Retryable {
		t.Errorf("fault = %+v", f)
	}
}

// refusing is a server that refuses a request that has the member, with a
// status, and keeps what it was sent.
func refusing(t *testing.T, member string, code int, sent *[]wire) *anthropic.Client {
	return serve(t, "10s", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var got wire
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		*sent = append(*sent, got)
		if strings.Contains(string(body), `"`+member+`":`) {
			status(code, vendorError("invalid_request_error"))(w, r)
			return
		}
		_, _ = io.WriteString(w, answer)
	})
}

func TestAModelThatRefusesStructuredOutputIsAskedOnceMoreWithoutAndThenNeverAgain(t *testing.T) {
	for model, member := range map[string]string{
		newModel:                           "output_config",
		oldModel:                           "tool_choice",
		"us.anthropic.claude-opus-4-7-v1":  "output_config",
		"vendor-of-imitations/see-through": "output_config",
	} {
		t.Run(model, func(t *testing.T) {
			var sent []wire
			c := refusing(t, member, 400, &sent)
			for range 2 {
				if got, err := c.Observe(context.Background(), look(model)); err != nil || got.Text != "ok" {
					t.Fatal(got, err)
				}
			}
			if len(sent) != 3 {
				t.Fatalf("%d requests were sent, want 2 and then 1", len(sent))
			}
			for i, w := range sent[1:] {
				if w.OutputConfig != nil || w.Tools != nil || w.ToolChoice != nil || w.System == "" || w.MaxTokens == 0 {
					t.Errorf("request %d still asks for structured output, or for less: %+v", i+1, w)
				}
			}
			bare := look(model)
			bare.Schema = nil
			if c.RequestBytes(look(model)) != c.RequestBytes(bare) {
				t.Error("RequestBytes does not know of the refusal")
			}
			if _, err := c.Observe(context.Background(), look("claude-sonnet-4-5")); err != nil {
				t.Error(err)
			}
			if sent[3].OutputConfig == nil {
				t.Error("one model's refusal is held against another")
			}
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
		sent := 0
		_, err := call(t, look(tc.model), "10s", func(w http.ResponseWriter, r *http.Request) {
			sent++
			status(400, `{"type":"error","error":{"type":"invalid_request_error","param":"`+tc.param+`"}}`)(w, r)
		})
		if err == nil || sent != tc.requests {
			t.Errorf("%s, refused for its %s, was asked %d times, want %d", tc.model, tc.param, sent, tc.requests)
		}
	}
}

func TestOtherRefusalsAreNotAskedAgain(t *testing.T) {
	for _, code := range []int{401, 403, 404, 413, 429, 500} {
		var sent []wire
		if _, err := refusing(t, "model", code, &sent).Observe(context.Background(), look(newModel)); err == nil || len(sent) != 1 {
			t.Errorf("status %d: %d requests and %v", code, len(sent), err)
		}
	}
}

func FuzzReply(f *testing.F) {
	tool := "structured_response_visual_observation_v1"
	for _, seed := range []string{
		answer, message("tool_use", `[`+ourTool+`]`), message("refusal", `[]`), `{"content":[null]}`, `{"content":[{"type":"text","text":1}]}`,
		`{"content":[{"type":"tool_use","name":"` + tool + `","input":" "}]}`, vendorError("api_error"), `null`, "\xff",
	} {
		f.Add([]byte(seed), tool)
		f.Add([]byte(seed), "")
	}
	f.Fuzz(func(t *testing.T, body []byte, tool string) {
		got, err := anthropic.ParseReply(body, tool)
		if err != nil {
			if fault.As(err).Kind != fault.VisionObservationFailed || fault.As(err).Reason == "Internal" {
				t.Errorf("the error is %v", err)
			}
			return
		}
		if strings.TrimSpace(got.Text) == "" {
			t.Error("a reply without text and without an error")
		}
	})
}
