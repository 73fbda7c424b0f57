// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

type reply struct {
	Type       string                  `json:"type"`
	Model      string                  `json:"model"`
	StopReason string                  `json:"stop_reason"`
	Content    exchange.Array[content] `json:"content"`
	Usage      struct {
		InputTokens              exchange.Count `json:"input_tokens"`
		CacheCreationInputTokens exchange.Count `json:"cache_creation_input_tokens"`
		CacheReadInputTokens     exchange.Count `json:"cache_read_input_tokens"`
		OutputTokens             exchange.Count `json:"output_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// content is a block of a reply. Only those of type text and tool_use are read;
// thinking, and types that are not known yet, have members of their own.
type content struct {
	text  string
	tool  string          // the name of the tool that is called
	input json.RawMessage // what it is called with
}

// UnmarshalJSON reads a block by its type.
func (c *content) UnmarshalJSON(data []byte) error {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return err
	}
	switch kind.Type {
	case "text":
		var block struct {
			Text string `json:"text"`
		}
		err := json.Unmarshal(data, &block)
		c.text = block.Text
		return err
	case "tool_use":
		var block struct {
			Name  string          `json:"name"`
			Input json.RawMessage `json:"input"`
		}
		err := json.Unmarshal(data, &block)
		c.tool, c.input = block.Name, block.Input
		return err
	}
	return nil
}

// parseReply reads a message. Where a tool was forced, its input is the reply;
// what the model says beside calling it is not.
func parseReply(body []byte, to provider.Request) (provider.Reply, error) {
	var r reply
	if err := exchange.Read(body, &r, "a message"); err != nil {
		return provider.Reply{}, err
	}
	if r.Type == "error" && len(r.Error) == 0 {
		r.Error = json.RawMessage(`{}`)
	}
	if bad := exchange.ErrorIn(r.Error); bad != nil {
		return provider.Reply{}, bad
	}
	usage := r.usage()
	text := r.text(toolOf(to))
	switch {
	case r.StopReason == "refusal":
		return provider.Reply{}, exchange.Counted(exchange.Refused("the model refused to look at the image for this prompt"), usage)
	case r.StopReason == "max_tokens" || r.StopReason == "model_context_window_exceeded":
		return provider.Reply{}, exchange.Counted(exchange.Truncated(), usage)
	case text == "":
		return provider.Reply{}, exchange.Counted(exchange.Empty(), usage)
	}
	return provider.Reply{Text: text, Model: r.Model, Usage: usage}, nil
}

// text is the reply's text, or the input of the tool when the model called it.
func (r *reply) text(tool string) string {
	var texts []string
	for _, c := range r.Content {
		if tool != "" && c.tool == tool && len(c.input) > 0 && string(c.input) != "null" {
			return string(c.input)
		}
		texts = append(texts, c.text)
	}
	return exchange.Join(texts)
}

// usage counts what was read from and written to the vendor's cache as input,
// which input_tokens leaves out.
func (r *reply) usage() provider.Usage {
	u := r.Usage
	return provider.Usage{
		InputTokens:  int64(u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens),
		OutputTokens: int64(u.OutputTokens),
	}
}
