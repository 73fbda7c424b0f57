// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"net/http"
	"strings"
)

// openAI are the words that OpenAI's two dialects share.
type openAI struct{}

func invalid(code, param, message string) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", code: code, param: param, message: message}
}

func (openAI) unknown(p place, key string) *refusal {
	at := p.key(key).text
	return invalid("unknown_parameter", at, "Unknown parameter: '"+at+"'.")
}

func (openAI) missing(p place, key string) *refusal {
	at := p.key(key).text
	return invalid("missing_required_parameter", at, "Missing required parameter: '"+at+"'.")
}

func (openAI) wrong(p place, want string) *refusal {
	return invalid("invalid_value", p.text, "Invalid value for '"+p.text+"': expected "+want+".")
}

func (openAI) refuse(w http.ResponseWriter, r *refusal) {
	var code, param any
	if r.code != "" {
		code = r.code
	}
	if r.param != "" {
		param = r.param
	}
	writeJSON(w, r.status, map[string]any{"error": map[string]any{"message": r.message, "type": r.kind, "param": param, "code": code}})
}

func (openAI) credential(r *http.Request) string {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}

func (openAI) list(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
		map[string]any{"id": "gpt-5.1", "object": "model", "created": 1, "owned_by": "openai"},
	}})
}

// chat is OpenAI's chat completions.
type chat struct {
	openAI
	mistral, toolImages bool
}

const chatMembers = `model! messages! stream stream_options tools tool_choice parallel_tool_calls max_tokens max_completion_tokens
	temperature top_p n stop presence_penalty frequency_penalty logit_bias logprobs top_logprobs user seed response_format
	reasoning_effort store metadata modalities moderation audio prediction service_tier web_search_options verbosity
	safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention functions function_call`

// chatTurn is what a body says so far.
type chatTurn struct {
	rules chat
	*reader
	h       *heard
	pending []string // ids of calls that wait for their answers
	last    string   // the role of the message before
	at      int      // and the index of the assistant's message that made the calls
}

func (c chat) hear(s *Server, _ *http.Request, body []byte) *heard {
	t := &chatTurn{rules: c, reader: &reader{words: c.openAI}, h: &heard{idPrefix: "call_", idSize: 24}}
	if c.mistral {
		t.h.idPrefix, t.h.idSize = "", 9
	}
	if s.options.TextOnly {
		t.textOnly = func(p place) *refusal {
			return invalid("", p.text, "Invalid content type. image_url is only supported by certain models.")
		}
	}
	o, raws := t.document(body, "messages")
	t.only(place{}, o, chatMembers)
	t.h.model, t.h.stream = t.text(place{text: "model"}, o["model"]), yes(o, "stream")
	messages := t.list(place{text: "messages"}, o["messages"])
	if len(messages) == 0 {
		panic(invalid("empty_array", "messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."))
	}
	for i, m := range messages {
		t.reader.message = i
		t.listen(s, i, m)
		t.h.hold(raws[i], true)
	}
	t.answered("")
	t.h.images = t.images
	return t.h
}

// listen reads one message.
func (t *chatTurn) listen(s *Server, i int, v any) {
	p := place{text: "messages"}.at(i)
	o, ok := v.(map[string]any)
	if !ok {
		panic(t.wrong(p, "an object"))
	}
	role := t.oneOf(p.key("role"), o["role"], "system", "developer", "user", "assistant", "tool")
	t.answered(role)
	switch role {
	case "system", "developer":
		t.only(p, o, "role! content! name")
		t.content(p.key("content"), o["content"], "text")
	case "user":
		if t.rules.mistral && t.last == "tool" {
			panic(&refusal{status: http.StatusBadRequest, kind: "invalid_request_message_order", code: "3230", message: "Unexpected role 'user' after role 'tool'"})
		}
		t.only(p, o, "role! content! name")
		text := t.content(p.key("content"), o["content"], "text image_url input_audio file")
		if t.h.opening == "" {
			t.h.opening = text
		}
	case "assistant":
		t.assistant(s, i, p, o)
	case "tool":
		t.tool(i, p, o)
	}
	t.last = role
}

// answered refuses calls that another message follows than their answers.
func (t *chatTurn) answered(role string) {
	if role == "tool" || len(t.pending) == 0 {
		return
	}
	if t.rules.mistral {
		panic(&refusal{status: http.StatusBadRequest, kind: "invalid_request_message_order", code: "3230", message: "Not the same number of function calls and responses"})
	}
	param := "messages.[" + itoa(t.at+1) + "].role"
	panic(invalid("", param, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "+strings.Join(t.pending, ", ")))
}

// content reads a content of parts of those types, and is its first text.
func (t *chatTurn) content(p place, v any, types string) string {
	if text, ok := v.(string); ok {
		return text
	}
	parts := t.list(p, v)
	if len(parts) == 0 {
		panic(invalid("empty_array", p.text, "Invalid '"+p.text+"': empty array. Expected an array with minimum length 1, but got an empty array instead."))
	}
	first := ""
	for i, part := range parts {
		at := p.at(i)
		o, ok := part.(map[string]any)
		if !ok {
			panic(t.wrong(at, "an object"))
		}
		kind := t.text(at.key("type"), o["type"])
		if kind == "image_url" && !strings.Contains(types, kind) {
			message, _, _ := strings.Cut(p.text, ".")
			panic(invalid("invalid_value", message, "Invalid '"+message+"'. Image URLs are only allowed for messages with role 'user', but this message with role '"+t.role(types)+"' contains an image URL."))
		}
		t.oneOf(at.key("type"), kind, strings.Fields(types)...)
		switch kind {
		case "text":
			t.only(at, o, "type! text! prompt_cache_breakpoint")
			text := t.text(at.key("text"), o["text"])
			if first == "" {
				first = text
			}
		case "image_url":
			t.image(at, o)
		default:
			t.only(at, o, "type! prompt_cache_breakpoint "+kind+"!")
		}
	}
	return first
}

func (t *chatTurn) role(types string) string {
	if strings.Contains(types, "refusal") {
		return "assistant"
	}
	if t.inResult {
		return "tool"
	}
	return "system"
}

func (t *chatTurn) image(p place, o map[string]any) {
	t.only(p, o, "type! image_url! prompt_cache_breakpoint")
	if url, ok := o["image_url"].(string); ok && t.rules.mistral {
		t.openAIImage(p, url)
		return
	}
	image := t.object(p.key("image_url"), o["image_url"], "url! detail")
	if detail, ok := image["detail"]; ok {
		t.oneOf(p.key("image_url").key("detail"), detail, "auto", "low", "high", "original")
	}
	t.openAIImage(p, t.text(p.key("image_url").key("url"), image["url"]))
}

// assistant reads what the model said, and looks whether it said it there.
func (t *chatTurn) assistant(s *Server, i int, p place, o map[string]any) {
	t.only(p, o, "role! content name refusal audio tool_calls function_call")
	text := ""
	if o["content"] != nil {
		text = t.content(p.key("content"), o["content"], "text refusal")
	}
	if o["content"] == nil && o["tool_calls"] == nil && o["refusal"] == nil && o["function_call"] == nil {
		panic(invalid("", p.key("content").text, "Invalid value for 'content': expected a string, got null."))
	}
	if _, ok := o["tool_calls"]; !ok {
		s.mu.Lock()
		if s.said[t.h.opening+"\x00"+text] {
			t.h.turns++
		}
		s.mu.Unlock()
		return
	}
	calls := t.list(p.key("tool_calls"), o["tool_calls"])
	if len(calls) == 0 {
		at := p.key("tool_calls").text
		panic(invalid("empty_array", at, "Invalid '"+at+"': empty array. Expected an array with minimum length 1, but got an empty array instead."))
	}
	t.h.turns++
	t.at = i
	for n, v := range calls {
		at := p.key("tool_calls").at(n)
		call := t.object(at, v, "id! type! function!")
		function := t.object(at.key("function"), call["function"], "name! arguments!")
		id := t.text(at.key("id"), call["id"])
		if !json.Valid([]byte(t.text(at.key("function").key("arguments"), function["arguments"]))) && t.rules.mistral {
			panic(t.wrong(at, "arguments of JSON"))
		}
		t.pending = append(t.pending, id)
		s.mu.Lock()
		want := s.calls[id]
		s.mu.Unlock()
		if want != nil && n == 0 {
			t.h.seals = append(t.h.seals, seal{place: p.text, before: i, want: want})
		}
	}
}

// tool reads the answer to a call.
func (t *chatTurn) tool(i int, p place, o map[string]any) {
	members := "role! content! tool_call_id!"
	if t.rules.mistral {
		members += " name"
	}
	t.only(p, o, members)
	id := t.text(p.key("tool_call_id"), o["tool_call_id"])
	at := -1
	for n, pending := range t.pending {
		if pending == id {
			at = n
		}
	}
	if at < 0 {
		panic(invalid("", "messages.["+itoa(i)+"].role", "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."))
	}
	t.pending = append(t.pending[:at:at], t.pending[at+1:]...)
	t.inResult = true
	types := "text"
	if t.rules.toolImages {
		types = "text image_url"
	}
	t.content(p.key("content"), o["content"], types)
	t.inResult = false
}

// forged is never asked for: the dialect has no signatures.
func (c chat) forged(_ *heard, s seal) *refusal {
	return c.wrong(place{text: s.place}, "its own conversation")
}

func (c chat) count(http.ResponseWriter, *heard) {}
