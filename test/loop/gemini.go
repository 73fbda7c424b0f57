// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// Gemini is an agent of Gemini's generateContent.
type Gemini struct {
	Wire
	contents []json.RawMessage
}

var _ Client = (*Gemini)(nil)

func (c *Gemini) add(role string, parts list) {
	c.contents = append(c.contents, encoded(object{"role": role, "parts": parts}))
}

// Human adds a content of the user's.
func (c *Gemini) Human(text string) { c.add("user", list{object{"text": text}}) }

// Results adds one content with all answers. A tool's own image is within its
// answer from Gemini 3 on; before that it comes in a content of its own.
func (c *Gemini) Results(outcomes []Outcome, beside string) {
	older := strings.Contains(c.Model, "gemini-2") || strings.Contains(c.Model, "gemini-1")
	var parts, after list
	for _, o := range outcomes {
		member := "output"
		if o.Failed {
			member = "error"
		}
		answer := object{"name": o.Call.Name, "response": object{member: o.Text}}
		if o.Call.ID != "" {
			answer["id"] = o.Call.ID
		}
		if o.Own != nil {
			image := object{"inlineData": object{"mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(o.Own)}}
			if older {
				after = append(after, image)
			} else {
				answer["parts"] = list{image}
			}
		}
		parts = append(parts, object{"functionResponse": answer})
	}
	c.add("user", parts)
	if after != nil {
		c.add("user", after)
	}
	if beside != "" {
		c.Human(beside)
	}
}

// part is a part of the model's; sent back, it is as it came.
type part struct {
	Text         string        `json:"text,omitempty"`
	Signature    string        `json:"thoughtSignature,omitempty"`
	FunctionCall *functionCall `json:"functionCall,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// Send asks the model.
func (c *Gemini) Send(ctx context.Context) (Said, error) {
	var tools list
	for _, name := range toolNames {
		tools = append(tools, object{"name": name, "parameters": parameters()})
	}
	path := "/v1beta/models/" + c.Model + ":generateContent"
	if c.Stream {
		path = "/v1beta/models/" + c.Model + ":streamGenerateContent?alt=sse"
	}
	documents, err := c.post(ctx, path, map[string]string{"X-Goog-Api-Key": c.Key}, object{
		"systemInstruction": object{"parts": list{object{"text": "You are an agent."}}},
		"contents":          c.contents, "tools": list{object{"functionDeclarations": tools}},
	})
	if err != nil {
		return Said{}, err
	}
	var said Said
	var parts list
	ended := false
	for _, document := range documents {
		var reply struct {
			Candidates []struct {
				Content struct{ Parts []part }
				Reason  string `json:"finishReason"`
			} `json:"candidates"`
		}
		if err := json.Unmarshal(document, &reply); err != nil {
			return Said{}, fmt.Errorf("reading a reply: %w", err)
		}
		for _, candidate := range reply.Candidates {
			ended = ended || candidate.Reason != ""
			for _, p := range candidate.Content.Parts {
				parts = append(parts, p)
				said.Text += p.Text
				if p.FunctionCall != nil {
					said.Calls = append(said.Calls, Call{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: string(p.FunctionCall.Args)})
				}
			}
		}
	}
	if !ended {
		return Said{}, errCut
	}
	c.add("model", parts)
	return said, nil
}
