// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
)

func TestSignedReasoningIsDropped(t *testing.T) {
	const (
		think = `{"type":"thinking","thinking":"hm","signature":"c2ln"}`
		redac = `{"type":"redacted_thinking","data":"eHg="}`
		use   = `{"type":"tool_use","id":"toolu_01","name":"x","input":{}}`
		res   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"ok"}]}`
	)
	anthropic := func(thinking string, messages ...string) string {
		return `{"model":"m", ` + thinking + `"max_tokens":9,"messages":[{"role":"user","content":"go"},` + strings.Join(messages, ",") + `]}`
	}
	assistant := func(blocks ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	const manual, adaptive = `"thinking":{"budget_tokens":1024,"type":"enabled"},`, `"thinking":{"type":"adaptive"},`
	note := `{"type":"text","text":"[reasoning left out]"}`
	text := `{"type":"text","text":"a"}`
	for name, c := range map[string]struct {
		dialect    message.Dialect
		body, want string
	}{
		"at the beginning, with its comma": {message.AnthropicMessages, anthropic("", assistant(think, text)), anthropic("", assistant(text))},
		"two side by side":                 {message.AnthropicMessages, anthropic("", assistant(think, redac, text)), anthropic("", assistant(text))},
		"at the end":                       {message.AnthropicMessages, anthropic("", assistant(text, think, redac)), anthropic("", assistant(text))},
		"in the middle and at both ends":   {message.AnthropicMessages, anthropic("", assistant(think, text, redac, use, think)), anthropic("", assistant(text, use))},
		"with white space around": {
			message.AnthropicMessages, anthropic("", `{"role":"assistant","content":[ `+think+" ,\n "+text+" , "+redac+` ]}`),
			anthropic("", `{"role":"assistant","content":[ `+text+` ]}`),
		},
		"a message of nothing else says so":              {message.AnthropicMessages, anthropic("", assistant(think, redac)), anthropic("", assistant(note))},
		"where thinking is on, the newest call's stay":   {message.AnthropicMessages, anthropic(manual, assistant(think, text), res, assistant(think, use), res), anthropic(manual, assistant(text), res, assistant(think, use), res)},
		"where thinking is on, an answer's go":           {message.AnthropicMessages, anthropic(manual, assistant(think, text), res), anthropic(manual, assistant(text), res)},
		"where thinking is adaptive, all go":             {message.AnthropicMessages, anthropic(adaptive, assistant(think, use), res), anthropic(adaptive, assistant(use), res)},
		"where thinking is not spoken of, all go":        {message.AnthropicMessages, anthropic("", assistant(think, use), res), anthropic("", assistant(use), res)},
		"a member thinking elsewhere is not the request": {message.AnthropicMessages, anthropic(`"metadata":{"thinking":{"type":"enabled"}},`, assistant(think, use), res), anthropic(`"metadata":{"thinking":{"type":"enabled"}},`, assistant(use), res)},
		"reasoning items with encrypted content": {
			message.OpenAIResponses,
			`{"model":"m","input":[{"role":"user","content":"go"},{"type":"reasoning","summary":[],"encrypted_content":"gAAA"},{"type":"function_call","call_id":"c1","name":"x","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"ok"},{"type":"reasoning","summary":[],"encrypted_content":"gBBB"}]}`,
			`{"model":"m","input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"c1","name":"x","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"ok"}]}`,
		},
		"thought signatures, in either spelling": {
			message.GeminiContents,
			`{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"x","args":{}},"thoughtSignature":"AAAA"},{"text":"a","thought_signature":"BBBB"}]}]}`,
			`{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"x","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"text":"a","thought_signature":"skip_thought_signature_validator"}]}]}`,
		},
		"chat has none": {message.OpenAIChat, `{"messages":[{"role":"assistant","content":"a","reasoning_content":"hm"}]}`, `{"messages":[{"role":"assistant","content":"a","reasoning_content":"hm"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := scanned(t, c.dialect, []byte(c.body))
			s, got := spliced(t, []byte(c.body), injection.DropSignatures(r, []byte(c.body)))
			if string(got) != c.want || !json.Valid(got) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if back := restored([]byte(c.body), got, s.Ranges()); string(back) != c.body {
				t.Errorf("without the ranges: %s", back)
			}
			r = scanned(t, c.dialect, got)
			if again := injection.DropSignatures(r, got); len(again) > 0 && c.dialect == message.GeminiContents {
				t.Errorf("what was dropped is dropped again: %+v", again)
			}
			if again, _ := spliced(t, got, injection.DropSignatures(r, got)); again.Changed() {
				t.Errorf("what was dropped is dropped again: %+v", again.Ranges())
			}
		})
	}
}

// Gemini's bytes are base64, which the word that it documents is without more.
func TestTheWordForNoSignatureIsBase64(t *testing.T) {
	if len(injection.SkipSignature)%4 != 0 || strings.Trim(injection.SkipSignature, "abcdefghijklmnopqrstuvwxyz_") != "" {
		t.Error(injection.SkipSignature)
	}
}
