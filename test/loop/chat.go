// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"fmt"
)

// Chat is an agent of OpenAI's chat completions.
type Chat struct {
	Wire
	// ToolImages puts a tool's own image into its message; else it comes in a user
	// message after the tools' messages.
	ToolImages bool

	messages []json.RawMessage
}

var _ Client = (*Chat)(nil)

func (c *Chat) add(message any) { c.messages = append(c.messages, encoded(message)) }

// Human adds a message of the user's.
func (c *Chat) Human(text string) {
	if len(c.messages) == 0 {
		c.add(object{"role": "system", "content": "You are an agent."})
	}
	c.add(object{"role": "user", "content": text})
}

// Results adds a tool message for each call, and then what is not text.
func (c *Chat) Results(outcomes []Outcome, beside string) {
	var after list
	for _, o := range outcomes {
		message := object{"role": "tool", "tool_call_id": o.Call.ID, "content": o.Text}
		if o.Own != nil {
			image := object{"type": "image_url", "image_url": object{"url": dataURL(o.Own)}}
			if c.ToolImages {
				message["content"] = list{object{"type": "text", "text": o.Text}, image}
			} else {
				after = append(after, image)
			}
		}
		c.add(message)
	}
	if after != nil {
		c.add(object{"role": "user", "content": append(list{object{"type": "text", "text": "The image of the tool:"}}, after...)})
	}
	if beside != "" {
		c.add(object{"role": "user", "content": beside})
	}
}

// chatCall is a call as it comes, whole or in pieces.
type chatCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatMessage struct {
	Content string     `json:"content"`
	Calls   []chatCall `json:"tool_calls"`
}

// Send asks the model.
func (c *Chat) Send(ctx context.Context) (Said, error) {
	var tools list
	for _, name := range toolNames {
		tools = append(tools, object{"type": "function", "function": object{"name": name, "parameters": parameters()}})
	}
	body := object{"model": c.Model, "messages": c.messages, "tools": tools}
	if c.Stream {
		body["stream"] = true
	}
	documents, err := c.post(ctx, "/chat/completions", map[string]string{"Authorization": "Bearer " + c.Key}, body)
	if err != nil {
		return Said{}, err
	}
	message, err := chatSaid(documents)
	if err != nil {
		return Said{}, err
	}
	said := Said{Text: message.Content}
	reply := object{"role": "assistant", "content": nil}
	if message.Content != "" {
		reply["content"] = message.Content
	}
	var calls list
	for _, call := range message.Calls {
		said.Calls = append(said.Calls, Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		calls = append(calls, object{"id": call.ID, "type": "function", "function": object{"name": call.Function.Name, "arguments": call.Function.Arguments}})
	}
	if calls != nil {
		reply["tool_calls"] = calls
	}
	c.add(reply)
	return said, nil
}

// chatSaid puts the pieces of a reply together.
func chatSaid(documents []json.RawMessage) (chatMessage, error) {
	var whole chatMessage
	ended := false
	for _, document := range documents {
		var chunk struct {
			Choices []struct {
				Message, Delta chatMessage
				Reason         string `json:"finish_reason"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(document, &chunk); err != nil {
			return whole, fmt.Errorf("reading a reply: %w", err)
		}
		for _, choice := range chunk.Choices {
			ended = ended || choice.Reason != ""
			if len(choice.Message.Calls) > 0 || choice.Message.Content != "" {
				return choice.Message, nil
			}
			whole.Content += choice.Delta.Content
			for _, piece := range choice.Delta.Calls {
				for len(whole.Calls) <= piece.Index {
					whole.Calls = append(whole.Calls, chatCall{Index: len(whole.Calls)})
				}
				call := &whole.Calls[piece.Index]
				call.ID += piece.ID
				call.Function.Name += piece.Function.Name
				call.Function.Arguments += piece.Function.Arguments
			}
		}
	}
	if !ended {
		return whole, errCut
	}
	return whole, nil
}
