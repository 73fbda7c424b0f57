// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

func TestWhatAStatusMeans(t *testing.T) {
	type row struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
		after     time.Duration
		says      string
	}
	coded := func(code string) string { return `{"error":{"message":"m ` + key + `","code":"` + code + `"}}` }
	for name, tc := range map[string]row{
		"a bad request":                             {answer(400, coded("invalid_value")), "UpstreamStatus", false, 0, "400 (invalid_value)"},
		"a refused key that the reply repeats":      {answer(401, coded(key)), "Unauthorized", false, 0, "401"},
		"an account that is to pay first":           {answer(402, `{"error":{"message":"Insufficient credits","code":402}}`), "QuotaExhausted", false, 0, "quota"},
		"a forbidden model":                         {answer(403, "no"), "Unauthorized", false, 0, "403"},
		"a missing model":                           {answer(404, coded("model_not_found")), "UpstreamStatus", false, 0, "404 (model_not_found)"},
		"a request that timed out":                  {answer(408, "", "Retry-After", "2"), "Timeout", true, 2 * time.Second, "408"},
		"a conflict":                                {answer(409, ""), "UpstreamStatus", false, 0, "409"},
		"a request that is too large":               {answer(413, "<html>"), "RequestTooLarge", false, 0, "413"},
		"a media type that is not taken":            {answer(415, ""), "ImageRefused", false, 0, "415"},
		"a request that does not hold":              {answer(422, `{"detail":[{"msg":"no"}]}`), "UpstreamStatus", false, 0, "422"},
		"a rate limit that says nothing":            {answer(429, ""), "RateLimited", true, 0, "rate"},
		"a rate limit with seconds":                 {answer(429, coded("rate_limit_exceeded"), "Retry-After", "7"), "RateLimited", true, 7 * time.Second, "rate_limit_exceeded"},
		"a rate limit with milliseconds":            {answer(429, "", "Retry-After-Ms", "1500", "Retry-After", "7"), "RateLimited", true, 1500 * time.Millisecond, "rate"},
		"a rate limit with words":                   {answer(429, "", "Retry-After", "soon"), "RateLimited", true, 0, "rate"},
		"a rate limit for a year":                   {answer(429, "", "Retry-After", "31536000"), "RateLimited", true, time.Hour, "rate"},
		"a quota that is used up":                   {answer(429, coded("insufficient_quota"), "Retry-After", "7"), "QuotaExhausted", false, 0, "insufficient_quota"},
		"a quota that is used up, said by the type": {answer(429, `{"error":{"type":"insufficient_quota","code":null}}`), "QuotaExhausted", false, 0, "insufficient_quota"},
		"a broken provider":                         {answer(500, "<html>"+key), "UpstreamStatus", true, 0, "500"},
		"something that is not built":               {answer(501, "", "Retry-After", "7"), "UpstreamStatus", false, 0, "501"},
		"a bad gateway":                             {answer(502, ""), "UpstreamStatus", true, 0, "502"},
		"an overloaded provider":                    {answer(503, "", "Retry-After", "3"), "UpstreamStatus", true, 3 * time.Second, "503"},
		"a gateway that timed out":                  {answer(504, ""), "Timeout", true, 0, "504"},
		"a provider that Anthropic calls overloaded": {answer(529, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`),
			"UpstreamStatus", true, 0, "529 (overloaded_error)"},
		"an error as Google writes it": {answer(503, `{"error":{"code":503,"status":"UNAVAILABLE"}}`), "UpstreamStatus", true, 0, "503 (unavailable)"},
		"a key that Google refuses": {answer(400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"m `+key+`","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"},{"@type":"type.googleapis.com/google.rpc.LocalizedMessage","message":"`+key+`"}]}}`),
			"Unauthorized", false, 0, "400 (invalid_argument, api_key_invalid)"},
		"a rate limit as Google writes it": {answer(429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[]},{"retryDelay":"45.5s"}]}}`),
			"RateLimited", true, 45500 * time.Millisecond, "resource_exhausted"},
		"a rate limit for a year as Google writes it": {answer(429, `{"error":{"details":[{"retryDelay":"31536000s"}]}}`), "RateLimited", true, time.Hour, "rate"},
		"a rate limit with a header and details":      {answer(429, `{"error":{"details":[{"retryDelay":"45s"}]}}`, "Retry-After", "7"), "RateLimited", true, 7 * time.Second, "rate"},
		"a rate limit with details that say nothing":  {answer(429, `{"error":{"details":[{"retryDelay":"-45s","reason":"`+key+`"},{"retryDelay":{"seconds":1}},{"retryDelay":"soon"}]}}`), "RateLimited", true, 0, "rate"},
		"an error with details of another shape":      {answer(429, `{"error":{"code":"slow_down","details":"`+key+`"}}`), "RateLimited", true, 0, "slow_down"},
		"an error as vLLM writes it":                  {answer(400, `{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`), "UpstreamStatus", false, 0, "400 (badrequesterror)"},
		"an error that is a bare text":                {answer(400, `{"error":"`+key+`"}`), "UpstreamStatus", false, 0, "status 400"},
		"an error in a list":                          {answer(400, `[{"error":{"code":"a"}}]`), "UpstreamStatus", false, 0, "status 400"},
		"a content filter":                            {answer(400, coded("content_filter")), "Refused", false, 0, "content_filter"},
		"a content filter that looked at the image":   {answer(400, coded("image_content_policy_violation")), "Refused", false, 0, "image_content_policy_violation"},
		"a redirect to another host":                  {answer(307, "", "Location", "https://elsewhere.example/"), "UpstreamStatus", false, 0, "redirects with status 307"},
		"a redirect that would lose the image":        {answer(302, "", "Location", "/elsewhere"), "UpstreamStatus", false, 0, "redirects with status 302"},
		"a redirect to nowhere":                       {answer(304, ""), "UpstreamStatus", false, 0, "304"},
		"a success without a reply":                   {answer(204, ""), "UpstreamStatus", false, 0, "204"},
		"a refusal worth repeating":                   {answer(400, "", "X-Should-Retry", "true", "Retry-After", "1"), "UpstreamStatus", true, time.Second, "400"},
		"a failure not worth repeating":               {answer(503, "", "X-Should-Retry", "false", "Retry-After", "1"), "UpstreamStatus", false, 0, "503"},
		"a word about repeating that is not known":    {answer(503, "", "X-Should-Retry", "perhaps"), "UpstreamStatus", true, 0, "503"},
		"a key of letters alone in place of a code":   {answer(400, coded("hf_"+strings.Repeat("secretKey", 4))), "UpstreamStatus", false, 0, "status 400"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := post(t, "10s", tc.handler)
			f := asFault(t, err)
			if f.Reason != tc.reason || f.Retryable != tc.retryable || f.RetryAfter != tc.after {
				t.Errorf("fault = %s retryable=%v after=%v; want %s retryable=%v after=%v", f.Reason, f.Retryable, f.RetryAfter, tc.reason, tc.retryable, tc.after)
			}
			if !strings.Contains(f.Message, tc.says) {
				t.Errorf("message %q does not say %q", f.Message, tc.says)
			}
			if status, ok := errors.AsType[*exchange.StatusError](err); !ok || f.Details["upstream_status"] != status.Status {
				t.Errorf("details %v do not give the status", f.Details)
			}
		})
	}
}

func TestAProviderWhoKnowsNeitherPathNorModelIsAMatterOfURLOrName(t *testing.T) {
	_, err := post(t, "10s", answer(404, ""))
	if f := asFault(t, err); !strings.Contains(f.RecoveryHint, "url") || !strings.Contains(f.RecoveryHint, "name") {
		t.Errorf("the hint is %q", f.RecoveryHint)
	}
}

// asFault is err as the fault that it must be, without key and image in any of its texts.
func asFault(t *testing.T, err error) *fault.Fault {
	t.Helper()
	return exchangetest.Fault(t, err, pictureBase64[:16])
}

func TestImagesThatProvidersRefuse(t *testing.T) {
	said := func(message string) string {
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": message + " " + key}})
		return string(body)
	}
	for name, tc := range map[string]struct {
		status int
		body   string
		image  bool
	}{
		"OpenAI, by code":                     {400, `{"error":{"code":"invalid_image_format"}}`, true},
		"OpenAI, unreadable base64":           {400, `{"error":{"code":"invalid_base64_image"}}`, true},
		"OpenAI, a type it does not know":     {400, said(`You uploaded an unsupported image. Please make sure your image is valid and has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].`), true},
		"OpenAI, too many patches":            {400, said(`The image you provided requires 41334 patches after processing, exceeding the limit of 30000. Please resize the image and try again.`), true},
		"Anthropic, too many bytes":           {400, said(`messages.0.content.1.image.source.base64: image exceeds 10 MB maximum: 23045044 bytes > 10485760 bytes`), true},
		"Anthropic, too many pixels":          {400, said(`At least one of the image dimensions exceed max allowed size: 8000 pixels`), true},
		"Anthropic, too many in many":         {400, said(`At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels`), true},
		"Anthropic, another type":             {400, said(`The image was specified using the image/png media type, but the image appears to be a image/jpeg image`), true},
		"Anthropic, a type it does not know":  {400, said(`messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`), true},
		"Anthropic, unreadable":               {400, said(`Could not process image`), true},
		"Google, unreadable":                  {400, said(`Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting`), true},
		"vLLM, unreadable, at the top":        {400, `{"object":"error","message":"cannot identify image file <_io.BytesIO object>","type":"BadRequestError","code":400}`, true},
		"LM Studio, as a bare text":           {400, `{"error":"invalid image input"}`, true},
		"words about something else":          {400, said(`This model's maximum context length is 8192 tokens`), false},
		"a broken provider that names images": {500, said(`image exceeds 10 MB maximum`), false},
		"words that come too late":            {400, said(strings.Repeat("x ", 4<<10) + "image exceeds 10 MB maximum"), false},
		"an error that is cut off":            {400, said("image exceeds 10 MB maximum" + strings.Repeat(" x", 64<<10)), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := post(t, "10s", answer(tc.status, tc.body))
			f := asFault(t, err)
			if got := f.Reason == "ImageRefused"; got != tc.image || got && (f.Retryable || f.RecoveryHint == "") {
				t.Errorf("fault = %+v, about the image: %v", f, tc.image)
			}
		})
	}
}

func TestAnErrorInAReplyOfStatus200(t *testing.T) {
	for raw, want := range map[string]struct {
		reason    string
		retryable bool
		says      string
	}{
		`{"code":"server_error","message":"` + key + `"}`:  {"UpstreamStatus", true, "error (server_error)"},
		`{"code":502,"message":"Provider returned error"}`: {"UpstreamStatus", true, "error"},
		`{"code":429}`:                   {"RateLimited", true, "error"},
		`{"code":"rate_limit_exceeded"}`: {"RateLimited", true, "rate_limit_exceeded"},
		`{"type":"overloaded_error"}`:    {"UpstreamStatus", true, "overloaded_error"},
		`{"code":401}`:                   {"Unauthorized", false, "error"},
		`{"code":402}`:                   {"QuotaExhausted", false, "error"},
		`{"code":"insufficient_quota"}`:  {"QuotaExhausted", false, "insufficient_quota"},
		`{"code":"invalid_image"}`:       {"ImageRefused", false, "invalid_image"},
		`{"code":"bio_policy"}`:          {"Refused", false, "bio_policy"},
		`{"code":200}`:                   {"UpstreamStatus", false, "error"},
		`{"code":1e99}`:                  {"UpstreamStatus", false, "error"},
		`{}`:                             {"UpstreamStatus", false, "error"},
		`"` + key + `"`:                  {"UpstreamStatus", false, "error"},
		`[]`:                             {"UpstreamStatus", false, "error"},
	} {
		f := exchange.ErrorIn(json.RawMessage(raw))
		if f == nil {
			t.Errorf("%s: no fault", raw)
			continue
		}
		_ = asFault(t, f)
		if f.Reason != want.reason || f.Retryable != want.retryable || !strings.Contains(f.Message, want.says) {
			t.Errorf("%s: fault = %+v, want %+v", raw, f, want)
		}
	}
	for _, none := range []json.RawMessage{nil, {}, json.RawMessage("null")} {
		if f := exchange.ErrorIn(none); f != nil {
			t.Errorf("%q is taken for an error: %v", none, f)
		}
	}
}

func TestHowLongAProviderAsksToWait(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		after, ms string
		want      time.Duration
	}{
		"nothing":                         {"", "", 0},
		"seconds":                         {" 12 ", "", 12 * time.Second},
		"seconds before now":              {"-5", "", 0},
		"a date":                          {"Mon, 30 Nov 2026 12:00:30 GMT", "", 30 * time.Second},
		"a date before now":               {"Mon, 30 Nov 2026 11:00:00 GMT", "", 0},
		"a date in a year":                {"Tue, 30 Nov 2027 12:00:00 GMT", "", time.Hour},
		"milliseconds before seconds":     {"9", "250", 250 * time.Millisecond},
		"milliseconds that are no number": {"9", "soon", 9 * time.Second},
		"negative milliseconds":           {"9", "-1", 9 * time.Second},
		"milliseconds without end":        {"", "1e30", time.Hour},
		"not a number":                    {"9", "NaN", 9 * time.Second},
		"more seconds than there are":     {"99999999999999999999", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set("Retry-After", tc.after)
			h.Set("Retry-After-Ms", tc.ms)
			if got := exchange.RetryAfter(h, now); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func FuzzReadStatus(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"code":"invalid_image_format","type":"invalid_request_error","param":"response_format","message":"m"}}`,
		`{"error":{"code":503,"status":"UNAVAILABLE","message":"m"}}`, `{"object":"error","message":"m","code":400}`,
		`{"error":"text"}`, `{"error":null}`, `{"error":[1]}`, `[]`, `null`, ``, `{"error":{"message":{"a":1},"param":7}}`, "\xff{",
	} {
		f.Add(400, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := exchange.ReadStatus(status, body)
		for _, w := range []string{e.Code, e.Type, e.Param} {
			if len(w) > 64 || strings.ContainsFunc(strings.ReplaceAll(w, "base64", ""), func(r rune) bool { return r != '_' && r != '.' && (r < 'a' || r > 'z') }) {
				t.Errorf("%q is no word", w)
			}
		}
		if e.Status != status || e.Error() == "" {
			t.Errorf("%+v of status %d", e, status)
		}
		if in := exchange.ErrorIn(body); in != nil && (in.Kind != fault.VisionObservationFailed || in.Reason == "" || len(in.Message) > 300) {
			t.Errorf("fault = %+v", in)
		}
	})
}
