// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// pathsOf are the paths of a plan's sights with the turns that they stand at.
func pathsOf(p *Plan) []string {
	var all []string
	for _, s := range p.Sights {
		all = append(all, fmt.Sprintf("%s@%d", s.Path, s.Turn))
	}
	return all
}

func TestSightsAreInTheOrderOfTheirPlacement(t *testing.T) {
	const a, b = "call_a1b2c3d4", "call_b1b2c3d4"
	talk := []turn{asks("look"), makes(view(a, "a.png"), view(b, "b.png")), gets(seen(b), seen(a)), asks("see ![c](c.png)")}
	tests := []struct {
		d     message.Dialect
		place string
		want  []string
	}{
		{message.OpenAIChat, router.ToolImagesUserMessage, []string{"a.png@3", "b.png@3", "c.png@4"}},
		{message.OpenAIChat, router.ToolImagesAssistantThenUser, []string{"a.png@3", "b.png@3", "c.png@4"}},
		{message.OpenAIChat, router.ToolImagesInToolResult, []string{"b.png@2", "a.png@3", "c.png@4"}},
		{message.OpenAIResponses, router.ToolImagesInToolResult, []string{"b.png@3", "a.png@4", "c.png@5"}},
		{message.OpenAIResponses, router.ToolImagesUserMessage, []string{"a.png@4", "b.png@4", "c.png@5"}},
		{message.AnthropicMessages, router.ToolImagesInToolResult, []string{"b.png@2", "a.png@2", "c.png@3"}},
		{message.GeminiContents, router.ToolImagesInToolResult, []string{"b.png@2", "a.png@2", "c.png@3"}},
		{message.GeminiContents, router.ToolImagesUserMessage, []string{"a.png@2", "b.png@2", "c.png@3"}},
	}
	for _, test := range tests {
		t.Run(string(test.d)+"/"+test.place, func(t *testing.T) {
			p := found(t, test.d, test.place, router.Injection{MarkdownImages: router.MarkdownAttach}, talk...)
			if got := pathsOf(p); !slices.Equal(got, test.want) {
				t.Errorf("got %q; want %q", got, test.want)
			}
			for _, s := range p.Sights {
				if !s.Fresh {
					t.Errorf("%s is not fresh", s.Path)
				}
			}
		})
	}
}

func TestMarkdownOfAMessageThatAlsoHoldsResultsComesWhereItStands(t *testing.T) {
	body := `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_12345","name":"view_image","input":{"path":"a.png"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_12345","content":"ok"},{"type":"text","text":"and ![b](b.png)"}]}]}`
	for place, want := range map[string][]string{
		router.ToolImagesInToolResult: {"a.png@1", "b.png@1"}, router.ToolImagesUserMessage: {"b.png@1", "a.png@1"},
	} {
		p := foundIn(t, message.AnthropicMessages, place, router.Injection{MarkdownImages: router.MarkdownAttach}, []byte(body), nil)
		if got := pathsOf(p); !slices.Equal(got, want) {
			t.Errorf("%s: got %q", place, got)
		}
	}
}

func TestASightTellsItsCall(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"look"},{"role":"assistant","content":"","tool_calls":[
		{"id":"call_1a2b3c4","type":"function","function":{"name":"mcp__x__view_image","arguments":"{\"prompt\":\"what is it?\",\"image_path\":\"d\\u00e9j\\u00e0.png\"}"}}]},
		{"role":"tool","tool_call_id":"call_1a2b3c4","content":"ok"},{"role":"assistant","content":"a cat"}]}`
	p := foundIn(t, message.OpenAIChat, router.ToolImagesUserMessage, router.Injection{}, []byte(body), nil)
	if len(p.Sights) != 1 {
		t.Fatalf("got %q", told(p))
	}
	s := p.Sights[0]
	if len(s.Key) != 64 {
		t.Errorf("the key is %q", s.Key)
	}
	s.Key = ""
	want := Sight{
		ID: "messages[1].tool_calls[0]", Kind: Called, Turn: 2, Call: 0, Result: 0, Text: -1, Tool: "mcp__x__view_image", CallID: "call_1a2b3c4",
		Path: "déjà.png", Prompt: "what is it?", State: Wanted,
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v; want %+v", s, want)
	}
}

func TestThePathIsTheFirstArgumentThatThePolicyNames(t *testing.T) {
	body := `{"input":[{"type":"function_call","call_id":"call_1a2b3c4","name":"view_image","arguments":"{\"file\":\"f\",\"absolute_path\":\"/abs\",\"path\":7,\"file_path\":\"fp\"}"},
		{"type":"function_call_output","call_id":"call_1a2b3c4","output":"ok"}]}`
	for want, arguments := range map[string][]string{"fp": nil, "f": {"file", "path"}, "/abs": {"absolute_path", "file"}, "": {"nothing"}} {
		p := foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{PathArguments: arguments}, []byte(body), nil)
		if len(p.Sights) != 1 || p.Sights[0].Path != want {
			t.Errorf("%q: got %q", arguments, told(p))
		}
	}
}

func TestAResultThatTakesNoImageIsLeftWhereImagesGoIntoResults(t *testing.T) {
	body := `{"input":[{"type":"computer_call","call_id":"call_12345","action":{"type":"screenshot"}},
		{"type":"computer_call_output","call_id":"call_12345","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,aaaa"}},
		{"type":"apply_patch_call","call_id":"call_12346","operation":{}},{"type":"apply_patch_call_output","call_id":"call_12346","status":"completed","output":"x"}]}`
	p := foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{Tools: []string{"*"}}, []byte(body), nil)
	if got := told(p); !slices.Equal(got, []string{" ShownByTool", "!ResultTakesNoImage"}) {
		t.Errorf("got %q", got)
	}
}

func TestCallsOfVendorsOwnServersAreNotWaitedFor(t *testing.T) {
	anthropic := `{"messages":[{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},
		{"type":"mcp_tool_use","id":"mcptoolu_1","name":"view_image","server_name":"x","input":{"path":"m.png"}},
		{"type":"tool_use","id":"toolu_12345","name":"view_image","input":{"path":"a.png"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_12345","content":"ok"}]}]}`
	responses := `{"input":[{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"mcp_call","id":"mcp_1","name":"view_image","arguments":"{}","server_label":"x"},
		{"type":"function_call","call_id":"call_12345","name":"view_image","arguments":"{\"path\":\"a.png\"}"},{"type":"function_call_output","call_id":"call_12345","output":"ok"}]}`
	for d, body := range map[message.Dialect]string{message.AnthropicMessages: anthropic, message.OpenAIResponses: responses} {
		p := foundIn(t, d, router.ToolImagesInToolResult, router.Injection{}, []byte(body), nil)
		if got := told(p); !slices.Equal(got, []string{"a.png Wanted"}) {
			t.Errorf("%s: got %q", d, got)
		}
	}
}

func TestEveryKindOfCallThatTheClientAnswersIsWaitedFor(t *testing.T) {
	const ours = `{"type":"function_call","call_id":"call_12345","name":"view_image","arguments":"{\"path\":\"a.png\"}"}`
	const answer = `{"type":"function_call_output","call_id":"call_12345","output":"ok"}`
	for _, kind := range []string{"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"} {
		call := fmt.Sprintf(`{"type":%q,"call_id":"call_other","name":"x"}`, kind)
		open := fmt.Sprintf(`{"input":[%s,%s,%s]}`, ours, call, answer)
		if got := told(foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{}, []byte(open), nil)); !slices.Equal(got, []string{"!CallsUnanswered"}) {
			t.Errorf("%s open: got %q", kind, got)
		}
		names := []string{"call_id"}
		if kind == "local_shell_call" {
			names = append(names, "id") // so the vendor's own libraries name the call
		}
		for _, name := range names {
			closed := fmt.Sprintf(`{"input":[%s,%s,%s,{"type":"%s_output",%q:"call_other","output":"x"}]}`, ours, call, answer, kind, name)
			if got := told(foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{}, []byte(closed), nil)); !slices.Equal(got, []string{"a.png Wanted"}) {
				t.Errorf("%s answered by %s: got %q", kind, name, got)
			}
		}
	}
}

func TestCallsThatTheVendorKeepsAreLookedUp(t *testing.T) {
	known := func(id string) (KnownCall, bool) {
		switch id {
		case "call_view1":
			return KnownCall{ID: id, Name: "view_image", Arguments: `{"path":"a.png","prompt":"p"}`}, true
		case "call_shell":
			return KnownCall{ID: id, Name: "shell", Arguments: `{}`}, true
		}
		return KnownCall{}, false
	}
	output := func(id string) string {
		return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"ok"}`, id)
	}
	tests := []struct {
		name, body string
		want       []string
	}{
		{"after an earlier response", `{"previous_response_id":"resp_1","input":[` + output("call_view1") + `]}`, []string{"a.png Wanted"}},
		{"in a conversation", `{"conversation":"conv_1","input":[` + output("call_view1") + `]}`, []string{"a.png Wanted"}},
		{"beside a reference to the call", `{"input":[{"type":"item_reference","id":"fc_1"},` + output("call_view1") + `]}`, []string{"a.png Wanted"}},
		{"answered twice", `{"previous_response_id":"resp_1","input":[` + output("call_view1") + `,` + output("call_view1") + `]}`, []string{"a.png Wanted"}},
		{"of another tool", `{"previous_response_id":"resp_1","input":[` + output("call_shell") + `]}`, nil},
		{"not known", `{"previous_response_id":"resp_1","input":[` + output("call_x") + `]}`, []string{"!CallNotVisible"}},
		{"not known beside a known one", `{"previous_response_id":"resp_1","input":[` + output("call_x") + `,` + output("call_view1") + `]}`, []string{"a.png Wanted", "!CallNotVisible"}},
		{"in a body that says all there is", `{"input":[` + output("call_view1") + `]}`, nil},
		{"without an id", `{"previous_response_id":"resp_1","input":[{"type":"function_call_output","output":"x"}]}`, []string{"!CallNotVisible"}},
		{"beside a call of the body that is open", `{"previous_response_id":"resp_1","input":[{"type":"function_call","call_id":"call_2","name":"x","arguments":"{}"},` + output("call_view1") + `]}`,
			[]string{"!CallsUnanswered"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{}, []byte(test.body), known)
			if got := told(p); !slices.Equal(got, test.want) && len(got)+len(test.want) > 0 {
				t.Errorf("got %q; want %q", got, test.want)
			}
			for _, s := range p.Sights {
				if s.Call != -1 || s.Result < 0 || s.CallID != "call_view1" || s.Tool != "view_image" || s.Prompt != "p" || !strings.HasPrefix(s.ID, "input[") {
					t.Errorf("got %+v", s)
				}
			}
		})
	}
	p := foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{}, []byte(tests[0].body), nil)
	if got := told(p); !slices.Equal(got, []string{"!CallNotVisible"}) {
		t.Errorf("with nobody to ask: got %q", got)
	}
}

func TestACallHasTheSameKeyWhetherTheVendorOrTheBodyKeepsIt(t *testing.T) {
	known := func(id string) (KnownCall, bool) {
		return KnownCall{Name: "view_image", Arguments: `{"path":"a.png","prompt":"p"}`}, true
	}
	kept := foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{},
		[]byte(`{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"call_1a2b3c4","output":"ok"}]}`), known)
	whole := foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{},
		[]byte(`{"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"call_1a2b3c4","name":"view_image","arguments":"{ \"prompt\": \"p\", \"path\": \"a.png\" }"},
			{"type":"function_call_output","call_id":"call_1a2b3c4","output":"ok"}]}`), nil)
	if len(kept.Sights) != 1 || len(whole.Sights) != 1 || kept.Sights[0].Key != whole.Sights[0].Key || kept.Sights[0].Weak {
		t.Errorf("got %+v and %+v", kept.Sights, whole.Sights)
	}
}

// Sixteen seconds, where each was compared with all before it.
func TestManyResultsOfCallsThatTheVendorKeepsAreReadInTime(t *testing.T) {
	const many = 60_000
	var items []string
	for i := range many {
		items = append(items, fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":"read"}`, i))
	}
	body := []byte(`{"previous_response_id":"resp_1","input":[` + strings.Join(items, ",") + `]}`)
	known := func(string) (KnownCall, bool) {
		return KnownCall{Name: "view_image", Arguments: `{"path":"a.png"}`}, true
	}
	p := foundIn(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{}, body, known)
	if len(p.Sights) != maxSights || len(p.Skips) != maxSights {
		t.Errorf("%d sights and %d skips", len(p.Sights), len(p.Skips))
	}
}
