// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// wired writes a conversation in a dialect, from words: "user", "says" (the
// assistant), "call:ID", "call:ID:NAME", "old" (chat's function_call), "result:ID",
// "result:ID:NAME" and "oldresult". What one side says in a row is one message where
// the dialect has it so.
func wired(d Dialect, conversation string) string {
	var turns []string
	for _, group := range strings.Split(conversation, " | ") {
		var parts []string
		role := "user"
		for _, word := range strings.Fields(group) {
			f := append(strings.Split(word, ":"), "", "")
			if f[2] == "" {
				f[2] = "view_image"
			}
			if f[0] == "says" || f[0] == "call" {
				role = map[Dialect]string{GeminiContents: "model"}[d]
				if role == "" {
					role = "assistant"
				}
			}
			parts = append(parts, form(d, f[0], f[1], f[2]))
		}
		all := strings.Join(parts, ",")
		switch d {
		case OpenAIChat:
			if strings.HasPrefix(group, "call") {
				all = `{"role":"assistant","content":null,"tool_calls":[` + all + `]}`
			}
			turns = append(turns, all)
		case OpenAIResponses:
			turns = append(turns, all)
		case AnthropicMessages:
			turns = append(turns, `{"content":[`+all+`],"role":"`+role+`"}`)
		case GeminiContents:
			turns = append(turns, `{"parts":[`+all+`],"role":"`+role+`"}`)
		}
	}
	member := map[Dialect]string{OpenAIChat: "messages", OpenAIResponses: "input", AnthropicMessages: "messages", GeminiContents: "contents"}[d]
	return `{"` + member + `":[` + strings.Join(turns, ",") + `]}`
}

func form(d Dialect, what, id, name string) string {
	gemini := ""
	if id != "" {
		gemini = fmt.Sprintf(`"id":%q,`, id)
	}
	switch what + " " + string(d) {
	case "user openai-chat", "user openai-responses":
		return `{"role":"user","content":"Look"}`
	case "says openai-chat", "says openai-responses":
		return `{"role":"assistant","content":"Well"}`
	case "call openai-chat":
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":"{}"}}`, id, name)
	case "old openai-chat":
		return fmt.Sprintf(`{"role":"assistant","content":null,"function_call":{"name":%q,"arguments":"{}"}}`, name)
	case "result openai-chat":
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"done"}`, id)
	case "oldresult openai-chat":
		return fmt.Sprintf(`{"role":"function","name":%q,"content":"done"}`, name)
	case "call openai-responses":
		return fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":"{}"}`, id, name)
	case "result openai-responses":
		return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"done"}`, id)
	case "user anthropic-messages", "says anthropic-messages":
		return `{"type":"text","text":"Well"}`
	case "call anthropic-messages":
		return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name)
	case "result anthropic-messages":
		return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"done"}`, id)
	case "user gemini-contents", "says gemini-contents":
		return `{"text":"Well"}`
	case "call gemini-contents":
		return fmt.Sprintf(`{"functionCall":{%s"name":%q,"args":{}}}`, gemini, name)
	case "result gemini-contents":
		return fmt.Sprintf(`{"functionResponse":{%s"name":%q,"response":{}}}`, gemini, name)
	}
	panic(what + " is no word of " + string(d))
}

// answers are the numbers of the calls that the results answer.
func answers(r *Request) string {
	var out []string
	for _, a := range r.Results {
		out = append(out, fmt.Sprint(a.Call))
	}
	return strings.Join(out, " ")
}

func TestResultsAnswerTheCallsOfTheirStep(t *testing.T) {
	every, ided := Dialects(), []Dialect{OpenAIChat, OpenAIResponses, AnthropicMessages}
	long := strings.Repeat("x", longestWord+1)
	for _, c := range []struct {
		name         string
		dialects     []Dialect
		conversation string
		calls        int
		want         string
	}{
		{"nothing is called", every, "user | says | user", 0, ""},
		{"one call and its result", every, "user | call:a | result:a", 1, "0"},
		{"a call without a result", every, "user | call:a", 1, ""},
		{"parallel calls, whose results come the other way round", every, "user | call:a call:b call:c | result:c | result:a | result:b", 3, "2 0 1"},
		{"the results of parallel calls in one message", []Dialect{AnthropicMessages, GeminiContents}, "user | call:a call:b | result:a result:b", 2, "0 1"},
		{"the second call is not answered", every, "user | call:a call:b | result:a", 2, "0"},
		{"a result before its call", every, "user | result:a | call:a", 1, "-1"},
		{"a result of an older step", every, "call:a | result:a | call:b | result:a", 2, "0 -1"},
		{"the same id in each step", every, "call:a | result:a | says | call:a | result:a", 2, "0 1"},
		{"the assistant says it in several messages", every, "call:a | says | call:b | result:a | result:b", 2, "0 1"},
		{"a human speaks before the result", every, "call:a | user | result:a", 1, "0"},
		{"a human speaks between the results", every, "call:a call:b | result:b | user | result:a", 2, "1 0"},
		{"the assistant speaks before the result", every, "call:a | user | says | result:a", 1, "-1"},
		{"an id that nobody called", every, "call:a | result:b", 1, "-1"},
		{"two results of one call", every, "call:a | result:a | result:a", 1, "0 0"},
		{"two calls of one id, by order", every, "call:a call:a | result:a | result:a", 2, "0 1"},
		{"an id that is longer than all that count", ided, "call:" + long + " | result:" + long, 1, "-1"},
		{"an id too long is none, and names tell", []Dialect{GeminiContents}, "call:" + long + " | result:" + long, 1, "0"},
		{"a missing id is no id", ided, "call: | result:", 1, "-1"},
		{"the older function", []Dialect{OpenAIChat}, "user | old | oldresult | old::f | oldresult::f", 2, "0 1"},
		{"the older function of another name", []Dialect{OpenAIChat}, "old::f | oldresult::g", 1, "-1"},
		{"a tool's message without an id does not answer by its name", []Dialect{OpenAIChat}, "old | result:", 1, "-1"},
		{"no ids, by name and order", []Dialect{GeminiContents}, "call::f call::g call::f | result::f result::f result::g", 3, "0 2 1"},
		{"no ids, and a result too few", []Dialect{GeminiContents}, "call::f call::f call::g | result::f result::g", 3, "-1 2"},
		{"no ids, and a result too many", []Dialect{GeminiContents}, "call::f | result::f result::f", 1, "-1 -1"},
		{"ids beside none", []Dialect{GeminiContents}, "call:a:f call::f | result::f result:a:f", 2, "1 0"},
		{"a result without the id of its call", []Dialect{GeminiContents}, "call:a:f | result::f", 1, "-1"},
		{"an id that is another one's name, beside that one", []Dialect{GeminiContents}, "call:f:g call::f | result::f result:f:g", 2, "1 0"},
		{"a call of today without an id, and an older function's result", []Dialect{OpenAIChat}, "call: | oldresult", 1, "-1"},
		{"an id that is another one's name", []Dialect{GeminiContents}, "call::f | result:f:f", 1, "-1"},
	} {
		for _, d := range c.dialects {
			t.Run(c.name+"/"+string(d), func(t *testing.T) {
				body := wired(d, c.conversation)
				r := mustScan(t, d, body)
				if got := answers(r); got != c.want || len(r.Calls) != c.calls {
					t.Errorf("%d calls, answered %q; want %d, %q\n%s", len(r.Calls), got, c.calls, c.want, body)
				}
				agrees(t, d, r, []byte(body))
			})
		}
	}
}

func TestManyCallsOfOneStepArePairedInTime(t *testing.T) {
	const many = 50_000
	var words []string
	for n := range many {
		words = append(words, fmt.Sprintf("call:a%d", n))
	}
	conversation := strings.Join(words, " ") + " | " + strings.ReplaceAll(strings.Join(words, " "), "call", "result")
	r := mustScan(t, AnthropicMessages, wired(AnthropicMessages, conversation))
	for n, a := range r.Results {
		if a.Call != n {
			t.Fatalf("result %d answers %d", n, a.Call)
		}
	}
}

// pieces are members and elements of random requests, right ones and odd ones. In
// them "~" stands for a small number, so that ids and names meet.
var pieces = map[Dialect][][]string{
	OpenAIChat: {{
		`{"role":"user","content":"t~"}`, `{"content":[{"type":"text","text":"t~"},{"type":"image_url","image_url":"https://x/~"}],"role":"user"}`,
		`{"role":"assistant","content":null,"tool_calls":[%,%]}`, `{"tool_calls":[%],"role":"assistant","function_call":null}`, `{"role":"assistant","content":"t~","tool_calls":null}`,
		`{"role":"assistant","function_call":{"name":"f~","arguments":"{}"}}`, `{"role":"function","name":"f~","content":"r~"}`, `{"role":"tool","tool_call_id":"c~","content":"r~"}`,
		`{"content":[{"type":"text","text":"r~"},{"type":"image_url","image_url":{"url":"https://x/~"}}],"tool_call_id":"c~","role":"tool"}`, `{"role":"tool","name":"f~","content":null}`,
		`{"role":"system","content":"s~"}`, `{"role":"user","tool_calls":[%],"content":[{"text":"bare"},{"type":"text","text":null},{"type":"file","file":{},"text":"no"}]}`,
		`{"role":"assistant","tool_calls":{"a":1},"function_call":7}`, `{"role":"critic","content":"c~"}`, `{"content":"no role"}`, `{"role":"user","content":[{"type":"poem","text":"p~"},{"type":"refusal","text":"p~"}]}`,
	}, {
		`{"id":"c~","type":"function","function":{"name":"f~","arguments":"{\"path\":\"~\"}"}}`, `{"function":{"arguments":{"path":"~"},"name":"f~"},"id":"c~"}`, `{"id":"c~","type":"custom","custom":{"name":"f~","input":"now"}}`,
		`{"id":~,"function":null}`, `{}`, `5`, `{"id":"c~","function":{"name":5,"arguments":null}}`,
	}},
	OpenAIResponses: {{
		`{"role":"user","content":"t~"}`, `{"type":"message","content":[{"type":"input_text","text":"t~"},{"type":"input_image","file_id":"f"}],"role":"user"}`, `{"role":"user","content":{"type":"input_text","text":"t~"}}`,
		`{"type":"reasoning","id":"r~","summary":[],"encrypted_content":"e~"}`, `{"type":"reasoning","id":"r~","encrypted_content":""}`, `{"role":"assistant","content":[{"type":"output_text","text":"a~"}]}`,
		`{"type":"function_call","call_id":"c~","name":"f~","arguments":"{}","id":"i~"}`, `{"name":"f~","input":"x","call_id":"c~","type":"custom_tool_call"}`, `{"type":"computer_call","call_id":"c~","action":{}}`,
		`{"type":"local_shell_call","call_id":"c~","name":"n","arguments":"{}"}`, `{"type":"apply_patch_call","call_id":"c~"}`, `{"type":"web_search_call","id":"w"}`, `{"type":"mcp_call","id":"m","name":"f~","arguments":"{}","output":"o"}`,
		`{"type":"function_call_output","call_id":"c~","output":"r~"}`, `{"output":[{"type":"input_text","text":"r"},{"type":"input_image","file_id":"f"}],"type":"custom_tool_call_output","call_id":"c~"}`,
		`{"type":"function_call_output","call_id":"c~","output":null}`, `{"type":"computer_call_output","call_id":"c~","output":{"type":"computer_screenshot","file_id":"f"}}`, `{"type":"shell_call_output","call_id":"c~","output":[{"stdout":"x"}]}`, `{"id":"c~","type":"local_shell_call_output","output":"x"}`,
		`{"type":"apply_patch_call_output","call_id":"c~","status":"completed"}`, `{"type":"item_reference","id":"i~"}`, `{"type":"mcp_approval_response","approve":true}`, `{"role":"tool","content":"x"}`, `{"role":"user","content":"t","output":"o"}`,
	}},
	AnthropicMessages: {{
		`{"role":"user","content":"t~"}`, `{"role":"user","content":[%,%]}`, `{"content":[%],"role":"user"}`, `{"role":"assistant","content":[%,%,%]}`, `{"content":[%],"role":"assistant"}`, `{"role":"assistant","content":"t~"}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c~","content":[%]}]}`, `{"role":"assistant","content":[{"type":"tool_use","id":"c~","name":"f~","input":{}}]}`, `{"role":"user","content":[]}`, `{"content":[%]}`,
	}, {
		`{"type":"text","text":"t~"}`, `{"text":"t~","type":"text","cache_control":{}}`, `{"type":"tool_use","id":"c~","name":"f~","input":{"path":"~"}}`, `{"input":null,"name":"f~","id":"c~","type":"tool_use"}`,
		`{"type":"server_tool_use","id":"c~","name":"web_search","input":{}}`, `{"type":"mcp_tool_use","id":"c~","name":"f~","input":{}}`, `{"type":"web_search_tool_result","tool_use_id":"c~","content":[]}`,
		`{"type":"tool_result","tool_use_id":"c~","content":"r~"}`, `{"content":[{"type":"text","text":"r"},{"type":"image"}],"is_error":true,"tool_use_id":"c~","type":"tool_result"}`, `{"type":"tool_result","tool_use_id":"c~"}`,
		`{"type":"tool_result","tool_use_id":"c~","content":null}`, `{"type":"tool_result","tool_use_id":"c~","content":{}}`, `{"type":"thinking","thinking":"h","signature":"s~"}`, `{"type":"thinking","thinking":"h","signature":""}`,
		`{"type":"redacted_thinking","data":"d~"}`, `{"type":"image"}`, `{"type":"document","source":{"type":"content","content":[{"type":"text","text":"d"},{"type":"tool_use","id":"c~","name":"f~"}]}}`,
	}},
	GeminiContents: {{
		`{"role":"user","parts":[%,%]}`, `{"parts":[%]}`, `{"role":"model","parts":[%,%,%]}`, `{"parts":[%,%],"role":"model"}`, `{"role":"function","parts":[%]}`, `{"role":"user","parts":%}`, `{"role":"model","parts":[]}`, `{"parts":null}`,
		`{"role":"model","parts":[{"functionCall":{"name":"f~","args":{"path":"~"}}}]}`, `{"role":"user","parts":[{"functionResponse":{"name":"f~","response":{}}}]}`, `{"role":"system","parts":[%]}`,
	}, {
		`{"text":"t~"}`, `{"text":"t~","thought":true}`, `{"text":null}`, `{"functionCall":{"id":"c~","name":"f~","args":{}},"thoughtSignature":"s~"}`, `{"thought_signature":"","function_call":{"args":null,"name":"f~"}}`,
		`{"functionCall":{"name":"f~"}}`, `{"functionCall":null}`, `{"functionCall":5}`, `{"functionResponse":{"id":"c~","name":"f~","response":{},"parts":[{"inlineData":{"data":"QUJD"}},{"text":"no"}]}}`,
		`{"function_response":{"name":"f~","parts":{"inlineData":{"data":"QUJD"}}}}`, `{"functionResponse":{"name":"f~","response":{},"parts":null}}`, `{"thoughtSignature":"s~","text":"t~"}`,
		`{"functionResponse":{"name":"f~","parts":[{"functionResponse":{"name":"f~"}},{"functionCall":{"name":"f~"},"thoughtSignature":"s"}]}}`,
	}},
}

func TestAnyConversationIsHeardAsEncodingJSONHasIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pick := func(from []string) string { return from[rng.IntN(len(from))] }
	member := map[Dialect]string{OpenAIChat: "messages", OpenAIResponses: "input", AnthropicMessages: "messages", GeminiContents: "contents"}
	for _, d := range Dialects() {
		found, answered := 0, 0
		for range 3000 {
			var turns []string
			for range rng.IntN(9) {
				turn := pick(pieces[d][0])
				for strings.Contains(turn, "%") {
					turn = strings.Replace(turn, "%", pick(pieces[d][1]), 1)
				}
				for strings.Contains(turn, "~") {
					turn = strings.Replace(turn, "~", fmt.Sprint(rng.IntN(2)), 1)
				}
				turns = append(turns, turn)
			}
			body := []byte(`{"` + member[d] + `":[` + strings.Join(turns, ",") + `]}`)
			if !json.Valid(body) {
				t.Fatalf("the test's own body is no JSON: %s", body)
			}
			r := mustScan(t, d, string(body))
			agrees(t, d, r, body)
			found += len(r.Calls) + len(r.Results) + len(r.Texts) + len(r.Signatures)
			for _, a := range r.Results {
				if a.Call >= 0 {
					answered++
				}
			}
		}
		if found < 3000 || answered < 150 {
			t.Errorf("%s: %d things found and %d results answered: the bodies show too little", d, found, answered)
		}
	}
}
