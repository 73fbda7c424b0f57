// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import "net/http"

func (responses) count(w http.ResponseWriter, h *heard) {
	writeJSON(w, http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": 100 * len(h.messages)})
}

// outputs are the items of a reply.
func outputs(r *reply, encrypts bool) []map[string]any {
	var items []map[string]any
	if r.signature != "" {
		item := map[string]any{"type": "reasoning", "id": r.id("rs_"), "summary": []any{}}
		if encrypts {
			item["encrypted_content"] = r.signature
		}
		items = append(items, item)
	}
	if r.Text != "" {
		items = append(items, map[string]any{
			"type": "message", "id": r.id("msg_"), "status": "completed", "role": "assistant",
			"content": []any{map[string]any{"type": "output_text", "text": r.Text, "annotations": []any{}, "logprobs": []any{}}},
		})
	}
	for i, call := range r.Calls {
		item := map[string]any{"type": "function_call", "id": r.id("fc_" + itoa(i)), "call_id": call.ID, "name": call.Name, "arguments": call.Arguments, "status": "completed"}
		if call.Custom {
			item["type"], item["input"] = "custom_tool_call", call.Arguments
			delete(item, "arguments")
			delete(item, "status")
		}
		items = append(items, item)
	}
	return items
}

func (d responses) say(w http.ResponseWriter, h *heard, r *reply) {
	items := outputs(r, h.encrypts)
	response := map[string]any{
		"id": r.id("resp_"), "object": "response", "created_at": 1_790_000_000, "status": "completed", "model": h.model, "output": items,
		"error": nil, "incomplete_details": nil, "parallel_tool_calls": true, "tools": []any{}, "tool_choice": "auto", "instructions": nil,
		"metadata": map[string]any{}, "temperature": 1, "top_p": 1,
		"usage": map[string]any{
			"input_tokens": 100 * len(h.messages), "output_tokens": 20, "total_tokens": 100*len(h.messages) + 20,
			"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 5},
		},
	}
	if !h.stream {
		writeJSON(w, http.StatusOK, response)
		return
	}
	s := &responseEvents{events: startEvents(w, h)}
	started := map[string]any{}
	for name, v := range response {
		started[name] = v
	}
	started["status"], started["output"], started["usage"] = "in_progress", []any{}, nil
	s.event("response.created", map[string]any{"response": started})
	s.event("response.in_progress", map[string]any{"response": started})
	for i, item := range items {
		s.item(i, item)
	}
	s.event("response.completed", map[string]any{"response": response})
}

// responseEvents numbers the events of a reply.
type responseEvents struct {
	events
	number int
}

func (s *responseEvents) event(kind string, members map[string]any) {
	members["type"], members["sequence_number"] = kind, s.number
	s.number++
	s.send(kind, members)
}

// item writes one item: that it comes, its text or arguments in pieces, and the whole.
func (s *responseEvents) item(i int, item map[string]any) {
	begun := map[string]any{}
	for name, v := range item {
		begun[name] = v
	}
	at := func(more map[string]any) map[string]any {
		more["output_index"], more["item_id"] = i, item["id"]
		return more
	}
	switch item["type"] {
	case "message":
		begun["status"], begun["content"] = "in_progress", []any{}
	case "function_call":
		begun["status"], begun["arguments"] = "in_progress", ""
	case "custom_tool_call":
		begun["input"] = ""
	}
	s.event("response.output_item.added", map[string]any{"output_index": i, "item": begun})
	switch item["type"] {
	case "message":
		part := item["content"].([]any)[0].(map[string]any)
		empty := map[string]any{"type": "output_text", "text": "", "annotations": []any{}}
		s.event("response.content_part.added", at(map[string]any{"content_index": 0, "part": empty}))
		for _, piece := range pieces(member(part, "text")) {
			s.event("response.output_text.delta", at(map[string]any{"content_index": 0, "delta": piece, "logprobs": []any{}}))
		}
		s.event("response.output_text.done", at(map[string]any{"content_index": 0, "text": part["text"], "logprobs": []any{}}))
		s.event("response.content_part.done", at(map[string]any{"content_index": 0, "part": part}))
	case "function_call":
		for _, piece := range pieces(member(item, "arguments")) {
			s.event("response.function_call_arguments.delta", at(map[string]any{"delta": piece}))
		}
		s.event("response.function_call_arguments.done", at(map[string]any{"name": item["name"], "arguments": item["arguments"]}))
	case "custom_tool_call":
		for _, piece := range pieces(member(item, "input")) {
			s.event("response.custom_tool_call_input.delta", at(map[string]any{"delta": piece}))
		}
		s.event("response.custom_tool_call_input.done", at(map[string]any{"input": item["input"]}))
	}
	s.event("response.output_item.done", map[string]any{"output_index": i, "item": item})
}
