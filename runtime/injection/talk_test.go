// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/json"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// turn is one turn of a conversation in no dialect: exactly one of its parts.
type turn struct {
	human   string // a human's text
	model   string // the assistant's text
	calls   []made // the assistant's calls
	answers []got  // results of tools, in one turn where the dialect puts them into one
}

// made is a call; path is its path argument, "-" leaves it out.
type made struct{ id, tool, path string }

// got is a result of a tool.
type got struct {
	id, tool, text string
	image, failed  bool
}

func asks(text string) turn     { return turn{human: text} }
func says(text string) turn     { return turn{model: text} }
func makes(calls ...made) turn  { return turn{calls: calls} }
func gets(answers ...got) turn  { return turn{answers: answers} }
func view(id, path string) made { return made{id, "view_image", path} }
func seen(id string) got        { return got{id: id, tool: "view_image", text: "read"} }
func other(id string) made      { return made{id, "shell", "-"} }
func done(id string) got        { return got{id: id, tool: "shell", text: "done"} }

type object = map[string]any

// onePixel is base64 of no image; nothing here decodes it.
const onePixel = "iVBORw0KGgo="

// bodyOf is a conversation as a body of the dialect.
func bodyOf(t testing.TB, d message.Dialect, talk []turn) []byte {
	t.Helper()
	body := object{"model": "m"}
	var all []any
	for _, turn := range talk {
		switch d {
		case message.OpenAIChat:
			all = append(all, chatTurn(turn)...)
		case message.OpenAIResponses:
			all = append(all, responsesTurn(turn)...)
		case message.AnthropicMessages:
			all = append(all, anthropicTurn(turn))
		case message.GeminiContents:
			all = append(all, geminiTurn(turn))
		}
	}
	if all == nil {
		all = []any{}
	}
	name := map[message.Dialect]string{message.OpenAIResponses: "input", message.GeminiContents: "contents"}[d]
	if name == "" {
		name = "messages"
	}
	body[name] = all
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (m made) arguments() object {
	if m.path == "-" {
		return object{}
	}
	return object{"path": m.path}
}

func (m made) text() string {
	data, _ := json.Marshal(m.arguments())
	return string(data)
}

func chatTurn(t turn) (all []any) {
	switch {
	case t.human != "":
		return []any{object{"role": "user", "content": t.human}}
	case t.model != "":
		return []any{object{"role": "assistant", "content": t.model}}
	case t.calls != nil:
		var calls []any
		for _, c := range t.calls {
			call := object{"type": "function", "function": object{"name": c.tool, "arguments": c.text()}}
			if c.id != "" {
				call["id"] = c.id
			}
			calls = append(calls, call)
		}
		return []any{object{"role": "assistant", "content": nil, "tool_calls": calls}}
	}
	for _, a := range t.answers {
		content := any(a.text)
		if a.image {
			content = []any{object{"type": "image_url", "image_url": object{"url": "data:image/png;base64," + onePixel}}}
		}
		m := object{"role": "tool", "content": content}
		if a.id != "" {
			m["tool_call_id"] = a.id
		}
		all = append(all, m)
	}
	return all
}

func responsesTurn(t turn) (all []any) {
	switch {
	case t.human != "":
		return []any{object{"role": "user", "content": t.human}}
	case t.model != "":
		return []any{object{"type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": t.model}}}}
	}
	for _, c := range t.calls {
		call := object{"type": "function_call", "name": c.tool, "arguments": c.text()}
		if c.id != "" {
			call["call_id"] = c.id
		}
		all = append(all, call)
	}
	for _, a := range t.answers {
		output := any(a.text)
		if a.image {
			output = []any{object{"type": "input_image", "image_url": "data:image/png;base64," + onePixel}}
		}
		item := object{"type": "function_call_output", "output": output}
		if a.id != "" {
			item["call_id"] = a.id
		}
		all = append(all, item)
	}
	return all
}

func anthropicTurn(t turn) any {
	switch {
	case t.human != "":
		return object{"role": "user", "content": t.human}
	case t.model != "":
		return object{"role": "assistant", "content": t.model}
	}
	var blocks []any
	for _, c := range t.calls {
		block := object{"type": "tool_use", "name": c.tool, "input": c.arguments()}
		if c.id != "" {
			block["id"] = c.id
		}
		blocks = append(blocks, block)
	}
	for _, a := range t.answers {
		content := any(a.text)
		if a.image {
			content = []any{object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": onePixel}}}
		}
		block := object{"type": "tool_result", "content": content}
		if a.id != "" {
			block["tool_use_id"] = a.id
		}
		if a.failed {
			block["is_error"] = true
		}
		blocks = append(blocks, block)
	}
	role := "user"
	if t.calls != nil {
		role = "assistant"
	}
	return object{"role": role, "content": blocks}
}

func geminiTurn(t turn) any {
	switch {
	case t.human != "":
		return object{"role": "user", "parts": []any{object{"text": t.human}}}
	case t.model != "":
		return object{"role": "model", "parts": []any{object{"text": t.model}}}
	}
	var parts []any
	for _, c := range t.calls {
		call := object{"name": c.tool, "args": c.arguments()}
		if c.id != "" {
			call["id"] = c.id
		}
		parts = append(parts, object{"functionCall": call})
	}
	for _, a := range t.answers {
		response := object{"name": a.tool, "response": object{"result": a.text}}
		if a.id != "" {
			response["id"] = a.id
		}
		if a.image {
			response["parts"] = []any{object{"inlineData": object{"mimeType": "image/png", "data": onePixel}}}
		}
		parts = append(parts, object{"functionResponse": response})
	}
	role := "user"
	if t.calls != nil {
		role = "model"
	}
	return object{"role": role, "parts": parts}
}

// places are where images of calls may be put in a dialect.
func places(d message.Dialect) []string {
	if d == message.OpenAIChat {
		return []string{router.ToolImagesUserMessage, router.ToolImagesAssistantThenUser, router.ToolImagesInToolResult}
	}
	return []string{router.ToolImagesInToolResult, router.ToolImagesUserMessage}
}

// found is the plan of a conversation.
func found(t testing.TB, d message.Dialect, place string, rules router.Injection, talk ...turn) *Plan {
	t.Helper()
	return foundIn(t, d, place, rules, bodyOf(t, d, talk), nil)
}

func foundIn(t testing.TB, d message.Dialect, place string, rules router.Injection, body []byte, known Known) *Plan {
	t.Helper()
	r, err := message.Scan(d, body)
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return Find(r, body, RulesOf(rules), place, known)
}

// everywhere runs a test in every dialect and at every place.
func everywhere(t *testing.T, test func(t *testing.T, d message.Dialect, place string)) {
	for _, d := range message.Dialects() {
		for _, place := range places(d) {
			t.Run(string(d)+"/"+place, func(t *testing.T) { test(t, d, place) })
		}
	}
}

// told are a plan's sights and skips in short: "path State" and "!Reason".
func told(p *Plan) []string {
	all := []string{}
	for _, s := range p.Sights {
		all = append(all, s.Path+" "+string(s.State))
	}
	for _, s := range p.Skips {
		all = append(all, "!"+s.Reason)
	}
	return all
}
