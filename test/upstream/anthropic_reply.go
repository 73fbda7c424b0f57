// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"net/http"
)

func (anthropic) count(w http.ResponseWriter, h *heard) {
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": 100 * len(h.messages)})
}

func (a anthropic) say(w http.ResponseWriter, h *heard, r *reply) {
	reason := "end_turn"
	if len(r.Calls) > 0 {
		reason = "tool_use"
	}
	message := map[string]any{
		"id": r.id("msg_"), "type": "message", "role": "assistant", "model": h.model, "stop_reason": reason, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 100 * len(h.messages), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 20},
	}
	if h.stream {
		a.stream(w, h, message, r)
		return
	}
	content := []any{}
	if r.signature != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": thought, "signature": r.signature})
	}
	if r.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": r.Text, "citations": nil})
	}
	for _, call := range r.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": call.ID, "name": call.Name, "input": json.RawMessage(call.Arguments)})
	}
	message["content"] = content
	writeJSON(w, http.StatusOK, message)
}

// thought is what every model thinks.
const thought = "What does the screen show?"

// stream writes the reply as events, with a ping among them as the vendor does.
func (anthropic) stream(w http.ResponseWriter, h *heard, message map[string]any, r *reply) {
	reason, usage := message["stop_reason"], message["usage"]
	message["content"], message["stop_reason"] = []any{}, nil
	e := startEvents(w, h)
	e.send("message_start", map[string]any{"type": "message_start", "message": message})
	index := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		e.send("content_block_start", map[string]any{"type": "content_block_start", "index": index, "content_block": start})
		if index == 0 {
			e.send("ping", map[string]any{"type": "ping"})
		}
		for _, delta := range deltas {
			e.send("content_block_delta", map[string]any{"type": "content_block_delta", "index": index, "delta": delta})
		}
		e.send("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
		index++
	}
	if r.signature != "" {
		deltas := deltasOf("thinking_delta", "thinking", thought)
		deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": r.signature})
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, deltas...)
	}
	if r.Text != "" {
		block(map[string]any{"type": "text", "text": ""}, deltasOf("text_delta", "text", r.Text)...)
	}
	for _, call := range r.Calls {
		block(map[string]any{"type": "tool_use", "id": call.ID, "name": call.Name, "input": map[string]any{}},
			deltasOf("input_json_delta", "partial_json", call.Arguments)...)
	}
	e.send("message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	e.send("message_stop", map[string]any{"type": "message_stop"})
}

func deltasOf(kind, member, text string) []map[string]any {
	var deltas []map[string]any
	for _, piece := range pieces(text) {
		deltas = append(deltas, map[string]any{"type": kind, member: piece})
	}
	return deltas
}
