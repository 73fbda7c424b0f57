// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
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
			wire.Reads(t, wire.Look(), candidate(tc.finish, tc.content),
				provider.Reply{Text: tc.want, Model: "gemini-see-2026", Usage: provider.Usage{InputTokens: 1024, OutputTokens: 33}})
		})
	}
}

// vendorError is an error as Google writes it. Its message may hold anything.
func vendorError(code int, word string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":"%s","status":"%s"}}`, code, key, word)
}

func TestFailures(t *testing.T) {
	status := exchangetest.Says
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
		"a forbidden model":              {status(403, vendorError(403, "PERMISSION_DENIED")), "Unauthorized", false, 0, "403 (permission_denied)"},
		"a missing model":                {status(404, vendorError(404, "NOT_FOUND")), "UpstreamStatus", false, 0, "404 (not_found)"},
		"a rate limit":                   {status(429, vendorError(429, "RESOURCE_EXHAUSTED"), "Retry-After", "7"), "RateLimited", true, 7 * time.Second, "resource_exhausted"},
		"a broken provider":              {status(500, vendorError(500, "INTERNAL")), "UpstreamStatus", true, 0, "500 (internal)"},
		"an overloaded provider":         {status(503, vendorError(503, "UNAVAILABLE")), "UpstreamStatus", true, 0, "503 (unavailable)"},
		"a gateway that timed out":       {status(504, vendorError(504, "DEADLINE_EXCEEDED")), "Timeout", true, 0, "504"},
		"a bad request":                  {status(400, vendorError(400, "INVALID_ARGUMENT")), "UpstreamStatus", false, 0, "400 (invalid_argument)"},
		"an image that is none":          {status(400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Unable to process input image. Please retry or report"}}`), "ImageRefused", false, 0, "image"},
		"JSON of another shape":          {status(200, `{"candidates":"`+key+`"}`), "InvalidResponse", false, 0, "not a generateContent response"},
		"an error with status 200":       {status(200, vendorError(400, "FAILED_PRECONDITION")), "UpstreamStatus", false, 0, "failed_precondition"},
		"an overload with status 200":    {status(200, vendorError(503, "UNAVAILABLE")), "UpstreamStatus", true, 0, "unavailable"},
		"nothing at all":                 {status(200, `{}`), "Empty", true, 0, "no candidate"},
		"no candidates":                  {status(200, `{"candidates":[]}`), "Empty", true, 0, "no candidate"},
		"a candidate without content":    {status(200, `{"candidates":[{"finishReason":"STOP"}]}`), "Empty", true, 0, "no text"},
		"a candidate without parts":      {status(200, candidate("STOP", `{"role":"model"}`)), "Empty", true, 0, "no text"},
		"nothing but thoughts":           {status(200, candidate("STOP", `{"parts":[{"text":"hm","thought":true}]}`)), "Empty", true, 0, "no text"},
		"a malformed call":               {status(200, candidate("MALFORMED_FUNCTION_CALL", `{}`)), "Empty", true, 0, "no text"},
		"a blocked prompt":               {status(200, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"`+key+`"}}`), "Refused", false, 0, "prompt"},
		"a reply that was cut off":       {status(200, candidate("MAX_TOKENS", text)), "Truncated", false, 0, "cut off"},
		"thoughts that were cut off":     {status(200, candidate("MAX_TOKENS", `{"role":"model"}`)), "Truncated", false, 0, "cut off"},
		"a reply that goes on elsewhere": {status(200, candidate("CONTINUATION", text)), "Truncated", false, 0, "cut off"},
	} {
		t.Run(name, func(t *testing.T) { wire.Fails(t, tc.handler, tc.reason, tc.retryable, tc.after, tc.says) })
	}
}

func TestAFiltersFinishReasonsAreRefusals(t *testing.T) {
	for _, reason := range []string{
		"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER",
	} {
		_, err := wire.Read(wire.Look(), candidate(reason, `{"parts":[{"text":"a"}]}`))
		if f := exchangetest.Fault(t, err); f.Reason != "Refused" || f.Retryable {
			t.Errorf("%s: %v", reason, err)
		}
	}
	for _, reason := range []string{"SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"} {
		_, err := wire.Read(wire.Look(), `{"promptFeedback":{"blockReason":"`+reason+`"},`+usage+`}`)
		if f := exchangetest.Fault(t, err); f.Reason != "Refused" || f.Retryable || f.Details["input_tokens"] != int64(1024) {
			t.Errorf("%s: %v %v", reason, err, f.Details)
		}
	}
}

func TestH45_NoPartsAndMaxTokensIsTruncatedAndItsUsageIsInTheFault(t *testing.T) {
	_, err := wire.Read(wire.Look(),
		`{"candidates":[{"content":{"parts":[]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":11,"thoughtsTokenCount":7}}`)
	if f := exchangetest.Fault(t, err); f.Reason != "Truncated" || f.Details["input_tokens"] != int64(11) || f.Details["output_tokens"] != int64(7) {
		t.Errorf("%v with %v", err, f.Details)
	}
}

func TestAModelThatRefusesStructuredOutputIsAskedOnceMoreWithoutAndThenNeverAgain(t *testing.T) {
	for model, member := range map[string]string{newModel: "responseJsonSchema", oldModel: "responseSchema", "gemma-3-27b-it": "responseMimeType"} {
		t.Run(model, func(t *testing.T) {
			req := wire.LookWith(model)
			req.MaxOutputTokens = 9
			wire.FallsBack(t, req, `"`+member+`":`, 400, vendorError(400, "INVALID_ARGUMENT"))
			req.Schema = nil
			if body := wire.Body(t, req); !bytes.Contains(body, []byte(`"generationConfig":{"maxOutputTokens":9}`)) {
				t.Errorf("without structured output it still asks for some, or for less: %s", body)
			}
		})
	}
}

func TestAServerThatNamesWhatItRefusesIsAskedAgainOnlyWhenItIsStructuredOutput(t *testing.T) {
	for param, requests := range map[string]int{"generationConfig": 2, "generationConfig.responseJsonSchema": 2, "contents": 1} {
		if n := wire.Asked(t, wire.Look(), 400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","param":"`+param+`"}}`); n != requests {
			t.Errorf("refused for its %s, it was asked %d times, want %d", param, n, requests)
		}
	}
}

func FuzzReply(f *testing.F) {
	wire.FuzzReply(f, []provider.Request{wire.Look()},
		candidate("MAX_TOKENS", `{}`), candidate("STOP", `{"parts":[null,{"thought":true,"text":"x"}]}`), `{"candidates":[null]}`,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`, vendorError(503, "UNAVAILABLE"),
	)
}
