// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// completion is what is read of a reply. What a model thought, which servers
// put into reasoning_content, reasoning or parts of other types, is not.
type completion struct {
	Model   string                 `json:"model"`
	Choices exchange.Array[choice] `json:"choices"`
	Usage   struct {
		PromptTokens     exchange.Count `json:"prompt_tokens"`
		CompletionTokens exchange.Count `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type choice struct {
	FinishReason string `json:"finish_reason"`
	Message      struct {
		Content content `json:"content"`
		Refusal string  `json:"refusal"`
	} `json:"message"`
	// Error is OpenRouter's: what went wrong after the reply had begun.
	Error json.RawMessage `json:"error"`
}

// content is a reply's content: null, a string, or a list of parts.
type content struct {
	texts   []string
	refused bool
}

// UnmarshalJSON reads each form.
func (c *content) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '[' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		c.texts = []string{text}
		return nil
	}
	var parts exchange.Array[struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}]
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		switch p.Type {
		case "text", "output_text", "":
			var text string
			if err := json.Unmarshal(p.Text, &text); len(p.Text) > 0 && err != nil {
				return err
			}
			c.texts = append(c.texts, text)
		case "refusal":
			c.refused = true
		}
	}
	return nil
}

// parseReply reads a completion. It is strict about what it needs and blind to the rest.
func parseReply(body []byte, _ provider.Request) (provider.Reply, error) {
	var c completion
	if err := exchange.Read(body, &c, "a chat completion"); err != nil {
		return provider.Reply{}, err
	}
	if bad := exchange.ErrorIn(c.Error); bad != nil {
		return provider.Reply{}, bad
	}
	if len(c.Choices) == 0 {
		return provider.Reply{}, exchange.Failed("Empty", true, "the provider's reply holds no choice")
	}
	first := c.Choices[0]
	if bad := exchange.ErrorIn(first.Error); bad != nil {
		return provider.Reply{}, bad
	}
	usage := provider.Usage{InputTokens: int64(c.Usage.PromptTokens), OutputTokens: int64(c.Usage.CompletionTokens)}
	text := exchange.Join(first.Message.Content.texts)
	// Gemini's OpenAI-compatible path writes the kind of filter after a colon.
	reason, _, _ := strings.Cut(first.FinishReason, ":")
	switch {
	case reason == "content_filter":
		return provider.Reply{}, exchange.Counted(exchange.Refused("the provider's content filter withheld the reply"), usage)
	case first.Message.Refusal != "" || first.Message.Content.refused:
		return provider.Reply{}, exchange.Counted(exchange.Refused("the model refused to look at the image for this prompt"), usage)
	case reason == "length":
		return provider.Reply{}, exchange.Counted(exchange.Truncated(), usage)
	case reason == "error":
		return provider.Reply{}, exchange.Failed("UpstreamStatus", true, "the provider failed while it wrote the reply")
	case text == "":
		return provider.Reply{}, exchange.Counted(exchange.Empty(), usage)
	}
	return provider.Reply{Text: text, Model: c.Model, Usage: usage}, nil
}
