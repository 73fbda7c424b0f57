// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

// holding is a completed response with items, which are JSON.
func holding(items ...string) string {
	return `{"status":"completed","model":"see-2-2026","output":[` + strings.Join(items, ",") + `]}`
}

// key stands for what a provider may repeat, and nobody else.
var key = exchangetest.Bearer.Value

func TestRepliesThatHoldText(t *testing.T) {
	counted := provider.Usage{InputTokens: 1024, OutputTokens: 33}
	a := message(text(`"a"`))
	for name, tc := range map[string]struct {
		body, want string
		usage      provider.Usage
	}{
		"a text":                          {reply(text(`" {\"a\":1} "`)), `{"a":1}`, counted},
		"texts, blank ones skipped":       {reply(`[{"type":"output_text","text":" a "},{"type":"output_text","text":" "},{"type":"output_text","text":"b"}]`), "a\n\nb", counted},
		"parts of a kind we do not know":  {reply(`[{"type":"output_audio","text":{"a":1}},null,{"type":"output_text","text":"a"}]`), "a", counted},
		"several messages":                {holding(a, message(text(`"b"`))), "a\n\nb", provider.Usage{}},
		"items of other kinds and shapes": {holding(`{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}],"summary":[{"type":"summary_text","text":"hm"}]}`, `{"type":"web_search_call","content":"x"}`, `{"content":7}`, `null`, a), "a", provider.Usage{}},
		"a comment on the way":            {holding(`{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"hm"}]}`, `{"type":"message","phase":"final_answer","content":[{"type":"output_text","text":"a"}]}`), "a", provider.Usage{}},
		"no status":                       {`{"model":"see-2-2026","output":[` + a + `]}`, "a", provider.Usage{}},
		"counts that are none":            {`{"model":"see-2-2026","output":[` + a + `],"usage":{"input_tokens":12.0,"output_tokens":"7"}}`, "a", provider.Usage{InputTokens: 12}},
		"nulls where nothing is to say":   {`{"model":"see-2-2026","status":"completed","error":null,"incomplete_details":null,"usage":null,"output":[` + a + `]}`, "a", provider.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			wire.Reads(t, wire.Look(), tc.body, provider.Reply{Text: tc.want, Model: "see-2-2026", Usage: tc.usage})
		})
	}
}

func TestRepliesThatHoldNone(t *testing.T) {
	none, counted := provider.Usage{}, provider.Usage{InputTokens: 11, OutputTokens: 7}
	incomplete := func(reason string, items ...string) string {
		return `{"status":"incomplete","incomplete_details":` + reason + `,"output":[` + strings.Join(items, ",") + `],"usage":{"input_tokens":11,"output_tokens":7}}`
	}
	failed := func(code string) string {
		return `{"status":"failed","output":[],"error":{"code":` + code + `,"message":"` + key + `"}}`
	}
	half := message(text(`"{\"ty"`))
	for name, tc := range map[string]struct {
		body      string
		reason    string
		retryable bool
		says      string
		cost      provider.Usage
	}{
		"half of the JSON":                    {reply(text(`"a"`))[:150], "InvalidResponse", false, "not a response", none},
		"JSON of another shape":               {`{"output":"` + key + `"}`, "InvalidResponse", false, "not a response", none},
		"content of another shape":            {reply(`"` + key + `"`), "InvalidResponse", false, "not a response", none},
		"a text that is none":                 {reply(text(`7`)), "InvalidResponse", false, "not a response", none},
		"an error at the top":                 {`{"error":{"code":"server_error","message":"` + key + `"}}`, "UpstreamStatus", true, "server_error", none},
		"a failure of the server":             {failed(`"server_error"`), "UpstreamStatus", true, "server_error", none},
		"a failure by the rate":               {failed(`"rate_limit_exceeded"`), "RateLimited", true, "rate_limit_exceeded", none},
		"a failure by the image":              {failed(`"image_too_large"`), "ImageRefused", false, "image_too_large", none},
		"a failure by policy":                 {failed(`"image_content_policy_violation"`), "Refused", false, "image_content_policy_violation", none},
		"a failure of a kind we do not know":  {failed(`"` + key + `"`), "UpstreamStatus", false, "with an error", none},
		"a failure that does not say why":     {`{"status":"failed","output":[],"error":null}`, "UpstreamStatus", true, "response is failed", none},
		"a response that was cancelled":       {`{"status":"cancelled","output":[]}`, "UpstreamStatus", true, "response is cancelled", none},
		"a response that is not ready":        {`{"status":"in_progress","output":[]}`, "UpstreamStatus", true, "response is unfinished", none},
		"a status that repeats the key":       {`{"status":"` + key + `","output":[]}`, "UpstreamStatus", true, "response is unfinished", none},
		"no output":                           {`{"status":"completed","output":[]}`, "Empty", true, "no text", none},
		"null for output":                     {`{"status":"completed","output":null}`, "Empty", true, "no text", none},
		"nothing":                             {`null`, "Empty", true, "no text", none},
		"thoughts alone":                      {holding(`{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]}`), "Empty", true, "no text", none},
		"a message without content":           {holding(message(`null`)), "Empty", true, "no text", none},
		"a blank text":                        {reply(text(`" \n"`)), "Empty", true, "no text", provider.Usage{InputTokens: 1024, OutputTokens: 33}},
		"a refusal":                           {holding(message(`[{"type":"refusal","refusal":"I will not, ` + key + `"}]`)), "Refused", false, "refused", none},
		"a refusal after a text":              {holding(half, message(`[{"type":"refusal","refusal":"`+key+`"}]`)), "Refused", false, "refused", none},
		"a content filter":                    {incomplete(`{"reason":"content_filter"}`, half), "Refused", false, "filter", counted},
		"a reply that was cut off":            {incomplete(`{"reason":"max_output_tokens"}`, half), "Truncated", false, "cut off", counted},
		"a reply that was cut off in thought": {incomplete(`{"reason":"max_output_tokens"}`), "Truncated", false, "cut off", counted},
		"a reply that ended for no reason":    {incomplete(`null`, half), "UpstreamStatus", true, "response is incomplete", none},
	} {
		t.Run(name, func(t *testing.T) { wire.FailsToRead(t, tc.body, tc.reason, tc.retryable, tc.says, tc.cost) })
	}
}

func FuzzReply(f *testing.F) {
	wire.FuzzReply(f, []provider.Request{wire.Look()},
		reply(text(`"a"`)), holding(message(`[{"type":"refusal"}]`)), `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`,
		`{"status":"failed","error":{"code":"server_error"}}`, `{"output":[null,{"type":"message","content":[null]}]}`, `{"output":{}}`,
	)
}
