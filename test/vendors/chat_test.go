// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/pagination"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
)

// openAI is the SDK's client of a server.
func openAI(s *server) openai.Client {
	return openai.NewClient(option.WithBaseURL(s.url+"/v1/"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func TestChatRequests(t *testing.T) {
	answer := completion(t, "stop", openai.ChatCompletionMessage{Content: "ok"})
	for name, req := range map[string]provider.Request{"plain": plain("gpt-5.1"), "structured": structured("org/see-2")} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			if got := observed(t, chat.New(s.endpoint(t, "/v1")), req); got.Reason != "" {
				t.Fatal(got.Reason)
			}
			ours := s.last(t, 1)
			params := strictly[openai.ChatCompletionNewParams](t, ours.body)
			meansChat(t, params, req)

			client := openAI(s)
			if _, err := client.Chat.Completions.New(context.Background(), params); err != nil {
				t.Fatal(err)
			}
			sameCall(t, ours, s.last(t, 2), "Content-Type", "Accept")
		})
	}
}

// meansChat compares the parameters with what was to be asked.
func meansChat(t *testing.T, params openai.ChatCompletionNewParams, req provider.Request) {
	t.Helper()
	if params.Model != req.Model || params.MaxTokens.Value != req.MaxOutputTokens {
		t.Errorf("model %q, %d tokens", params.Model, params.MaxTokens.Value)
	}
	user := params.Messages[len(params.Messages)-1].OfUser
	if user == nil || len(user.Content.OfArrayOfContentParts) != 2 {
		t.Fatalf("the last message is not the user's with two parts: %+v", params.Messages)
	}
	parts := user.Content.OfArrayOfContentParts
	if parts[0].OfText == nil || parts[0].OfText.Text != req.Prompt || parts[1].OfImageURL == nil {
		t.Fatalf("not the prompt and then the image: %+v", parts)
	}
	data, ok := strings.CutPrefix(parts[1].OfImageURL.ImageURL.URL, "data:image/png;base64,")
	if !ok {
		t.Errorf("the image is no data URL of a PNG")
	}
	samePicture(t, data)
	format := params.ResponseFormat.OfJSONSchema
	if req.Schema == nil {
		if format != nil || len(params.Messages) != 1 {
			t.Errorf("a plain look has a format or %d messages", len(params.Messages))
		}
		return
	}
	if system := params.Messages[0].OfSystem; system == nil || system.Content.OfString.Value != req.Instructions {
		t.Error("the first message is not the system's with the instructions")
	}
	if format == nil || format.JSONSchema.Name != req.Schema.Name || !format.JSONSchema.Strict.Value {
		t.Fatalf("the format is %+v", params.ResponseFormat)
	}
	sameJSON(t, req.Schema.JSON, encoded(t, format.JSONSchema.Schema))
}

func TestChatGoldenRequests(t *testing.T) {
	goldens(t, "openai/chat", func(t *testing.T, body []byte) {
		_ = strictly[openai.ChatCompletionNewParams](t, body)
	})
}

// completion is a reply as the SDK writes it.
func completion(t *testing.T, reason string, message openai.ChatCompletionMessage) []byte {
	t.Helper()
	return encoded(t, openai.ChatCompletion{
		ID: "chatcmpl-1", Created: 1, Model: "see-2-2026",
		Choices: []openai.ChatCompletionChoice{{FinishReason: reason, Message: message}},
		Usage: openai.CompletionUsage{
			PromptTokens: counts.InputTokens, CompletionTokens: counts.OutputTokens, TotalTokens: 1057,
			CompletionTokensDetails: openai.CompletionUsageCompletionTokensDetails{ReasoningTokens: 20},
		},
	})
}

func TestChatReplies(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		message openai.ChatCompletionMessage
		want    string // the fault's reason; empty for a text
	}{
		"a text":               {"stop", openai.ChatCompletionMessage{Content: `{"a": "ü <b>"}`}, ""},
		"a refusal":            {"stop", openai.ChatCompletionMessage{Refusal: "I will not."}, "Refused"},
		"a filtered reply":     {"content_filter", openai.ChatCompletionMessage{Content: "I"}, "Refused"},
		"a reply cut off":      {"length", openai.ChatCompletionMessage{Content: `{"a`}, "Truncated"},
		"a reply without text": {"stop", openai.ChatCompletionMessage{}, "Empty"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, completion(t, tc.reason, tc.message))
			client := openAI(s)
			read, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{})
			if err != nil {
				t.Fatal(err)
			}
			want := reading{Reason: tc.want}
			if tc.want == "" {
				want.Reply = provider.Reply{
					Text: read.Choices[0].Message.Content, Model: read.Model,
					Usage: provider.Usage{InputTokens: read.Usage.PromptTokens, OutputTokens: read.Usage.CompletionTokens},
				}
				if want.Reply.Usage != counts || want.Reply.Text != tc.message.Content {
					t.Fatalf("the SDK reads %+v", want)
				}
			}
			if diff := cmp.Diff(want, observed(t, chat.New(s.endpoint(t, "/v1")), plain("m"))); diff != "" {
				t.Errorf("(-theirs +ours):\n%s", diff)
			}
		})
	}
}

func TestChatModels(t *testing.T) {
	s := serve(t, encoded(t, pagination.Page[openai.Model]{Object: "list", Data: []openai.Model{
		{ID: "gpt-5.1", Created: 1, OwnedBy: "openai"}, {ID: "ft:gpt-4o:org::id", Created: 2, OwnedBy: "org"},
	}}))
	ours := listed(t, chat.New(s.endpoint(t, "/v1")))
	first := s.last(t, 1)
	client := openAI(s)
	page, err := client.Models.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var theirs []provider.Listed
	for _, m := range page.Data {
		theirs = append(theirs, provider.Listed{Name: m.ID})
	}
	if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) != 2 {
		t.Errorf("(-theirs +ours):\n%s", diff)
	}
	second := s.last(t, 2)
	if first.Method != second.Method || first.Path != second.Path {
		t.Errorf("we ask %s %s, they %s %s", first.Method, first.Path, second.Method, second.Path)
	}
}
