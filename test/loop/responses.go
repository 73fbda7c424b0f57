// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"fmt"
)

// Responses is an agent of OpenAI's Responses.
type Responses struct {
	Wire
	// Keeps is how the vendor keeps the conversation: "" not at all, so that every
	// request holds the whole of it; "previous" by the id of the response before;
	// "conversation" by an id of its own.
	Keeps string

	input    []json.RawMessage // what the next request sends
	previous string
	name     string
}

var _ Client = (*Responses)(nil)

func (c *Responses) add(item any) { c.input = append(c.input, encoded(item)) }

// Human adds a message of the user's.
func (c *Responses) Human(text string) {
	c.add(object{"role": "user", "content": list{object{"type": "input_text", "text": text}}})
}

// Results adds an output for each call.
func (c *Responses) Results(outcomes []Outcome, beside string) {
	for _, o := range outcomes {
		item := object{"type": "function_call_output", "call_id": o.Call.ID, "output": o.Text}
		if o.Call.Custom {
			item["type"] = "custom_tool_call_output"
		}
		if o.Own != nil {
			item["output"] = list{object{"type": "input_text", "text": o.Text}, object{"type": "input_image", "image_url": dataURL(o.Own), "detail": "auto"}}
		}
		c.add(item)
	}
	if beside != "" {
		c.Human(beside)
	}
}

// Send asks the model.
func (c *Responses) Send(ctx context.Context) (Said, error) {
	var tools list
	for _, name := range toolNames {
		tools = append(tools, object{"type": "function", "name": name, "parameters": parameters(), "strict": false})
	}
	body := object{"model": c.Model, "input": c.input, "instructions": "You are an agent.", "tools": tools}
	if c.Stream {
		body["stream"] = true
	}
	switch {
	case c.Keeps == "conversation":
		if c.name == "" {
			c.name = "conv_" + fresh()
		}
		body["conversation"] = c.name
	case c.Keeps == "previous" && c.previous != "":
		body["previous_response_id"] = c.previous
	case c.Keeps == "":
		body["store"], body["include"] = false, list{"reasoning.encrypted_content"}
	}
	documents, err := c.post(ctx, "/responses", map[string]string{"Authorization": "Bearer " + c.Key}, body)
	if err != nil {
		return Said{}, err
	}
	return c.heard(documents)
}

// heard reads a reply; a streamed one holds it as a whole in its last event.
func (c *Responses) heard(documents []json.RawMessage) (Said, error) {
	var reply struct {
		ID     string            `json:"id"`
		Output []json.RawMessage `json:"output"`
	}
	whole := documents[len(documents)-1:]
	if c.Stream {
		whole = nil
		for _, document := range documents {
			var event struct {
				Type     string          `json:"type"`
				Response json.RawMessage `json:"response"`
			}
			if err := json.Unmarshal(document, &event); err != nil {
				return Said{}, fmt.Errorf("reading an event: %w", err)
			}
			if event.Type == "response.completed" {
				whole = []json.RawMessage{event.Response}
			}
		}
	}
	if len(whole) == 0 {
		return Said{}, errCut
	}
	if err := json.Unmarshal(whole[0], &reply); err != nil {
		return Said{}, fmt.Errorf("reading a reply: %w", err)
	}
	var said Said
	for _, raw := range reply.Output {
		var item struct {
			Type, Name, Arguments, Input string
			CallID                       string `json:"call_id"`
			Content                      []struct{ Text string }
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return Said{}, fmt.Errorf("reading an item: %w", err)
		}
		switch item.Type {
		case "message":
			for _, p := range item.Content {
				said.Text += p.Text
			}
		case "function_call", "custom_tool_call":
			said.Calls = append(said.Calls, Call{ID: item.CallID, Name: item.Name, Arguments: item.Arguments + item.Input, Custom: item.Type == "custom_tool_call"})
		}
	}
	c.previous = reply.ID
	if c.Keeps != "" {
		c.input = nil
		return said, nil
	}
	c.input = append(c.input, reply.Output...)
	return said, nil
}
