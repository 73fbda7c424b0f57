// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"net/http"
)

func (gemini) count(w http.ResponseWriter, h *heard) {
	writeJSON(w, http.StatusOK, map[string]any{"totalTokens": 100 * len(h.messages)})
}

func (g gemini) say(w http.ResponseWriter, h *heard, r *reply) {
	texts := pieces(r.Text)
	if !h.stream && len(texts) > 0 {
		texts = []string{r.Text}
	}
	parts := g.parts(r, texts)
	if !h.stream {
		writeJSON(w, http.StatusOK, g.candidate(h, r, parts, "STOP"))
		return
	}
	if h.framed {
		e := startEvents(w, h)
		for i, part := range parts {
			e.send("", g.candidate(h, r, []any{part}, last(i, parts)))
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	for i, part := range parts {
		before := ","
		if i == 0 {
			before = "["
		}
		_, _ = w.Write([]byte(before))
		_, _ = w.Write(encoded(g.candidate(h, r, []any{part}, last(i, parts))))
		flush(w)
	}
	_, _ = w.Write([]byte("]"))
}

func last(i int, parts []any) string {
	if i == len(parts)-1 {
		return "STOP"
	}
	return ""
}

// parts are the texts and the calls. The first call carries the
// signature; without calls the last text does.
func (gemini) parts(r *reply, texts []string) []any {
	var parts []any
	for _, piece := range texts {
		parts = append(parts, map[string]any{"text": piece})
	}
	for i, call := range r.Calls {
		function := map[string]any{"name": call.Name, "args": json.RawMessage(call.Arguments)}
		if call.ID != "" {
			function["id"] = call.ID
		}
		part := map[string]any{"functionCall": function}
		if i == 0 && r.signature != "" {
			part["thoughtSignature"] = r.signature
		}
		parts = append(parts, part)
	}
	if len(r.Calls) == 0 && r.signature != "" && len(parts) > 0 {
		parts[len(parts)-1].(map[string]any)["thoughtSignature"] = r.signature
	}
	return parts
}

func (gemini) candidate(h *heard, r *reply, parts []any, reason string) map[string]any {
	candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
	if reason != "" {
		candidate["finishReason"] = reason
	}
	return map[string]any{
		"candidates": []any{candidate}, "modelVersion": h.model, "responseId": r.id("r"),
		"usageMetadata": map[string]any{"promptTokenCount": 100 * len(h.messages), "candidatesTokenCount": 20, "totalTokenCount": 100*len(h.messages) + 20},
	}
}
