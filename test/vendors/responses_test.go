// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	openairesponses "github.com/openai/openai-go/v3/responses"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/responses"
)

func TestResponsesRequests(t *testing.T) {
	answer := response(t, openairesponses.ResponseStatusCompleted, "", said("ok"))
	for name, req := range map[string]provider.Request{"plain": plain("gpt-5.1"), "structured": structured("gpt-5.1")} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			if got := observed(t, responses.New(s.endpoint(t, "/v1")), req); got.Reason != "" {
				t.Fatal(got.Reason)
			}
			ours := s.last(t, 1)
			params := strictly[openairesponses.ResponseNewParams](t, ours.body)
			meansResponses(t, params, req)

			client := openAI(s)
			if _, err := client.Responses.New(context.Background(), params); err != nil {
				t.Fatal(err)
			}
			sameCall(t, ours, s.last(t, 2), "Content-Type", "Accept")
		})
	}
}

// meansResponses compares the parameters with what was to be asked.
func meansResponses(t *testing.T, params openairesponses.ResponseNewParams, req provider.Request) {
	t.Helper()
	if params.Model != req.Model || params.MaxOutputTokens.Value != req.MaxOutputTokens || params.Instructions.Value != req.Instructions {
		t.Errorf("model %q, %d tokens, instructions %q", params.Model, params.MaxOutputTokens.Value, params.Instructions.Value)
	}
	if !params.Store.Valid() || params.Store.Value {
		t.Error("the server may keep the request")
	}
	if len(params.Input.OfInputItemList) != 1 {
		t.Fatalf("%d items of input", len(params.Input.OfInputItemList))
	}
	var parts openairesponses.ResponseInputMessageContentListParam
	switch item := params.Input.OfInputItemList[0]; {
	case item.OfMessage != nil:
		if item.OfMessage.Role != openairesponses.EasyInputMessageRoleUser {
			t.Errorf("the role is %q", item.OfMessage.Role)
		}
		parts = item.OfMessage.Content.OfInputItemContentList
	case item.OfInputMessage != nil:
		if item.OfInputMessage.Role != "user" {
			t.Errorf("the role is %q", item.OfInputMessage.Role)
		}
		parts = item.OfInputMessage.Content
	}
	if len(parts) != 2 || parts[0].OfInputText == nil || parts[0].OfInputText.Text != req.Prompt || parts[1].OfInputImage == nil {
		t.Fatalf("not a message of the prompt and then the image: %+v", params.Input.OfInputItemList)
	}
	data, ok := strings.CutPrefix(parts[1].OfInputImage.ImageURL.Value, "data:image/png;base64,")
	if !ok {
		t.Error("the image is no data URL of a PNG")
	}
	samePicture(t, data)
	if detail := parts[1].OfInputImage.Detail; detail != openairesponses.ResponseInputImageDetailAuto {
		t.Errorf("the detail is %q", detail)
	}
	format := params.Text.Format.OfJSONSchema
	if req.Schema == nil {
		if format != nil {
			t.Error("a plain look has a format")
		}
		return
	}
	if format == nil || format.Name != req.Schema.Name || !format.Strict.Value {
		t.Fatalf("the format is %+v", params.Text.Format)
	}
	sameJSON(t, req.Schema.JSON, encoded(t, format.Schema))
}

func TestResponsesGoldenRequests(t *testing.T) {
	goldens(t, "openai/responses", func(t *testing.T, body []byte) {
		_ = strictly[openairesponses.ResponseNewParams](t, body)
	})
}

// response is a reply as the SDK writes it, with a list of items in its output.
func response(t *testing.T, status openairesponses.ResponseStatus, reason string, output ...any) []byte {
	t.Helper()
	members := map[string]any{
		"id": "resp_1", "object": "response", "created_at": 1, "model": "see-2-2026", "status": status, "output": output,
		"parallel_tool_calls": true, "tools": []any{}, "tool_choice": "auto", "error": nil, "incomplete_details": nil,
		"usage": openairesponses.ResponseUsage{
			InputTokens: counts.InputTokens, OutputTokens: counts.OutputTokens, TotalTokens: 1057,
			OutputTokensDetails: openairesponses.ResponseUsageOutputTokensDetails{ReasoningTokens: 20},
		},
	}
	if reason != "" {
		members["incomplete_details"] = openairesponses.ResponseIncompleteDetails{Reason: reason}
	}
	return encoded(t, members)
}

// said is a message with texts.
func said(texts ...string) any {
	var content []any
	for _, text := range texts {
		content = append(content, openairesponses.ResponseOutputText{Text: text})
	}
	return spoken(content...)
}

// spoken is a message with parts of its content.
func spoken(content ...any) any {
	return struct {
		openairesponses.ResponseOutputMessage
		Content []any `json:"content"`
	}{openairesponses.ResponseOutputMessage{ID: "msg_1", Status: openairesponses.ResponseOutputMessageStatusCompleted}, content}
}

// thought is what a model thought before it answered.
func thought() any {
	return openairesponses.ResponseReasoningItem{
		ID: "rs_1", Summary: []openairesponses.ResponseReasoningItemSummary{{Text: "I look."}},
		Content:          []openairesponses.ResponseReasoningItemContent{{Text: "A button."}},
		EncryptedContent: "b3BhcXVl",
	}
}

func TestResponsesReplies(t *testing.T) {
	const completed, incomplete = openairesponses.ResponseStatusCompleted, openairesponses.ResponseStatusIncomplete
	for name, tc := range map[string]struct {
		reply []byte
		want  string // the fault's reason; empty for a text
	}{
		"a text":               {response(t, completed, "", said(`{"a": "ü <b>"}`)), ""},
		"a text after thought": {response(t, completed, "", thought(), said("seen")), ""},
		"a refusal":            {response(t, completed, "", spoken(openairesponses.ResponseOutputRefusal{Refusal: "I will not."})), "Refused"},
		"a filtered reply":     {response(t, incomplete, "content_filter", said("I")), "Refused"},
		"a reply cut off":      {response(t, incomplete, "max_output_tokens", said(`{"a`)), "Truncated"},
		"a thought cut off":    {response(t, incomplete, "max_output_tokens", thought()), "Truncated"},
		"a reply without text": {response(t, completed, "", thought()), "Empty"},
		"a failure":            {response(t, openairesponses.ResponseStatusFailed, ""), "UpstreamStatus"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.reply)
			client := openAI(s)
			read, err := client.Responses.New(context.Background(), openairesponses.ResponseNewParams{})
			if err != nil {
				t.Fatal(err)
			}
			want := reading{Reason: tc.want}
			if tc.want == "" {
				want.Reply = provider.Reply{
					Text: read.OutputText(), Model: read.Model,
					Usage: provider.Usage{InputTokens: read.Usage.InputTokens, OutputTokens: read.Usage.OutputTokens},
				}
				if want.Reply.Usage != counts || want.Reply.Text == "" {
					t.Fatalf("the SDK reads %+v", want)
				}
			}
			if diff := cmp.Diff(want, observed(t, responses.New(s.endpoint(t, "/v1")), plain("m"))); diff != "" {
				t.Errorf("(-theirs +ours):\n%s", diff)
			}
		})
	}
}
