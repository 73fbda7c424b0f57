// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	openairesponses "github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/visionoperator/vision-operator/test/loop"
)

// TestModelsAndRefusalsOfTheRuntime reads with the vendors' SDKs what the runtime
// itself answers: which models there are, and that there is none of a name.
func TestModelsAndRefusalsOfTheRuntime(t *testing.T) {
	s, url := served(t, vendorKey)
	p := started(t, document(url), t.TempDir())
	at := bases{openAI: p.url + "/openai/v1", anthropic: p.url + "/anthropic", gemini: p.url + "/gemini"}
	ofOpenAI, ofClaude, ofGoogle := agentOfOpenAI(at.openAI), agentOfClaude(at.anthropic), agentOfGoogle(t, at.gemini)

	t.Run("models", func(t *testing.T) {
		chats, err := ofOpenAI.Models.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(chats.Data, func(m openai.Model) bool { return m.ID == "gpt-5.1" }) {
			t.Errorf("OpenAI's SDK reads %+v", chats.Data)
		}
		claudes, err := ofClaude.Models.List(t.Context(), sdk.ModelListParams{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(claudes.Data, func(m sdk.ModelInfo) bool { return m.ID == "claude-opus-5" }) {
			t.Errorf("Anthropic's SDK reads %+v", claudes.Data)
		}
		geminis, err := ofGoogle.Models.List(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(geminis.Items, func(m *genai.Model) bool { return m.Name == "models/gemini-3-pro" }) {
			t.Errorf("Google's SDK reads %+v", geminis.Items)
		}
	})

	t.Run("a model that nobody serves", func(t *testing.T) {
		for name, agent := range map[string]loop.Client{
			"chat":      &chatAgent{client: ofOpenAI, model: "nobodys-1"},
			"responses": &responsesAgent{client: ofOpenAI, model: "nobodys-1"},
			"anthropic": &claudeAgent{client: ofClaude, model: "nobodys-1", stream: true},
			"gemini":    &geminiAgent{client: ofGoogle, model: "nobodys-1", stream: true},
		} {
			agent.Human("hello")
			_, err := agent.Send(t.Context())
			var status int
			if e, ok := errors.AsType[*openai.Error](err); ok {
				status = e.StatusCode
			} else if e, ok := errors.AsType[*sdk.Error](err); ok {
				status = e.StatusCode
			} else if e, ok := errors.AsType[genai.APIError](err); ok {
				status = e.Code
			}
			if status != http.StatusNotFound {
				t.Errorf("%s: the SDK reads status %d of %v", name, status, err)
			}
		}
	})

	t.Run("counts of tokens", func(t *testing.T) {
		counted, err := ofClaude.Messages.CountTokens(t.Context(), sdk.MessageCountTokensParams{
			Model: "claude-opus-5", Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("hello"))},
		})
		if err != nil || counted.InputTokens != 100 {
			t.Errorf("Anthropic's SDK counts %+v, %v", counted, err)
		}
		total, err := ofGoogle.Models.CountTokens(t.Context(), "gemini-3-pro", genai.Text("hello"), nil)
		if err != nil || total.TotalTokens != 100 {
			t.Errorf("Google's SDK counts %+v, %v", total, err)
		}
		input, err := ofOpenAI.Responses.InputTokens.Count(t.Context(), openairesponses.InputTokenCountParams{
			Model: openai.String("gpt-5.1"), Input: openairesponses.InputTokenCountParamsInputUnion{OfString: openai.String("hello")},
		})
		if err != nil || input.InputTokens != 100 {
			t.Errorf("OpenAI's SDK counts %+v, %v", input, err)
		}
	})
	noOther(t, s, vendorKey)
}
