// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told writes what a scan found, one thing a line, with the bytes that its spans cut out.
func told(r *Request, body string) []string {
	var out []string
	cut := func(s Span) string { return body[s.Start:s.End] }
	for n, c := range r.Calls {
		out = append(out, fmt.Sprintf("call %s of turn %d: %q %s(%s) in %s", r.CallAt(n), c.Turn, c.ID, c.Name, cut(c.Arguments), cut(c.Span)))
	}
	for n, a := range r.Results {
		line := fmt.Sprintf("result %s of turn %d: %q answers %d, content %s in %s", r.ResultAt(n), a.Turn, a.CallID, a.Call, cut(a.Content)+strings.ToUpper(cut(a.Null)), cut(a.Object))
		if a.Part.Len() > 0 {
			line += ", part " + cut(a.Part) + " of " + cut(a.Parts)
		}
		for _, flag := range []struct {
			name string
			is   bool
		}{{"error", a.IsError}, {"closed", !a.Takes}} {
			if flag.is {
				line += ", " + flag.name
			}
		}
		out = append(out, line)
	}
	for n, x := range r.Texts {
		out = append(out, fmt.Sprintf("text %s of turn %d: %s in %s", r.TextAt(n), x.Turn, cut(x.Value), cut(x.Part)))
	}
	for _, s := range r.Signatures {
		out = append(out, fmt.Sprintf("signature of turn %d: %s", s.Turn, cut(s.Span)))
	}
	for n, i := range r.Images {
		out = append(out, fmt.Sprintf("image %s in %d", r.ID(n), i.Result))
	}
	return out
}

func TestCallsAndWhatAnswersThemAreCutOutByTheByte(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Dialect
		body string
		want []string
	}{
		{"chat", OpenAIChat, `{"messages":[{"role":"user","content":"Look"},{"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}} , {"type":"custom","custom":{"input":"x","name":"g"},"id":"c2"}],"role":"assistant"},` +
			`{"role":"tool","tool_call_id":"c1","content":"a"},{"role":"tool","tool_call_id":"c2","content":[{"type":"image_url","image_url":"https://x"}]},{"role":"user","content":[{"type":"text","text":"And?"}]}]}`, []string{
			`call messages[1].tool_calls[0] of turn 1: "c1" f("{}") in {"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}`,
			`call messages[1].tool_calls[1] of turn 1: "c2" g("x") in {"type":"custom","custom":{"input":"x","name":"g"},"id":"c2"}`,
			`result messages[2] of turn 2: "c1" answers 0, content "a" in {"role":"tool","tool_call_id":"c1","content":"a"}`,
			`result messages[3] of turn 3: "c2" answers 1, content [{"type":"image_url","image_url":"https://x"}] in {"role":"tool","tool_call_id":"c2","content":[{"type":"image_url","image_url":"https://x"}]}`,
			`text messages[0].content of turn 0: "Look" in "Look"`, `text messages[4].content[0] of turn 4: "And?" in {"type":"text","text":"And?"}`, `image messages[3].content[0] in 1`,
		}},
		{"chat's older functions", OpenAIChat, `{"messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":null}]}`, []string{
			`call messages[0].function_call of turn 0: "" f("{}") in {"name":"f","arguments":"{}"}`,
			`result messages[1] of turn 1: "" answers 0, content NULL in {"role":"function","name":"f","content":null}, closed`,
		}},
		{"Responses", OpenAIResponses, `{"input":[{"type":"reasoning","encrypted_content":"e"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"computer_call","call_id":"c2"},{"type":"shell_call","call_id":"c3","action":{}},` +
			`{"type":"mcp_call","id":"m","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","file_id":"f"}]},{"type":"computer_call_output","call_id":"c2","output":{"type":"computer_screenshot","file_id":"f"}},{"type":"shell_call_output","call_id":"c3","output":[]}]}`, []string{
			`call input[1] of turn 1: "c1" f("{}") in {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`,
			`call input[2] of turn 2: "c2" computer() in {"type":"computer_call","call_id":"c2"}`, `call input[3] of turn 3: "c3" shell() in {"type":"shell_call","call_id":"c3","action":{}}`,
			`result input[5] of turn 5: "c1" answers 0, content [{"type":"input_image","file_id":"f"}] in {"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","file_id":"f"}]}`,
			`result input[6] of turn 6: "c2" answers 1, content {"type":"computer_screenshot","file_id":"f"} in {"type":"computer_call_output","call_id":"c2","output":{"type":"computer_screenshot","file_id":"f"}}, closed`,
			`result input[7] of turn 7: "c3" answers 2, content [] in {"type":"shell_call_output","call_id":"c3","output":[]}, closed`,
			`signature of turn 0: {"type":"reasoning","encrypted_content":"e"}`, `image input[5].output[0] in 0`, `image input[6].output in 1`,
		}},
		{"Anthropic", AnthropicMessages, `{"system":[{"type":"text","text":"s"}],"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"thinking","thinking":"h"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}},{"type":"server_tool_use","id":"t2","name":"w","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true},{"type":"text","text":"And?"}]}]}`, []string{
			`call messages[0].content[2] of turn 1: "t1" f({"a":1}) in {"type":"tool_use","id":"t1","name":"f","input":{"a":1}}`,
			`result messages[1].content[0] of turn 2: "t1" answers 0, content  in {"type":"tool_result","tool_use_id":"t1","is_error":true}, error`,
			`text messages[1].content[1] of turn 2: "And?" in {"type":"text","text":"And?"}`, `signature of turn 1: {"type":"thinking","thinking":"h","signature":"s"}`,
		}},
		{"Gemini", GeminiContents, `{"contents":[{"role":"user","parts":{"text":"Look"}},{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"}]},` +
			`{"parts":[{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"data":"QUJD"}}]}} ]}]}`, []string{
			`call contents[1].parts[1].functionCall of turn 1: "" f({"a":1}) in {"name":"f","args":{"a":1}}`,
			`result contents[2].parts[0].functionResponse of turn 2: "" answers 0, content [{"inlineData":{"data":"QUJD"}}] in {"name":"f","response":{},"parts":[{"inlineData":{"data":"QUJD"}}]},` +
				` part {"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"data":"QUJD"}}]}} of [{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"data":"QUJD"}}]}} ]`,
			`text contents[0].parts of turn 0: "Look" in {"text":"Look"}`, `signature of turn 1: "c2ln"`, `image contents[2].parts[0].functionResponse.parts[0] in 0`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, told(mustScan(t, c.d, c.body), c.body)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatTheVendorKeepsIsNamed(t *testing.T) {
	for _, c := range []struct{ name, body, previous, references string }{
		{"nothing", `{"input":"x"}`, "", ""},
		{"a response", `{"input":"x","previous_response_id":"resp_1"}`, "resp_1", ""},
		{"none", `{"input":"x","previous_response_id":null,"conversation":null}`, "", ""},
		{"a conversation", `{"input":"x","conversation":"conv_1"}`, "conv_1", ""},
		{"a conversation in an object", `{"conversation":{"x":1,"id":"conv_1"}}`, "conv_1", ""},
		{"both", `{"conversation":"conv_1","previous_response_id":"resp_1"}`, "resp_1", ""},
		{"a prompt", `{"prompt":{"id":"p"}}`, "", ""},
		{"references", `{"input":[{"type":"item_reference","id":"a"},{"id":"b"},{"type":"item_reference"},{"type":"function_call","id":"c"},{"id":"d","role":"user","content":"x"},{"id":"e","type":null}]}`, "", "a b e"},
	} {
		r := mustScan(t, OpenAIResponses, c.body)
		if got := strings.Join(r.References, " "); r.Previous != c.previous || got != c.references || r.Stateful != (c.previous != "" || c.name == "a prompt") {
			t.Errorf("%s: goes on from %q (%v) with %q; want %q, %q", c.name, r.Previous, r.Stateful, got, c.previous, c.references)
		}
	}
}

func TestNothingIsFoundInWhatIsNotAskedFor(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Dialect
		body string
	}{
		{"instructions", AnthropicMessages, `{"system":[{"type":"text","text":"s"},{"type":"tool_use","id":"t"},{"type":"thinking","signature":"s"},{"type":"tool_result","tool_use_id":"t"}],"messages":[]}`},
		{"instructions of Gemini", GeminiContents, `{"contents":[],"systemInstruction":{"parts":[{"text":"s"},{"functionCall":{"name":"f"},"thoughtSignature":"s"},{"functionResponse":{"name":"f"}}]}}`},
		{"a system message", OpenAIChat, `{"messages":[{"role":"system","content":"s","tool_calls":[{"id":"c"}]},{"content":[{"type":"text","text":"d"}],"role":"developer"}]}`},
		{"a message without a role", OpenAIChat, `{"messages":[{"content":"s","tool_calls":[{"id":"c"}]}]}`},
		{"what tools declare", OpenAIChat, `{"messages":[],"tools":[{"type":"function","function":{"name":"f","name":"g","arguments":1,"arguments":2}}]}`},
		{"what the assistant says", OpenAIResponses, `{"input":[{"role":"assistant","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`},
		{"a result in the assistant's turn", AnthropicMessages, `{"messages":[{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}]}`},
		{"a call in a user's turn", GeminiContents, `{"contents":[{"parts":[{"functionCall":{"name":"f"},"thoughtSignature":"s"}]}]}`},
		{"the assistant's thoughts of no signature", AnthropicMessages, `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":""}]}]}`},
		{"what stands within a document", AnthropicMessages, `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"d"},{"type":"tool_result","tool_use_id":"t"}]}}]}]}`},
	} {
		r := mustScan(t, c.d, c.body)
		if got := told(r, c.body); len(got) > 0 {
			t.Errorf("%s: %q", c.name, got)
		}
		agrees(t, c.d, r, []byte(c.body))
	}
}

func TestATextBesideAFunctionsResponseInOnePartIsNoHumans(t *testing.T) {
	r := mustScan(t, GeminiContents, `{"contents":[{"parts":[{"functionResponse":{"name":"f"},"text":"x"}]}]}`)
	if len(r.Texts) != 0 || len(r.Results) != 1 || !r.Turns[0].ToolResults {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsReadOfACallMustNotStandTwice(t *testing.T) {
	for _, c := range []struct {
		d          Dialect
		body, path string
	}{
		{OpenAIChat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","id":"b"}]}]}`, "messages[0].tool_calls[0].id"},
		{OpenAIChat, `{"messages":[{"role":"assistant","tool_calls":[{"function":{},"function":{}}]}]}`, "messages[0].tool_calls[0].function"},
		{OpenAIChat, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"a","name":"b"}}]}]}`, "messages[0].tool_calls[0].function.name"},
		{OpenAIChat, `{"messages":[{"role":"assistant","function_call":{"arguments":"a","arguments":"b"}}]}`, "messages[0].function_call.arguments"},
		{OpenAIChat, `{"messages":[{"role":"tool","tool_call_id":"a","tool_call_id":"b"}]}`, "messages[0].tool_call_id"},
		{OpenAIResponses, `{"input":[{"type":"function_call","name":"a","name":"b"}]}`, "input[0].name"},
		{OpenAIResponses, `{"input":[{"type":"custom_tool_call","input":"a","input":"b"}]}`, "input[0].input"},
		{OpenAIResponses, `{"conversation":{"id":"a","id":"b"}}`, "conversation.id"},
		{AnthropicMessages, `{"messages":[{"content":[{"type":"tool_use","name":"a","name":"b"}]}]}`, "messages[0].content[0].name"},
		{AnthropicMessages, `{"messages":[{"content":[{"type":"thinking","signature":"a","signature":"b"}]}]}`, "messages[0].content[0].signature"},
		{GeminiContents, `{"contents":[{"parts":[{"functionCall":{"args":{},"args":{}}}]}]}`, "contents[0].parts[0].functionCall.args"},
		{GeminiContents, `{"contents":[{"parts":[{"functionCall":{},"function_call":{}}]}]}`, "contents[0].parts[0].function_call"},
		{GeminiContents, `{"contents":[{"parts":[{"functionResponse":{"name":"a","name":"b"}}]}]}`, "contents[0].parts[0].functionResponse.name"},
	} {
		_, err := Scan(c.d, []byte(c.body))
		if e, ok := errors.AsType[*Error](err); !ok || e.Reason != DuplicateMember || e.Path != c.path {
			t.Errorf("%s: %v, want %s", c.body, err, c.path)
		}
	}
	for d, body := range map[Dialect]string{
		OpenAIChat:        `{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":{"name":1,"name":2}}}]}]}`,
		AnthropicMessages: `{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"id":1,"id":2}}]}]}`,
		GeminiContents:    `{"contents":[{"role":"model","parts":[{"functionCall":{"args":{"args":1,"args":2}}}]}]}`,
	} {
		if r := mustScan(t, d, body); len(r.Calls) != 1 {
			t.Errorf("%s: %v", body, r.Calls)
		}
	}
}

func TestCallsResultsAndTextsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		d                   Dialect
		head, element, tail string
	}{
		"calls":      {OpenAIChat, `{"messages":[{"role":"assistant","tool_calls":[`, `{}`, `]}]}`},
		"results":    {AnthropicMessages, `{"messages":[{"role":"user","content":[`, `{"type":"tool_result"}`, `]}]}`},
		"texts":      {GeminiContents, `{"contents":[{"parts":[`, `{"text":""}`, `]}]}`},
		"signatures": {AnthropicMessages, `{"messages":[{"role":"assistant","content":[`, `{"type":"redacted_thinking"}`, `]}]}`},
	} {
		body := func(n int) string { return c.head + c.element + strings.Repeat(","+c.element, n-1) + c.tail }
		mustScan(t, c.d, body(MaxParts))
		if _, err := Scan(c.d, []byte(body(MaxParts+1))); reasonOf(err) != TooMany {
			t.Errorf("%s: %v", name, err)
		}
	}
}
