// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

// key stands for what a provider may repeat, and nobody else.
var key = exchangetest.Bearer.Value

func TestRepliesThatHoldText(t *testing.T) {
	counted := provider.Usage{InputTokens: 1024, OutputTokens: 33}
	for name, tc := range map[string]struct {
		body, want string
		usage      provider.Usage
	}{
		"a string":                             {reply(`" {\"a\":1} "`), `{"a":1}`, counted},
		"parts, blank ones skipped":            {reply(`[{"type":"text","text":" a "},{"type":"text","text":"  "},{"type":"text","text":"b"}]`), "a\n\nb", counted},
		"parts without a type":                 {reply(`[{"text":"a"}]`), "a", counted},
		"parts of a kind we do not know":       {reply(`[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"image","text":{"a":1}},null,{"type":"text","text":"a"}]`), "a", counted},
		"parts that say what the model thinks": {reply(`[{"type":"reasoning","text":"hm"},{"type":"text","text":"a"}]`), "a", counted},
		"thoughts beside the content, as vLLM, DeepSeek and OpenRouter write them": {
			`{"model":"see-2-2026","choices":[{"finish_reason":"stop","message":{"content":"a","reasoning_content":"hm","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}}]}`, "a", provider.Usage{}},
		"a choice without a reason to stop": {`{"model":"see-2-2026","choices":[{"message":{"content":"a"}}]}`, "a", provider.Usage{}},
		"more choices than one":             {`{"model":"see-2-2026","choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}`, "a", provider.Usage{}},
		"errors that are null":              {`{"model":"see-2-2026","error":null,"choices":[{"error":null,"message":{"content":"a"}}]}`, "a", provider.Usage{}},
		"counts that are none":              {`{"model":"see-2-2026","choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":12.0,"completion_tokens":null}}`, "a", provider.Usage{InputTokens: 12}},
		"no counts":                         {`{"model":"see-2-2026","choices":[{"message":{"content":"a"}}],"usage":null}`, "a", provider.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			wire.Reads(t, wire.Look(), tc.body, provider.Reply{Text: tc.want, Model: "see-2-2026", Usage: tc.usage})
		})
	}
}

func TestRepliesThatHoldNone(t *testing.T) {
	none, counted := provider.Usage{}, provider.Usage{InputTokens: 11, OutputTokens: 7}
	stopped := func(why, content string) string {
		return `{"choices":[{"finish_reason":"` + why + `","message":{"content":` + content + `}}],"usage":{"prompt_tokens":11,"completion_tokens":7}}`
	}
	for name, tc := range map[string]struct {
		body      string
		reason    string
		retryable bool
		says      string
		cost      provider.Usage
	}{
		"half of the JSON":                        {reply(`"a"`)[:60], "InvalidResponse", false, "not a chat completion", none},
		"JSON of another shape":                   {`{"choices":"` + key + `"}`, "InvalidResponse", false, "not a chat completion", none},
		"content of another shape":                {reply(`{"a":"` + key + `"}`), "InvalidResponse", false, "not a chat completion", none},
		"parts of another shape":                  {reply(`["` + key + `"]`), "InvalidResponse", false, "not a chat completion", none},
		"a text that is none":                     {reply(`[{"type":"text","text":7}]`), "InvalidResponse", false, "not a chat completion", none},
		"an error":                                {`{"error":{"code":"server_error","message":"` + key + `"}}`, "UpstreamStatus", true, "server_error", none},
		"an error that OpenRouter gives a status": {`{"error":{"code":429,"message":"` + key + `"},"user_id":"x"}`, "RateLimited", true, "error", none},
		"an error in the choice":                  {`{"choices":[{"finish_reason":"error","error":{"code":502,"message":"` + key + `"},"message":{"content":"half"}}]}`, "UpstreamStatus", true, "error", none},
		"an error without a word":                 {stopped("error", `"half"`), "UpstreamStatus", true, "while it wrote", none},
		"no choices":                              {`{"choices":[]}`, "Empty", true, "no choice", none},
		"null for choices":                        {`{"choices":null}`, "Empty", true, "no choice", none},
		"a choice that is null":                   {`{"choices":[null]}`, "Empty", true, "no text", none},
		"null content":                            {stopped("stop", `null`), "Empty", true, "no text", counted},
		"blank content":                           {stopped("stop", `" \n"`), "Empty", true, "no text", counted},
		"thoughts alone":                          {`{"choices":[{"finish_reason":"stop","message":{"content":"","reasoning_content":"hm"}}]}`, "Empty", true, "no text", none},
		"a refusal":                               {`{"choices":[{"message":{"refusal":"I will not, ` + key + `","content":null}}]}`, "Refused", false, "refused", none},
		"a refusal among the parts":               {stopped("stop", `[{"type":"refusal","refusal":"`+key+`"}]`), "Refused", false, "refused", counted},
		"a content filter":                        {stopped("content_filter", `"x"`), "Refused", false, "filter", counted},
		"a content filter, as Gemini writes it":   {stopped("content_filter: PROHIBITED_CONTENT", `null`), "Refused", false, "filter", counted},
		"a reply that was cut off":                {stopped("length", `"{\"ty"`), "Truncated", false, "cut off", counted},
		"a reply that was cut off in thought":     {stopped("length", `null`), "Truncated", false, "cut off", counted},
	} {
		t.Run(name, func(t *testing.T) { wire.FailsToRead(t, tc.body, tc.reason, tc.retryable, tc.says, tc.cost) })
	}
}

func FuzzReply(f *testing.F) {
	wire.FuzzReply(f, []provider.Request{wire.Look()},
		reply(`"a"`), reply(`[{"text":"b"}]`), reply(`[{"type":"refusal"}]`), `{"choices":[]}`, `{"error":{"code":1}}`, `{"choices":[null]}`,
		`{"choices":[{"finish_reason":"length","error":{"code":502}}],"usage":{"prompt_tokens":1e9}}`,
	)
}
