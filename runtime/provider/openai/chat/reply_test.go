// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
)

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
			got, err := call(t, look(), says(200, tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if want := (provider.Reply{Text: tc.want, Model: "see-2-2026", Usage: tc.usage}); got != want {
				t.Errorf("reply = %+v, want %+v", got, want)
			}
		})
	}
}

func TestRepliesThatHoldNone(t *testing.T) {
	stopped := func(why, content string) string {
		return `{"choices":[{"finish_reason":"` + why + `","message":{"content":` + content + `}}],"usage":{"prompt_tokens":11,"completion_tokens":7}}`
	}
	for name, tc := range map[string]struct {
		body      string
		reason    string
		retryable bool
		says      string
		counted   bool
	}{
		"no JSON":                  {"hello " + key, "InvalidResponse", false, "not a chat completion", false},
		"a page for people":        {"<html>" + key, "InvalidResponse", false, "not a chat completion", false},
		"half of the JSON":         {reply(`"a"`)[:60], "InvalidResponse", false, "not a chat completion", false},
		"JSON of another shape":    {`{"choices":"` + key + `"}`, "InvalidResponse", false, "not a chat completion", false},
		"content of another shape": {reply(`{"a":"` + key + `"}`), "InvalidResponse", false, "not a chat completion", false},
		"parts of another shape":   {reply(`["` + key + `"]`), "InvalidResponse", false, "not a chat completion", false},
		"a text that is none":      {reply(`[{"type":"text","text":7}]`), "InvalidResponse", false, "not a chat completion", false},
		"a list":                   {`[]`, "InvalidResponse", false, "not a chat completion", false},
		"an error":                 {`{"error":{"code":"server_error","message":"` + key + `"}}`, "UpstreamStatus", true, "server_error", false},
		"an error that OpenRouter gives a status": {`{"error":{"code":429,"message":"` + key + `"},"user_id":"x"}`, "RateLimited", true, "error", false},
		"an error in the choice":                  {`{"choices":[{"finish_reason":"error","error":{"code":502,"message":"` + key + `"},"message":{"content":"half"}}]}`, "UpstreamStatus", true, "error", false},
		"an error without a word":                 {stopped("error", `"half"`), "UpstreamStatus", true, "while it wrote", false},
		"no choices":                              {`{"choices":[]}`, "Empty", true, "no choice", false},
		"null for choices":                        {`{"choices":null}`, "Empty", true, "no choice", false},
		"a choice that is null":                   {`{"choices":[null]}`, "Empty", true, "no text", false},
		"null content":                            {stopped("stop", `null`), "Empty", true, "no text", true},
		"blank content":                           {stopped("stop", `" \n"`), "Empty", true, "no text", true},
		"thoughts alone":                          {`{"choices":[{"finish_reason":"stop","message":{"content":"","reasoning_content":"hm"}}]}`, "Empty", true, "no text", false},
		"a refusal":                               {`{"choices":[{"message":{"refusal":"I will not, ` + key + `","content":null}}]}`, "Refused", false, "refused", false},
		"a refusal among the parts":               {stopped("stop", `[{"type":"refusal","refusal":"`+key+`"}]`), "Refused", false, "refused", true},
		"a content filter":                        {stopped("content_filter", `"x"`), "Refused", false, "filter", true},
		"a content filter, as Gemini writes it":   {stopped("content_filter: PROHIBITED_CONTENT", `null`), "Refused", false, "filter", true},
		"a reply that was cut off":                {stopped("length", `"{\"ty"`), "Truncated", false, "cut off", true},
		"a reply that was cut off in thought":     {stopped("length", `null`), "Truncated", false, "cut off", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(t, look(), says(200, tc.body))
			f, ok := errors.AsType[*fault.Fault](err)
			if !ok {
				t.Fatalf("%v is no fault", err)
			}
			if f.Kind != fault.VisionObservationFailed || f.Reason != tc.reason || f.Retryable != tc.retryable || !strings.Contains(f.Message, tc.says) {
				t.Errorf("fault = %+v; want %s retryable=%v %q", f, tc.reason, tc.retryable, tc.says)
			}
			if counted := f.Details["input_tokens"] == int64(11) && f.Details["output_tokens"] == int64(7); counted != tc.counted {
				t.Errorf("details are %v, with the usage: %v", f.Details, tc.counted)
			}
			if all := fmt.Sprintf("%v %v %v", f, f.Details, f.Cause); strings.Contains(all, "secret") {
				t.Errorf("the fault repeats the body: %s", all)
			}
		})
	}
}

func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		reply(`"a"`), reply(`[{"text":"b"}]`), reply(`[{"type":"refusal"}]`), `{"choices":[]}`, `{"error":{"code":1}}`, `null`, `{"choices":[null]}`,
		`{"choices":[{"finish_reason":"length","error":{"code":502}}],"usage":{"prompt_tokens":1e9}}`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := chat.ParseReply(body)
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
