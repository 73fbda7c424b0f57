// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/serve/proxy"
)

// message is one of a chat, as OpenAI's clients write it.
type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// converse is an agent's turn with a tool of its own: it has read a picture of a
// sentence made up just now, its result says no more than that, and the model is
// asked what is written there. The proxy puts the picture before the model.
func (d *demo) converse(ctx context.Context) error {
	sentence, err := makeUpSentence()
	if err != nil {
		return err
	}
	picture, err := drawSentence(sentence)
	if err != nil {
		return err
	}
	if err := d.place("note.png", picture); err != nil {
		return err
	}
	d.say("drew: %q", sentence)
	const call = "call_7f3kq92mzx"
	chat := map[string]any{"model": "tesseract", "messages": []message{
		{Role: "user", Content: "What does note.png say?"},
		{Role: "assistant", ToolCalls: []toolCall{{ID: call, Type: "function", Function: toolFunction{"view_image", `{"path":"note.png"}`}}}},
		{Role: "tool", ToolCallID: call, Content: "Image read."},
	}}
	answer, header, err := d.chat(ctx, chat)
	if err != nil {
		return err
	}
	d.say("%s: %s", proxy.HeaderInjection, header.Get(proxy.HeaderInjection))
	d.say("the model answered: %q", answer)
	if _, missing := compareWords(sentence, answer); len(missing) > 0 {
		return fmt.Errorf("the model's answer lacks %q", missing)
	}
	return nil
}

// chat sends a chat through the proxy, with a key that is none, and returns what
// the model said.
func (d *demo) chat(ctx context.Context, chat any) (answer string, header http.Header, err error) {
	body, err := json.Marshal(chat)
	if err != nil {
		return "", nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, runtimeURL+"/openai/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer none")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", nil, err
	}
	var completion struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &completion); err != nil || len(completion.Choices) != 1 {
		return "", nil, fmt.Errorf("asking the model through the proxy: HTTP %d: %s", resp.StatusCode, clip(string(data), 500))
	}
	return completion.Choices[0].Message.Content, resp.Header, nil
}
