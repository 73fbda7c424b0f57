// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

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
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

func TestRepliesThatHoldText(t *testing.T) {
	for name, tc := range map[string]struct{ finish, content, want string }{
		"a text":                        {"STOP", `{"role":"model","parts":[{"text":" {\"a\":1}\n"}]}`, `{"a":1}`},
		"H47: a content without a role": {"STOP", `{"parts":[{"text":"a"}]}`, "a"},
		"a text in several parts":       {"STOP", `{"role":"model","parts":[{"text":"{\"a\":\"b "},{"text":"c\"}"}]}`, `{"a":"b c"}`},
		"thoughts before the text":      {"STOP", `{"parts":[{"text":"hm","thought":true},{"text":"a","thoughtSignature":"c2ln"}]}`, "a"},
		"a signature without text":      {"STOP", `{"parts":[{"text":"a"},{"text":"","thoughtSignature":"c2ln"}]}`, "a"},
		"parts that are no text":        {"STOP", `{"parts":[{"executableCode":{"code":"x"}},null,{"text":"a"}]}`, "a"},
		"no finish reason":              {"", `{"parts":[{"text":"a"}]}`, "a"},
		"a finish reason not known":     {"TIRED", `{"parts":[{"text":"a"}]}`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := call(t, look(newModel), "10s", says(candidate(tc.finish, tc.content)))
			if err != nil {
				t.Fatal(err)
			}
			want := provider.Reply{Text: tc.want, Model: "gemini-see-2026", Usage: provider.Usage{InputTokens: 1024, OutputTokens: 33}}
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

// vendorError is an error as Google writes it. Its message may hold anything.
func vendorError(code int, word string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":"%s","status":"%s"}}`, code, key, word)
}

func TestFailures(t *testing.T) {
	text := `{"parts":[{"text":"{\"ty` + key + `"}]}`
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
		after     time.Duration
		says      string
	}{
		"a refused key": {status(401, vendorError(401, "UNAUTHENTICATED")), "Unauthorized", false, 0, "401 (unauthenticated)"},
		"a key that is none": {status(400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"`+key+`","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`),
			"Unauthorized", false, 0, "400 (invalid_argument, api_key_invalid)"},
		"a rate limit that its details time": {status(429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}}`),
			"RateLimited", true, 3500 * time.Millisecond, "resource_exhausted"},
		"a forbidden model":                {status(403, vendorError(403, "PERMISSION_DENIED")), "Unauthorized", false, 0, "403 (permission_denied)"},
		"a missing model":                  {status(404, vendorError(404, "NOT_FOUND")), "UpstreamStatus", false, 0, "404 (not_found)"},
		"a rate limit":                     {status(429, vendorError(429, "RESOURCE_EXHAUSTED"), "Retry-After", "7"), "RateLimited", true, 7 * time.Second, "resource_exhausted"},
		"a broken provider":                {status(500, vendorError(500, "INTERNAL")), "UpstreamStatus", true, 0, "500 (internal)"},
		"an overloaded provider":           {status(503, vendorError(503, "UNAVAILABLE")), "UpstreamStatus", true, 0, "503 (unavailable)"},
		"a gateway that timed out":         {status(504, vendorError(504, "DEADLINE_EXCEEDED")), "Timeout", true, 0, "504"},
		"a bad request":                    {status(400, vendorError(400, "INVALID_ARGUMENT")), "UpstreamStatus", false, 0, "400 (invalid_argument)"},
		"an image that is none":            {status(400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Unable to process input image. Please retry or report"}}`), "ImageRefused", false, 0, "image"},
		"a redirect to another host":       {status(307, "", "Location", "https://elsewhere.example/"), "UpstreamStatus", false, 0, "307"},
		"no JSON":                          {status(200, "hello "+key), "InvalidResponse", false, 0, "not a generateContent response"},
		"a page of HTML":                   {status(200, "<html>"+key), "InvalidResponse", false, 0, "not a generateContent response"},
		"JSON of another shape":            {status(200, `{"candidates":"`+key+`"}`), "InvalidResponse", false, 0, "not a generateContent response"},
		"a list":                           {status(200, `[]`), "InvalidResponse", false, 0, "not a generateContent response"},
		"an error with status 200":         {status(200, vendorError(400, "FAILED_PRECONDITION")), "UpstreamStatus", false, 0, "failed_precondition"},
		"an overload with status 200":      {status(200, vendorError(503, "UNAVAILABLE")), "UpstreamStatus", true, 0, "unavailable"},
		"nothing at all":                   {status(200, `{}`), "Empty", true, 0, "no candidate"},
		"no candidates":                    {status(200, `{"candidates":[]}`), "Empty", true, 0, "no candidate"},
		"a candidate without content":      {status(200, `{"candidates":[{"finishReason":"STOP"}]}`), "Empty", true, 0, "no text"},
		"a candidate without parts":        {status(200, candidate("STOP", `{"role":"model"}`)), "Empty", true, 0, "no text"},
		"nothing but thoughts":             {status(200, candidate("STOP", `{"parts":[{"text":"hm","thought":true}]}`)), "Empty", true, 0, "no text"},
		"a malformed call":                 {status(200, candidate("MALFORMED_FUNCTION_CALL", `{}`)), "Empty", true, 0, "no text"},
		"a blocked prompt":                 {status(200, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"`+key+`"}}`), "Refused", false, 0, "prompt"},
		"a reply that was cut off":         {status(200, candidate("MAX_TOKENS", text)), "Truncated", false, 0, "cut off"},
		"thoughts that were cut off":       {status(200, candidate("MAX_TOKENS", `{"role":"model"}`)), "Truncated", false, 0, "cut off"},
		"a reply that goes on elsewhere":   {status(200, candidate("CONTINUATION", text)), "Truncated", false, 0, "cut off"},
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

func TestAFiltersFinishReasonsAreRefusals(t *testing.T) {
	for _, reason := range []string{
		"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER",
	} {
		_, err := gemini.ParseReply([]byte(candidate(reason, `{"parts":[{"text":"a"}]}`)))
		if f := fault.As(err); f.Reason != "Refused" || f.Retryable {
			t.Errorf("%s: %v", reason, err)
		}
	}
	for _, reason := range []string{"SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"} {
		_, err := gemini.ParseReply([]byte(`{"promptFeedback":{"blockReason":"` + reason + `"},` + usage + `}`))
		if f := fault.As(err); f.Reason != "Refused" || f.Retryable || f.Details["input_tokens"] != int64(1024) {
			t.Errorf("%s: %v %v", reason, err, f.Details)
		}
	}
}

func TestH45_NoPartsAndMaxTokensIsTruncatedAndItsUsageIsInTheFault(t *testing.T) {
	_, err := call(t, look(newModel), "10s", says(
		`{"candidates":[{"content":{"parts":[]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":11,"thoughtsTokenCount":7}}`))
	if f := fault.As(err); f.Reason != "Truncated" || f.Details["input_tokens"] != int64(11) || f.Details["output_tokens"] != int64(7) {
		t.Errorf("%v with %v", err, f.Details)
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

func TestAModelThatRefusesStructuredOutputIsAskedOnceMoreWithoutAndThenNeverAgain(t *testing.T) {
	for model, member := range map[string]string{newModel: "responseJsonSchema", oldModel: "responseSchema", "gemma-3-27b-it": "responseMimeType"} {
		t.Run(model, func(t *testing.T) {
			var sent []wire
			c := serve(t, "10s", func(w http.ResponseWriter, r *http.Request) {
				var got wire
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
					t.Error(err)
				}
				sent = append(sent, got)
				if got.GenerationConfig[member] != nil {
					status(400, vendorError(400, "INVALID_ARGUMENT"))(w, r)
					return
				}
				_, _ = io.WriteString(w, answer)
			})
			req := look(model)
			req.MaxOutputTokens = 9
			for range 2 {
				if got, err := c.Observe(context.Background(), req); err != nil || got.Text != "ok" {
					t.Fatal(got, err)
				}
			}
			if len(sent) != 3 {
				t.Fatalf("%d requests were sent, want 2 and then 1", len(sent))
			}
			for i, w := range sent[1:] {
				if len(w.GenerationConfig) != 1 || string(w.GenerationConfig["maxOutputTokens"]) != "9" || len(w.SystemInstruction.Parts) != 1 {
					t.Errorf("request %d still asks for structured output, or for less: %+v", i+1, w)
				}
			}
			bare := req
			bare.Schema = nil
			if c.RequestBytes(req) != c.RequestBytes(bare) {
				t.Error("RequestBytes does not know of the refusal")
			}
		})
	}
}

func TestAServerThatNamesWhatItRefusesIsAskedAgainOnlyWhenItIsStructuredOutput(t *testing.T) {
	for param, requests := range map[string]int{"generationConfig": 2, "generationConfig.responseJsonSchema": 2, "contents": 1} {
		sent := 0
		_, err := call(t, look(newModel), "10s", func(w http.ResponseWriter, r *http.Request) {
			sent++
			status(400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","param":"`+param+`"}}`)(w, r)
		})
		if err == nil || sent != requests {
			t.Errorf("refused for its %s, it was asked %d times, want %d", param, sent, requests)
		}
	}
}

func TestOtherRefusalsAreNotAskedAgain(t *testing.T) {
	badKey := `{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`
	for _, code := range []int{400, 401, 403, 404, 413, 429, 500} {
		sent := 0
		c := serve(t, "10s", func(w http.ResponseWriter, r *http.Request) {
			sent++
			status(code, badKey)(w, r)
		})
		if _, err := c.Observe(context.Background(), look(newModel)); err == nil || sent != 1 {
			t.Errorf("status %d: %d requests and %v", code, sent, err)
		}
	}
}

func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		answer, candidate("MAX_TOKENS", `{}`), candidate("STOP", `{"parts":[null,{"thought":true,"text":"x"}]}`), `{"candidates":[null]}`,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`, vendorError(503, "UNAVAILABLE"), `null`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := gemini.ParseReply(body)
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
