// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/visionoperator/vision-operator/test/loop"
)

// geminiAgent is an agent made with Google's SDK.
type geminiAgent struct {
	client   *genai.Client
	model    string
	stream   bool
	contents []*genai.Content
}

// agentOfGoogle is the SDK's client at an address, with nothing else set.
func agentOfGoogle(t *testing.T, base string) *genai.Client {
	t.Helper()
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: agentKey, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: base},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (a *geminiAgent) Human(text string) {
	a.contents = append(a.contents, genai.NewContentFromText(text, genai.RoleUser))
}

func (a *geminiAgent) Results(outcomes []loop.Outcome, beside string) {
	var parts, images []*genai.Part
	for _, o := range outcomes {
		answer := &genai.FunctionResponse{ID: o.Call.ID, Name: o.Call.Name, Response: map[string]any{"output": o.Text}}
		if o.Own != nil && strings.HasPrefix(a.model, "gemini-2") {
			images = append(images, genai.NewPartFromBytes(o.Own, "image/png"))
		} else if o.Own != nil {
			answer.Parts = []*genai.FunctionResponsePart{genai.NewFunctionResponsePartFromBytes(o.Own, "image/png")}
		}
		parts = append(parts, &genai.Part{FunctionResponse: answer})
	}
	a.contents = append(a.contents, genai.NewContentFromParts(parts, genai.RoleUser))
	if images != nil {
		a.contents = append(a.contents, genai.NewContentFromParts(images, genai.RoleUser))
	}
	if beside != "" {
		a.Human(beside)
	}
}

func (a *geminiAgent) Send(ctx context.Context) (loop.Said, error) {
	tool := &genai.Tool{}
	for _, name := range offered {
		tool.FunctionDeclarations = append(tool.FunctionDeclarations, &genai.FunctionDeclaration{Name: name, ParametersJsonSchema: parameters()})
	}
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{tool}, SystemInstruction: genai.NewContentFromText("You are an agent.", genai.RoleUser)}
	parts, err := a.ask(ctx, config)
	if err != nil {
		return loop.Said{}, err
	}
	a.contents = append(a.contents, genai.NewContentFromParts(parts, genai.RoleModel))
	var said loop.Said
	for _, part := range parts {
		said.Text += part.Text
		if call := part.FunctionCall; call != nil {
			arguments, err := json.Marshal(call.Args)
			if err != nil {
				return loop.Said{}, err
			}
			said.Calls = append(said.Calls, loop.Call{ID: call.ID, Name: call.Name, Arguments: string(arguments)})
		}
	}
	return said, nil
}

// ask is what the model says, in the parts in which it came.
func (a *geminiAgent) ask(ctx context.Context, config *genai.GenerateContentConfig) ([]*genai.Part, error) {
	var parts []*genai.Part
	ended := false
	add := func(reply *genai.GenerateContentResponse) {
		for _, candidate := range reply.Candidates {
			parts = append(parts, candidate.Content.Parts...)
			ended = ended || candidate.FinishReason != ""
		}
	}
	if a.stream {
		for reply, err := range a.client.Models.GenerateContentStream(ctx, a.model, a.contents, config) {
			if err != nil {
				return nil, err
			}
			add(reply)
		}
	} else {
		reply, err := a.client.Models.GenerateContent(ctx, a.model, a.contents, config)
		if err != nil {
			return nil, err
		}
		add(reply)
	}
	if !ended {
		return nil, errUnfinished
	}
	return parts, nil
}
