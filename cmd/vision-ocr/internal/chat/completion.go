// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"encoding/json"
	"net/http"
)

// The shapes of an answer, as OpenAI's clients read them.
type (
	completion struct {
		ID                string   `json:"id"`
		Object            string   `json:"object"` // "chat.completion", or "chat.completion.chunk"
		Created           int64    `json:"created"`
		Model             string   `json:"model"`
		SystemFingerprint string   `json:"system_fingerprint"`
		Choices           []choice `json:"choices"`
		Usage             *Usage   `json:"usage,omitempty"`
	}
	choice struct {
		Index        int      `json:"index"`
		Message      *message `json:"message,omitempty"`
		Delta        *delta   `json:"delta,omitempty"`
		LogProbs     *string  `json:"logprobs"` // always null
		FinishReason *string  `json:"finish_reason"`
	}
	message struct {
		Role    string  `json:"role"`
		Content string  `json:"content"`
		Refusal *string `json:"refusal"` // always null
	}
	delta struct {
		Role    string `json:"role,omitempty"`
		Content string `json:"content,omitempty"`
	}
)

// writeCompletion sends the answer whole.
func writeCompletion(w http.ResponseWriter, head completion, answer *Answer) {
	head.Object = "chat.completion"
	head.Choices = []choice{{Message: &message{Role: "assistant", Content: answer.Content}, FinishReason: &answer.FinishReason}}
	head.Usage = &answer.Usage
	writeJSON(w, http.StatusOK, head)
}

// writeStream sends the answer as server-sent events: one chunk with the
// content (an OCR engine has it all at once), one with the finish reason, one
// with the usage when asked for, and the end mark.
func writeStream(w http.ResponseWriter, head completion, answer *Answer, includeUsage bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	head.Object = "chat.completion.chunk"
	head.Choices = []choice{{Delta: &delta{Role: "assistant", Content: answer.Content}}}
	writeEvent(w, head)
	head.Choices = []choice{{Delta: &delta{}, FinishReason: &answer.FinishReason}}
	writeEvent(w, head)
	if includeUsage {
		head.Choices, head.Usage = []choice{}, &answer.Usage
		writeEvent(w, head)
	}
	_, _ = w.Write([]byte("data: [DONE]\n\n"))
}

func writeEvent(w http.ResponseWriter, event completion) {
	data, err := json.Marshal(event)
	if err != nil { // not reachable with this package's types
		return
	}
	_, _ = w.Write(append(append([]byte("data: "), data...), "\n\n"...))
}

// modelList is the answer of GET /v1/models.
type modelList struct {
	Object string       `json:"object"` // "list"
	Data   []modelEntry `json:"data"`
}

type modelEntry struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // "model"
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}
