// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import "net/http"

func (c chat) say(w http.ResponseWriter, h *heard, r *reply) {
	usage := map[string]any{"prompt_tokens": 100 * len(h.messages), "completion_tokens": 20, "total_tokens": 100*len(h.messages) + 20}
	reason := "stop"
	if len(r.Calls) > 0 {
		reason = "tool_calls"
	}
	if h.stream {
		c.stream(w, h, r, reason)
		return
	}
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{}}
	if r.Text != "" {
		message["content"] = r.Text
	}
	var calls []any
	for _, call := range r.Calls {
		calls = append(calls, map[string]any{"id": call.ID, "type": "function", "function": map[string]any{"name": call.Name, "arguments": call.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": r.id("chatcmpl-"), "object": "chat.completion", "created": 1_790_000_000, "model": h.model, "usage": usage,
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": reason}},
	})
}

// stream writes the reply in chunks: the role, the text in pieces, each call with
// its arguments in pieces, the reason, and the end.
func (c chat) stream(w http.ResponseWriter, h *heard, r *reply, reason string) {
	e := startEvents(w, h)
	chunk := func(delta map[string]any, reason any) {
		e.send("", map[string]any{
			"id": r.id("chatcmpl-"), "object": "chat.completion.chunk", "created": 1_790_000_000, "model": h.model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": reason}},
		})
	}
	chunk(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, piece := range pieces(r.Text) {
		chunk(map[string]any{"content": piece}, nil)
	}
	for i, call := range r.Calls {
		function := map[string]any{"name": call.Name, "arguments": ""}
		chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": call.ID, "type": "function", "function": function}}}, nil)
		for _, piece := range pieces(call.Arguments) {
			chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}}, nil)
		}
	}
	chunk(map[string]any{}, reason)
	e.raw("", "[DONE]")
}
