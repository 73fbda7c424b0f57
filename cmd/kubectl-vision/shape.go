// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// shape is as much of a model request as tells its dialect, in whatever type: what
// is wrong with a request is for the review to say.
type shape struct {
	Model    any             `json:"model"`
	Contents json.RawMessage `json:"contents"`
	Input    json.RawMessage `json:"input"`
	Previous json.RawMessage `json:"previous_response_id"`
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools"`

	// Of Anthropic alone.
	System           json.RawMessage `json:"system"`
	AnthropicVersion json.RawMessage `json:"anthropic_version"`
	StopSequences    json.RawMessage `json:"stop_sequences"`
	// Of OpenAI alone.
	MaxCompletionTokens json.RawMessage `json:"max_completion_tokens"`
	ResponseFormat      json.RawMessage `json:"response_format"`
	Stop                json.RawMessage `json:"stop"`
}

type toolShape struct {
	InputSchema json.RawMessage `json:"input_schema"` // Anthropic
	Function    json.RawMessage `json:"function"`     // OpenAI
}

// dialectOf tells a request's dialect by its shape. What both chat dialects write
// alike counts as OpenAI's, which most gateways speak.
func dialectOf(path string, s *shape) (message.Dialect, error) {
	var found []message.Dialect
	var by []string
	sign := func(d message.Dialect, member string) {
		found, by = append(found, d), append(by, fmt.Sprintf("%s (%s)", member, d))
	}
	if s.Contents != nil {
		sign(message.GeminiContents, "contents")
	}
	if s.Input != nil {
		sign(message.OpenAIResponses, "input")
	} else if s.Previous != nil && s.Messages == nil {
		sign(message.OpenAIResponses, "previous_response_id")
	}
	if s.Messages != nil {
		sign(s.chat(), "messages")
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("reading %s: it has none of the members contents, input and messages, so that it is no model request; if it is one, name its dialect with --dialect", named(path))
	}
	return "", fmt.Errorf("reading %s: it has %s; name its dialect with --dialect", named(path), strings.Join(by, " and "))
}

// chat tells apart the two dialects whose conversation is called messages: by the
// first message that only one of them has, then by what stands beside.
func (s *shape) chat() message.Dialect {
	var messages []json.RawMessage
	var tools []toolShape
	_ = errors.Join(json.Unmarshal(s.Messages, &messages), json.Unmarshal(s.Tools, &tools)) // what has another type has no sign
	for _, m := range messages {
		if d := dialectOfMessage(m); d != "" {
			return d
		}
	}
	for _, t := range tools {
		switch {
		case t.InputSchema != nil:
			return message.AnthropicMessages
		case t.Function != nil:
			return message.OpenAIChat
		}
	}
	switch {
	case s.MaxCompletionTokens != nil || s.ResponseFormat != nil || s.Stop != nil:
		return message.OpenAIChat
	case s.System != nil || s.AnthropicVersion != nil || s.StopSequences != nil:
		return message.AnthropicMessages
	}
	return message.OpenAIChat
}

// signs are words that one of the two dialects alone has, as a message's role or
// the type of a part of it.
var signs = map[string]message.Dialect{
	"developer": message.OpenAIChat, "tool": message.OpenAIChat, "function": message.OpenAIChat,
	"image_url": message.OpenAIChat, "input_audio": message.OpenAIChat, "file": message.OpenAIChat,
	"image": message.AnthropicMessages, "document": message.AnthropicMessages, "thinking": message.AnthropicMessages,
	"tool_use": message.AnthropicMessages, "tool_result": message.AnthropicMessages,
}

// dialectOfMessage is empty when a message could be of either.
func dialectOfMessage(data json.RawMessage) message.Dialect {
	var m struct {
		Role      any             `json:"role"`
		Content   json.RawMessage `json:"content"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(data, &m) != nil {
		return ""
	}
	if role, ok := m.Role.(string); ok && signs[role] != "" {
		return signs[role]
	}
	if m.ToolCalls != nil {
		return message.OpenAIChat
	}
	var parts []struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		if kind, ok := p.Type.(string); ok && signs[kind] != "" {
			return signs[kind]
		}
	}
	return ""
}

// isJSON reports whether content begins as JSON's objects and arrays do, which no
// image does.
func isJSON(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(head) > 0 && (head[0] == '{' || head[0] == '[')
}
