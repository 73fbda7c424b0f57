// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Anthropic is an agent of Anthropic's messages, which thinks.
type Anthropic struct {
	Wire
	messages []json.RawMessage
}

var _ Client = (*Anthropic)(nil)

func (c *Anthropic) add(role string, content any) {
	c.messages = append(c.messages, encoded(object{"role": role, "content": content}))
}

// Human adds a message of the user's.
func (c *Anthropic) Human(text string) { c.add("user", text) }

// Results adds one message with all results.
func (c *Anthropic) Results(outcomes []Outcome, beside string) {
	var content list
	for _, o := range outcomes {
		result := object{"type": "tool_result", "tool_use_id": o.Call.ID, "content": o.Text}
		if o.Failed {
			result["is_error"] = true
		}
		if o.Own != nil {
			source := object{"type": "base64", "media_type": "image/png", "data": base64.StdEncoding.EncodeToString(o.Own)}
			result["content"] = list{object{"type": "text", "text": o.Text}, object{"type": "image", "source": source}}
		}
		content = append(content, result)
	}
	if beside != "" {
		content = append(content, object{"type": "text", "text": beside})
	}
	c.add("user", content)
}

// block is a block as it comes, whole or in pieces.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Partial   string          `json:"partial_json"`
}

// sent is the block as the agent sends it back.
func (b *block) sent() object {
	switch b.Type {
	case "thinking":
		return object{"type": b.Type, "thinking": b.Thinking, "signature": b.Signature}
	case "tool_use":
		return object{"type": b.Type, "id": b.ID, "name": b.Name, "input": b.Input}
	}
	return object{"type": b.Type, "text": b.Text}
}

// Send asks the model.
func (c *Anthropic) Send(ctx context.Context) (Said, error) {
	documents, err := c.post(ctx, "/v1/messages", c.header(), c.body(true))
	if err != nil {
		return Said{}, err
	}
	blocks, err := c.blocks(documents)
	if err != nil {
		return Said{}, err
	}
	var said Said
	var content list
	for _, b := range blocks {
		content = append(content, b.sent())
		switch b.Type {
		case "text":
			said.Text += b.Text
		case "tool_use":
			said.Calls = append(said.Calls, Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		}
	}
	c.add("assistant", content)
	return said, nil
}

// Count asks how many tokens the history has.
func (c *Anthropic) Count(ctx context.Context) (int64, error) {
	once := c.Wire
	once.Stream = false
	documents, err := once.post(ctx, "/v1/messages/count_tokens", c.header(), c.body(false))
	if err != nil {
		return 0, err
	}
	var counted struct {
		Tokens int64 `json:"input_tokens"`
	}
	if err := json.Unmarshal(documents[0], &counted); err != nil {
		return 0, fmt.Errorf("reading a count: %w", err)
	}
	return counted.Tokens, nil
}

func (c *Anthropic) header() map[string]string {
	return map[string]string{"X-Api-Key": c.Key, "Anthropic-Version": "2023-06-01"}
}

func (c *Anthropic) body(speaks bool) object {
	var tools list
	for _, name := range toolNames {
		tools = append(tools, object{"name": name, "input_schema": parameters()})
	}
	body := object{
		"model": c.Model, "messages": c.messages, "tools": tools, "thinking": object{"type": "adaptive"},
		"system": list{object{"type": "text", "text": "You are an agent.", "cache_control": object{"type": "ephemeral"}}},
	}
	if speaks {
		body["max_tokens"] = 4096
	}
	if speaks && c.Stream {
		body["stream"] = true
	}
	return body
}

// blocks puts the blocks of a reply together.
func (c *Anthropic) blocks(documents []json.RawMessage) ([]block, error) {
	var blocks []block
	ended := !c.Stream
	for _, document := range documents {
		var event struct {
			Type    string  `json:"type"`
			Index   int     `json:"index"`
			Content []block `json:"content"`
			Block   block   `json:"content_block"`
			Delta   block   `json:"delta"`
		}
		if err := json.Unmarshal(document, &event); err != nil {
			return nil, fmt.Errorf("reading a reply: %w", err)
		}
		switch event.Type {
		case "message":
			return event.Content, nil
		case "content_block_start":
			blocks = append(blocks, event.Block)
		case "content_block_delta":
			if event.Index != len(blocks)-1 {
				return nil, fmt.Errorf("reading a reply: a piece of block %d of %d", event.Index, len(blocks))
			}
			b := &blocks[event.Index]
			b.Text += event.Delta.Text
			b.Thinking += event.Delta.Thinking
			b.Signature += event.Delta.Signature
			b.Partial += event.Delta.Partial
		case "content_block_stop":
			if b := &blocks[len(blocks)-1]; b.Type == "tool_use" {
				b.Input = json.RawMessage(b.Partial)
			}
		case "message_stop":
			ended = true
		}
	}
	if !ended {
		return nil, errCut
	}
	return blocks, nil
}
