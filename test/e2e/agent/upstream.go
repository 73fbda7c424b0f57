// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// upstream answers chat completions with the digest of the key that came along, so
// that a test sees which key a runtime uses and no key is ever shown.
func upstream() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		observation, _ := json.Marshal(map[string]string{ // strings are always JSON
			"type": "visual_observation", "schema": "visual_observation.v1", "summary": "The key is " + keyDigest(r.Header.Get("Authorization")) + ".",
		})
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "chatcmpl-e2e", "object": "chat.completion", "created": 1, "model": "keyed",
			"choices": []any{map[string]any{
				"index": 0, "finish_reason": "stop",
				"message": map[string]any{"role": "assistant", "content": string(observation)},
			}},
			"usage": map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
		})
	})
	return mux
}

// keyDigest names a bearer token without telling it.
func keyDigest(authorization string) string {
	sum := sha256.Sum256([]byte(strings.TrimPrefix(authorization, "Bearer ")))
	return fmt.Sprintf("%x", sum[:6])
}
