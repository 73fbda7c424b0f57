// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"encoding/json"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

type completion struct {
	Model   string `json:"model"`
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content content `json:"content"`
			Refusal string  `json:"refusal"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// content is a reply's content: null, a string, or a list of parts.
type content []string

// UnmarshalJSON reads each form.
func (c *content) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			*c = append(*c, p.Text)
		}
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*c = content{text}
	return nil
}

// parseReply reads a completion. It is strict about what it needs and blind to the rest.
func parseReply(body []byte) (provider.Reply, error) {
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
	choice := c.Choices[0]
	text := exchange.Join(choice.Message.Content)
	switch {
	case choice.FinishReason == "content_filter":
		return provider.Reply{}, exchange.Refused("the provider's content filter withheld the reply")
	case choice.Message.Refusal != "":
		return provider.Reply{}, exchange.Refused("the model refused to look at the image for this prompt")
	case choice.FinishReason == "length":
		return provider.Reply{}, exchange.Truncated()
	case text == "":
		return provider.Reply{}, exchange.Empty()
	}
	return provider.Reply{Text: text, Model: c.Model, Usage: provider.Usage{
		InputTokens: c.Usage.PromptTokens, OutputTokens: c.Usage.CompletionTokens,
	}}, nil
}
