// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// required are the ids of the images that may not be left out.
func required(r *Request) string {
	var out []string
	for n := range r.Images {
		if r.Required(n) {
			out = append(out, r.ID(n))
		}
	}
	return strings.Join(out, " ")
}

func TestRequiredAreTheNewestQuestionAndTheNewestResults(t *testing.T) {
	const (
		picture = `{"type":"image_url","image_url":"https://x/y"}`
		block   = `{"type":"image","source":{"type":"url","url":"https://x/y"}}`
		item    = `{"type":"input_image","image_url":"https://x/y"}`
		blob    = `{"inlineData":{"mimeType":"image/png","data":"QUJD"}}`
	)
	chat := func(messages ...string) string { return `{"messages":[` + strings.Join(messages, ",") + `]}` }
	user := `{"role":"user","content":[` + picture + `]}`
	assistant := `{"role":"assistant","content":"a"}`
	tool := `{"role":"tool","tool_call_id":"1","content":[` + picture + `]}`
	ask := `{"role":"user","content":[` + block + `]}`
	said := `{"role":"assistant","content":[{"type":"text","text":"a"}]}`
	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[` + block + `]}]}`
	mixed := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[` + block + `]},{"type":"text","text":"and?"}]}`
	for _, c := range []struct {
		name string
		d    Dialect
		body string
		want string
	}{
		{"nothing is said", OpenAIChat, chat(), ""},
		{"one question", OpenAIChat, chat(user), "messages[0].content[0]"},
		{"the newer question", OpenAIChat, chat(user, assistant, user), "messages[2].content[0]"},
		{"the question, and the results of parallel calls", OpenAIChat, chat(user, assistant, tool, tool), "messages[0].content[0] messages[2].content[0] messages[3].content[0]"},
		{"results of an older answer are history", OpenAIChat, chat(user, assistant, tool, assistant, tool), "messages[0].content[0] messages[4].content[0]"},
		{"results stay required when a human speaks after them", OpenAIChat, chat(user, assistant, tool, user), "messages[2].content[0] messages[3].content[0]"},
		{"after a prefill nothing answers", OpenAIChat, chat(user, assistant, tool, assistant), "messages[0].content[0]"},
		{"a system message is nobody's question", OpenAIChat, chat(user, `{"role":"system","content":[`+picture+`]}`), "messages[0].content[0]"},
		{"a turn of tool results alone is no question", AnthropicMessages, chat(ask, said, result), "messages[0].content[0] messages[2].content[0].content[0]"},
		{"one with words is", AnthropicMessages, chat(ask, said, mixed), "messages[2].content[0].content[0]"},
		{"old results are history", AnthropicMessages, chat(ask, said, result, said, result), "messages[0].content[0] messages[4].content[0].content[0]"},
		{"items of one answer", OpenAIResponses, `{"input":[{"role":"user","content":[` + item + `]},{"type":"function_call","call_id":"1"},{"type":"function_call","call_id":"2"},` +
			`{"type":"function_call_output","call_id":"1","output":[` + item + `]},{"type":"function_call_output","call_id":"2","output":[` + item + `]}]}`,
			"input[0].content[0] input[3].output[0] input[4].output[0]"},
		{"results alone answer what the vendor keeps", OpenAIResponses, `{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"1","output":[` + item + `]}]}`, "input[0].output[0]"},
		{"a function's response", GeminiContents, `{"contents":[{"parts":[` + blob + `]},{"role":"model","parts":[{"functionCall":{}}]},{"role":"user","parts":[{"functionResponse":{"parts":[` + blob + `]}}]}]}`,
			"contents[0].parts[0] contents[2].parts[0].functionResponse.parts[0]"},
		{"what the model drew is not", GeminiContents, `{"contents":[{"parts":[{"text":"draw"}]},{"role":"model","parts":[` + blob + `]}]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := required(mustScan(t, c.d, c.body)); got != c.want {
				t.Errorf("required are %q, want %q", got, c.want)
			}
		})
	}
}

// history is a conversation of n messages: question, call, result, answer, and so
// on. The first thirty of the questions and results show an image each, with
// data for its base64.
func history(d Dialect, n int, data string) []byte {
	data = `"data:image/png;base64,` + data + `"`
	bare := `"` + data[len(`"data:image/png;base64,`):]
	part := map[Dialect]string{
		OpenAIChat:        `{"type":"image_url","image_url":{"url":` + data + `,"detail":"high"}}`,
		OpenAIResponses:   `{"type":"input_image","image_url":` + data + `,"detail":"high"}`,
		AnthropicMessages: `{"type":"image","source":{"type":"base64","media_type":"image/png","data":` + bare + `}}`,
		GeminiContents:    `{"inlineData":{"mimeType":"image/png","data":` + bare + `}}`,
	}[d]
	forms := map[Dialect][4]string{ // question, call, result, answer
		OpenAIChat: {`{"role":"user","content":[{"type":"text","text":"Look at number %d"},%s]}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"view_image","arguments":"{\"path\":\"a.png\"}"}}]}`,
			`{"role":"tool","tool_call_id":"call_%d","content":[%s]}`, `{"role":"assistant","content":"It is number %d."}`},
		OpenAIResponses: {`{"role":"user","content":[{"type":"input_text","text":"Look at number %d"},%s]}`,
			`{"type":"function_call","call_id":"call_%d","name":"view_image","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"call_%d","output":[%s]}`, `{"role":"assistant","content":"It is number %d."}`},
		AnthropicMessages: {`{"role":"user","content":[{"type":"text","text":"Look at number %d"},%s]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"view_image","input":{"path":"a.png"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":[%s]}]}`, `{"role":"assistant","content":[{"type":"text","text":"It is number %d."}]}`},
		GeminiContents: {`{"role":"user","parts":[{"text":"Look at number %d"},%s]}`, `{"role":"model","parts":[{"functionCall":{"id":"f%d","name":"view_image","args":{}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":"f%d","name":"view_image","response":{},"parts":[%s]}}]}`, `{"role":"model","parts":[{"text":"It is number %d."}]}`},
	}[d]
	var turns []string
	images := 0
	for i := range n {
		form := forms[i%4]
		if !strings.Contains(form, "%s") {
			turns = append(turns, fmt.Sprintf(form, i))
			continue
		}
		p := part
		if images++; images > 30 {
			p = map[bool]string{true: `{"text":"x"}`, false: `{"type":"text","text":"x"}`}[d == GeminiContents]
		}
		turns = append(turns, fmt.Sprintf(form, i, p))
	}
	member := map[Dialect]string{OpenAIChat: "messages", OpenAIResponses: "input", AnthropicMessages: "messages", GeminiContents: "contents"}[d]
	return []byte(`{"model":"m","` + member + `":[` + strings.Join(turns, ",") + `]}`)
}

func TestAHistoryOfAHundredMessages(t *testing.T) {
	for _, d := range Dialects() {
		body := history(d, 100, "QUJD")
		r := mustScan(t, d, string(body))
		agrees(t, d, r, body)
		if len(r.Turns) != 100 || len(r.Images) != 30 {
			t.Fatalf("%s: %d turns, %d images", d, len(r.Turns), len(r.Images))
		}
		if got := required(r); got != "" { // message 96 and 98 are past the thirtieth image
			t.Errorf("%s: required are %q", d, got)
		}
		if !slices.IsSortedFunc(r.Images, func(a, b Image) int { return a.Turn - b.Turn }) {
			t.Errorf("%s: images are out of order", d)
		}
	}
}

func TestPointersLeadToThePartInTheDecodedBody(t *testing.T) {
	each(func(d Dialect, n int, body []byte) {
		r := mustScan(t, d, string(body))
		var root any
		if err := json.Unmarshal(body, &root); err != nil {
			t.Fatal(err)
		}
		for k, i := range r.Images {
			at := root
			for _, step := range strings.Split(r.Pointer(k), "/")[1:] {
				if l, ok := at.([]any); ok {
					var index int
					if _, err := fmt.Sscan(step, &index); err != nil {
						t.Fatal(err)
					}
					at = l[index]
					continue
				}
				at = at.(map[string]any)[step]
			}
			var part any
			if err := json.Unmarshal(body[i.Part.Start:i.Part.End], &part); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(part, at); diff != "" {
				t.Errorf("%s %d %s:\n%s", d, n, r.Pointer(k), diff)
			}
		}
	})
}

func TestTextPartsAreWhatTheDialectTakesThere(t *testing.T) {
	const note = `"quoted" <é>`
	for _, c := range []struct {
		name string
		d    Dialect
		body string
		want string
	}{
		{"chat", OpenAIChat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"https://x"}]}]}`, `{"type":"text","text":"\"quoted\" <é>"}`},
		{"Responses", OpenAIResponses, `{"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]}`, `{"type":"input_text","text":"\"quoted\" <é>"}`},
		{"a function's output", OpenAIResponses, `{"input":[{"type":"function_call_output","output":[{"type":"input_image","file_id":"f"}]}]}`, `{"type":"input_text","text":"\"quoted\" <é>"}`},
		{"an assistant's", OpenAIResponses, `{"input":[{"role":"assistant","content":[{"type":"input_image","file_id":"f"}]}]}`, `{"type":"output_text","text":"\"quoted\" <é>"}`},
		{"a screenshot stays", OpenAIResponses, `{"input":[{"output":{"type":"computer_screenshot","file_id":"f"},"type":"computer_call_output"}]}`, ``},
		{"Anthropic, with its mark", AnthropicMessages, `{"messages":[{"content":[{"type":"image","cache_control": {"type":"ephemeral"} }]}]}`, `{"type":"text","text":"\"quoted\" <é>","cache_control":{"type":"ephemeral"}}`},
		{"Gemini", GeminiContents, `{"contents":[{"parts":[{"inlineData":{"data":"QUJD"}}]}]}`, `{"text":"\"quoted\" <é>"}`},
		{"a function's response, with its name", GeminiContents, `{"contents":[{"parts":[{"functionResponse":{"parts":[{"inlineData":{"data":"QUJD","displayName":"a"}}]}}]}]}`,
			`{"inlineData":{"mimeType":"text/plain","data":"InF1b3RlZCIgPMOpPg==","displayName":"a"}}`},
		{"a function's response, with a name that is none", GeminiContents, `{"contents":[{"parts":[{"functionResponse":{"parts":[{"inlineData":{"data":"QUJD","displayName":"` + strings.Repeat("a", 1<<10) + `"}}]}}]}]}`,
			`{"inlineData":{"mimeType":"text/plain","data":"InF1b3RlZCIgPMOpPg=="}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(mustScan(t, c.d, c.body).TextPart([]byte(c.body), 0, note)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestATextPartLeavesEverythingElseAsItWas(t *testing.T) {
	each(func(d Dialect, n int, body []byte) {
		r := mustScan(t, d, string(body))
		for k, i := range r.Images {
			part := r.TextPart(body, k, "gone")
			if i.Fixed != (part == nil) {
				t.Fatalf("%s %d %s: fixed is %v, %q", d, n, r.ID(k), i.Fixed, part)
			}
			if part == nil {
				continue
			}
			edited := string(body[:i.Part.Start]) + string(part) + string(body[i.Part.End:])
			again := mustScan(t, d, edited)
			if len(again.Images) != len(r.Images)-1 || len(again.Turns) != len(r.Turns) {
				t.Errorf("%s %d %s: %d images of %d in %d turns of %d", d, n, r.ID(k), len(again.Images), len(r.Images), len(again.Turns), len(r.Turns))
			}
		}
	})
}

func TestEveryDialectHasATransport(t *testing.T) {
	known := map[string]bool{}
	for _, d := range Dialects() {
		known[d.Transport()] = true
	}
	if len(known) != 4 || known[""] || Dialect("x").Transport() != "" {
		t.Errorf("transports are %v", known)
	}
}
