// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// responses is OpenAI's Responses, with what it keeps of conversations.
type responses struct{ openAI }

// stored is a conversation that the server keeps.
type stored struct {
	opening string
	items   []json.RawMessage
}

const (
	responsesMembers = `model input previous_response_id conversation instructions stream stream_options store include tools tool_choice
		parallel_tool_calls max_output_tokens max_tool_calls temperature top_p top_logprobs text reasoning truncation metadata user
		service_tier background prompt prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier context_management moderation`
	countedMembers = `model input previous_response_id conversation instructions tools tool_choice parallel_tool_calls text reasoning truncation personality`
)

// itemMembers are the members of the items that are read; other known items are
// taken as they are.
var itemMembers = map[string]string{
	"message":                 "type role! content! id status phase",
	"function_call":           "type! call_id! name! arguments! id status namespace caller async",
	"function_call_output":    "type! call_id! output! id status name namespace caller",
	"custom_tool_call":        "type! call_id! name! input! id status namespace caller async",
	"custom_tool_call_output": "type! call_id! output! id status caller",
	"reasoning":               "type! id summary! content encrypted_content status",
	"item_reference":          "type id!",
}

var otherItems = []string{
	"computer_call", "computer_call_output", "web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call",
	"local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
	"mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction",
}

// responsesTurn is what a body says so far.
type responsesTurn struct {
	*reader
	server  *Server
	h       *heard
	calls   []string // ids of calls without an output so far
	model   bool     // the item before was the model's
	stored  bool     // items of the kept conversation are read
	include []any
}

func (d responses) hear(s *Server, r *http.Request, body []byte) *heard {
	t := &responsesTurn{reader: &reader{words: d.openAI}, server: s, h: &heard{idPrefix: "call_", idSize: 24}}
	if s.options.TextOnly {
		t.textOnly = func(p place) *refusal { return invalid("", p.text, "This model does not support image inputs.") }
	}
	o, raws := t.document(body, "input")
	members := responsesMembers
	if t.h.counting = strings.HasSuffix(r.URL.Path, "/input_tokens"); t.h.counting {
		members = countedMembers
	}
	t.only(place{}, o, members)
	t.h.model, t.h.stream = t.text(place{text: "model"}, o["model"]), yes(o, "stream")
	t.include, _ = o["include"].([]any)
	t.h.base = canonical(encoded([]any{o["instructions"], o["tools"]}))
	kept, conversation := t.kept(o)
	t.stored = true
	for i, raw := range kept.items {
		t.item(place{text: "stored"}.at(i), raw)
	}
	t.stored, t.model = false, false
	switch input := o["input"].(type) {
	case string:
		raws = []json.RawMessage{encoded(map[string]any{"type": "message", "role": "user", "content": input})}
	case []any:
		if len(input) == 0 && len(kept.items) == 0 {
			panic(invalid("missing_required_parameter", "input", "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."))
		}
	default:
		panic(t.wrong(place{text: "input"}, "a string or an array"))
	}
	for i, raw := range raws {
		t.item(place{text: "input"}.at(i), raw)
	}
	if len(t.calls) > 0 {
		panic(invalid("", "input", "No tool output found for function call "+t.calls[0]+"."))
	}
	t.h.images = t.images
	store, told := o["store"].(bool)
	t.h.remember = func(r *reply) { t.remember(r, conversation, store || !told) }
	t.h.encrypts = slices.Contains(t.include, any("reasoning.encrypted_content"))
	return t.h
}

// kept is the conversation that the server keeps and the request goes on with.
func (t *responsesTurn) kept(o map[string]any) (kept stored, conversation string) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	previous := member(o, "previous_response_id")
	conversation = member(o, "conversation")
	if c, ok := o["conversation"].(map[string]any); ok {
		conversation = member(c, "id")
	}
	if previous != "" && conversation != "" {
		panic(invalid("mutually_exclusive_parameters", "", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one."))
	}
	if previous != "" {
		found, ok := t.server.stored[previous]
		if !ok {
			panic(invalid("previous_response_not_found", "previous_response_id", "Previous response with id '"+previous+"' not found."))
		}
		kept = found
	}
	if conversation != "" {
		if !strings.HasPrefix(conversation, "conv_") {
			panic(&refusal{status: http.StatusNotFound, kind: "invalid_request_error", message: "Conversation with id '" + conversation + "' not found."})
		}
		kept = t.server.listed[conversation]
	}
	t.h.opening = kept.opening
	return kept, conversation
}

// remember keeps the conversation with the reply at its end. The server is locked.
func (t *responsesTurn) remember(r *reply, conversation string, store bool) {
	if !store {
		return
	}
	now := stored{opening: t.h.opening}
	for _, m := range t.h.messages {
		now.items = append(now.items, m.raw)
	}
	for _, item := range outputs(r, false) {
		now.items = append(now.items, encoded(item))
	}
	t.server.stored[r.id("resp_")] = now
	if conversation != "" {
		t.server.listed[conversation] = now
	}
}

// item reads one item.
func (t *responsesTurn) item(p place, raw json.RawMessage) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(t.wrong(p, "JSON"))
	}
	o, ok := v.(map[string]any)
	if !ok {
		panic(t.wrong(p, "an object"))
	}
	kind := member(o, "type")
	if _, told := o["type"]; !told {
		if kind = "message"; o["role"] == nil && o["id"] != nil {
			kind = "item_reference"
		}
	}
	members, known := itemMembers[kind]
	if known {
		t.only(p, o, members)
	} else if !slices.Contains(otherItems, kind) {
		panic(invalid("invalid_value", p.key("type").text, "Invalid value: '"+kind+"'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning', and others."))
	}
	if kind == "item_reference" {
		t.refer(p, member(o, "id"))
		return
	}
	t.reader.message = len(t.h.messages)
	model := kind == "reasoning" || strings.HasSuffix(kind, "_call") || kind == "message" && member(o, "role") == "assistant"
	if model && !t.model {
		t.h.turns++
	}
	t.model = model
	t.read(p, kind, o)
	t.h.hold(raw, kind != "reasoning")
}

// read reads an item of a known kind.
func (t *responsesTurn) read(p place, kind string, o map[string]any) {
	switch kind {
	case "message":
		t.says(p, o)
	case "reasoning":
		t.reasoning(p, o)
	case "function_call", "custom_tool_call":
		id := t.text(p.key("call_id"), o["call_id"])
		t.text(p.key("name"), o["name"])
		if kind == "function_call" {
			t.text(p.key("arguments"), o["arguments"])
		}
		t.calls = append(t.calls, id)
	case "function_call_output", "custom_tool_call_output":
		t.output(p, kind, o)
	case "computer_call_output":
		t.screenshot(p, o)
	}
}

// says reads a message.
func (t *responsesTurn) says(p place, o map[string]any) {
	role := t.oneOf(p.key("role"), o["role"], "user", "assistant", "system", "developer")
	if text, ok := o["content"].(string); ok {
		t.opened(role, text)
		return
	}
	types := []string{"input_text", "input_image", "input_file"}
	if role == "assistant" {
		types = []string{"output_text", "refusal"}
	}
	t.parts(p.key("content"), o["content"], role, types)
}

func (t *responsesTurn) opened(role, text string) {
	if role == "user" && t.h.opening == "" {
		t.h.opening = text
	}
}

// parts reads a content of parts.
func (t *responsesTurn) parts(p place, v any, role string, types []string) {
	for i, part := range t.list(p, v) {
		at := p.at(i)
		o, ok := part.(map[string]any)
		if !ok {
			panic(t.wrong(at, "an object"))
		}
		kind := member(o, "type")
		if !slices.Contains(types, kind) {
			panic(invalid("invalid_value", at.key("type").text, "Invalid value: '"+kind+"'. Supported values are: '"+strings.Join(types, "', '")+"'."))
		}
		switch kind {
		case "input_text":
			t.only(at, o, "type! text! prompt_cache_breakpoint")
			t.opened(role, t.text(at.key("text"), o["text"]))
		case "output_text":
			t.only(at, o, "type! text! annotations logprobs")
		case "refusal":
			t.only(at, o, "type! refusal!")
		case "input_file":
			t.only(at, o, "type! file_id file_data file_url filename detail prompt_cache_breakpoint")
		case "input_image":
			t.image(at, o)
		}
	}
}

func (t *responsesTurn) image(p place, o map[string]any) {
	t.only(p, o, "type! image_url file_id detail prompt_cache_breakpoint context_compression")
	if detail := o["detail"]; detail != nil {
		t.oneOf(p.key("detail"), detail, "low", "high", "auto", "original")
	}
	if file := member(o, "file_id"); file != "" {
		t.saw(p, Image{URL: file})
		return
	}
	t.openAIImage(p.key("image_url"), t.text(p.key("image_url"), o["image_url"]))
}

// output reads the answer to a call, which must be there.
func (t *responsesTurn) output(p place, kind string, o map[string]any) {
	id := t.text(p.key("call_id"), o["call_id"])
	at := slices.Index(t.calls, id)
	if at < 0 {
		what := "function call"
		if strings.HasPrefix(kind, "custom") {
			what = "custom tool call"
		}
		panic(invalid("", "input", "No tool call found for "+what+" output with call_id "+id+"."))
	}
	t.calls = slices.Delete(t.calls, at, at+1)
	if _, ok := o["output"].(string); ok {
		return
	}
	t.inResult = true
	t.parts(p.key("output"), o["output"], "", []string{"input_text", "input_image", "input_file"})
	t.inResult = false
}

// screenshot reads what a computer call came to.
func (t *responsesTurn) screenshot(p place, o map[string]any) {
	output := t.object(p.key("output"), o["output"], "type! image_url file_id detail")
	if t.oneOf(p.key("output").key("type"), output["type"], "computer_screenshot"); member(output, "image_url") != "" {
		t.openAIImage(p.key("output").key("image_url"), member(output, "image_url"))
	}
}

// reasoning reads what the model thought: sealed, or kept by the server.
func (t *responsesTurn) reasoning(p place, o map[string]any) {
	sealed := member(o, "encrypted_content")
	if t.stored {
		return
	}
	if sealed == "" {
		panic(&refusal{status: http.StatusNotFound, kind: "invalid_request_error", param: "input",
			message: "Item with id '" + member(o, "id") + "' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."})
	}
	t.h.seals = append(t.h.seals, seal{place: p.text, signature: sealed, before: len(t.h.messages)})
}

// refer puts an item that the server keeps in the place of its id.
func (t *responsesTurn) refer(p place, id string) {
	t.server.mu.Lock()
	var found json.RawMessage
	for _, kept := range t.server.stored {
		for _, raw := range kept.items {
			var item struct{ ID string }
			if json.Unmarshal(raw, &item) == nil && item.ID == id {
				found = raw
			}
		}
	}
	t.server.mu.Unlock()
	if found == nil {
		panic(&refusal{status: http.StatusNotFound, kind: "invalid_request_error", param: "input", message: "Item with id '" + id + "' not found."})
	}
	was := t.stored
	t.stored = true
	t.item(p, found)
	t.stored = was
}

func (responses) forged(_ *heard, s seal) *refusal {
	return invalid("invalid_encrypted_content", s.place, "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or parsed.")
}
