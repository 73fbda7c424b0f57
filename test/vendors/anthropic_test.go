// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/pagination"
	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
)

const (
	newer = "claude-opus-5"              // takes output_config.format
	older = "claude-3-5-sonnet-20241022" // takes a forced tool
)

func claude(s *server) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(s.url), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func TestAnthropicRequests(t *testing.T) {
	answer := claudeSays(t, sdk.StopReasonEndTurn, sdk.TextBlock{Text: "ok"})
	for name, req := range map[string]provider.Request{
		"plain": plain(newer), "with a format": structured(newer), "with a forced tool": structured(older),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			if got := observed(t, anthropic.New(s.endpoint(t, "")), req); got.Reason != "" {
				t.Fatal(got.Reason)
			}
			ours := s.last(t, 1)
			ours.body = systemInBlocks(t, ours.body)
			params := strictly[sdk.MessageNewParams](t, ours.body)
			meansMessage(t, params, req)

			client := claude(s)
			if _, err := client.Messages.New(context.Background(), params); err != nil {
				t.Fatal(err)
			}
			sameCall(t, ours, s.last(t, 2), "Content-Type", "Accept")
			// The SDK speaks the version of October 2026, in which all of this is the
			// same. We speak the one that every server knows.
			if version := ours.header.Get("Anthropic-Version"); version != "2023-06-01" {
				t.Errorf("the version is %q", version)
			}
		})
	}
}

// systemInBlocks writes a system text in the one of its two forms that the SDK
// has: a list of blocks.
func systemInBlocks(t *testing.T, body []byte) []byte {
	t.Helper()
	message, _ := decoded(t, body).(map[string]any)
	if text, ok := message["system"].(string); ok {
		message["system"] = []any{map[string]any{"type": "text", "text": text}}
	}
	return encoded(t, message)
}

// meansMessage compares the parameters with what was to be asked.
func meansMessage(t *testing.T, params sdk.MessageNewParams, req provider.Request) {
	t.Helper()
	if params.Model != req.Model || params.MaxTokens < max(req.MaxOutputTokens, 1) {
		t.Errorf("model %q, %d tokens", params.Model, params.MaxTokens)
	}
	if len(params.Messages) != 1 || params.Messages[0].OfUser == nil || len(params.Messages[0].OfUser.Content) != 2 {
		t.Fatalf("not one message of the user's with two blocks: %+v", params.Messages)
	}
	blocks := params.Messages[0].OfUser.Content
	if blocks[0].OfText == nil || blocks[0].OfText.Text != req.Prompt || blocks[1].OfImage == nil || blocks[1].OfImage.Source.OfBase64 == nil {
		t.Fatalf("not the prompt and then the image: %+v", blocks)
	}
	if source := blocks[1].OfImage.Source.OfBase64; source.MediaType != sdk.Base64ImageSourceMediaTypeImagePNG {
		t.Errorf("the media type is %q", source.MediaType)
	}
	samePicture(t, blocks[1].OfImage.Source.OfBase64.Data)
	if req.Schema == nil {
		if len(params.Tools) != 0 || params.OutputConfig.Format.Schema != nil || len(params.System) != 0 {
			t.Error("a plain look has tools, a format or a system text")
		}
		return
	}
	if len(params.System) != 1 || params.System[0].Text != req.Instructions {
		t.Error("the system text is not the instructions")
	}
	// The reply's schema is one that needs no lowering for this vendor.
	if req.Model == newer {
		sameJSON(t, req.Schema.JSON, encoded(t, params.OutputConfig.Format.Schema))
		return
	}
	if len(params.Tools) != 1 || params.Tools[0].OfTool == nil {
		t.Fatalf("the tools are %+v", params.Tools)
	}
	tool := params.Tools[0].OfTool
	if choice := params.ToolChoice.OfTool; choice == nil || choice.Name != tool.Name || params.OutputConfig.Format.Schema != nil {
		t.Errorf("the choice is %+v", params.ToolChoice)
	}
	sameJSON(t, req.Schema.JSON, encoded(t, tool.InputSchema))
}

func TestAnthropicGoldenRequests(t *testing.T) {
	goldens(t, "anthropic", func(t *testing.T, body []byte) {
		_ = strictly[sdk.MessageNewParams](t, systemInBlocks(t, body))
	})
}

// claudeSays is a reply as the SDK writes it, with blocks as its content.
func claudeSays(t *testing.T, reason sdk.StopReason, content ...any) []byte {
	t.Helper()
	message := sdk.Message{
		ID: "msg_1", Model: "claude-opus-5-20260801", StopReason: reason,
		Usage: sdk.Usage{InputTokens: 1000, CacheReadInputTokens: 20, CacheCreationInputTokens: 4, OutputTokens: counts.OutputTokens},
	}
	if content == nil {
		content = []any{}
	}
	return with(t, message, map[string]any{"content": content, "stop_sequence": nil, "container": nil})
}

func TestAnthropicReplies(t *testing.T) {
	input := json.RawMessage(`{"type":"visual_observation","n":[1,2.50]}`)
	tool := sdk.ToolUseBlock{ID: "toolu_1", Name: "structured_response_" + observation.ReplySchemaName, Input: input}
	thinking := sdk.ThinkingBlock{Thinking: "I look.", Signature: "c2ln"}
	for name, tc := range map[string]struct {
		model string
		reply []byte
		want  string // the fault's reason; empty for a text
	}{
		"a text":                       {newer, claudeSays(t, sdk.StopReasonEndTurn, sdk.TextBlock{Text: `{"a": "ü <b>"}`}), ""},
		"a text after thought":         {newer, claudeSays(t, sdk.StopReasonEndTurn, thinking, sdk.RedactedThinkingBlock{Data: "eA=="}, sdk.TextBlock{Text: "seen"}), ""},
		"a call of the tool":           {older, claudeSays(t, sdk.StopReasonToolUse, sdk.TextBlock{Text: "Here it is."}, tool), ""},
		"a text instead of the tool":   {older, claudeSays(t, sdk.StopReasonEndTurn, sdk.TextBlock{Text: "{}"}), ""},
		"a refusal":                    {newer, claudeSays(t, sdk.StopReasonRefusal), "Refused"},
		"a refusal on the way":         {newer, claudeSays(t, sdk.StopReasonRefusal, sdk.TextBlock{Text: "I"}), "Refused"},
		"a reply cut off":              {newer, claudeSays(t, sdk.StopReasonMaxTokens, sdk.TextBlock{Text: `{"a`}), "Truncated"},
		"a thought cut off":            {newer, claudeSays(t, sdk.StopReasonMaxTokens, thinking), "Truncated"},
		"a context that is full":       {newer, claudeSays(t, sdk.StopReasonModelContextWindowExceeded, sdk.TextBlock{Text: "{"}), "Truncated"},
		"a reply without text":         {newer, claudeSays(t, sdk.StopReasonEndTurn), "Empty"},
		"a reply with a thought alone": {newer, claudeSays(t, sdk.StopReasonEndTurn, thinking), "Empty"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.reply)
			client := claude(s)
			read, err := client.Messages.New(context.Background(), sdk.MessageNewParams{MaxTokens: 1})
			if err != nil {
				t.Fatal(err)
			}
			want := reading{Reason: tc.want}
			if tc.want == "" {
				want.Reply = provider.Reply{Text: claudeSaid(read), Model: read.Model, Usage: provider.Usage{
					InputTokens:  read.Usage.InputTokens + read.Usage.CacheReadInputTokens + read.Usage.CacheCreationInputTokens,
					OutputTokens: read.Usage.OutputTokens,
				}}
				if want.Reply.Usage != counts || want.Reply.Text == "" {
					t.Fatalf("the SDK reads %+v", want)
				}
			}
			if diff := cmp.Diff(want, observed(t, anthropic.New(s.endpoint(t, "")), structured(tc.model))); diff != "" {
				t.Errorf("(-theirs +ours):\n%s", diff)
			}
		})
	}
}

// claudeSaid is the reply as the SDK reads it: what the tool was called with, or
// the last text.
func claudeSaid(read *sdk.Message) string {
	var said string
	for _, block := range read.Content {
		switch b := block.AsAny().(type) {
		case sdk.TextBlock:
			said = b.Text
		case sdk.ToolUseBlock:
			return string(b.Input)
		}
	}
	return said
}

func TestAnthropicModels(t *testing.T) {
	sees := sdk.ModelCapabilities{ImageInput: sdk.CapabilitySupport{Supported: true}}
	s := serve(t, encoded(t, pagination.Page[sdk.ModelInfo]{
		FirstID: newer, LastID: older, Data: []sdk.ModelInfo{
			{ID: newer, CreatedAt: time.Unix(1, 0).UTC(), DisplayName: "N", MaxInputTokens: 1_000_000, MaxTokens: 128_000, Capabilities: sees},
			{ID: older, CreatedAt: time.Unix(1, 0).UTC(), DisplayName: "O", MaxInputTokens: 200_000, MaxTokens: 8192},
		},
	}))
	ours := listed(t, anthropic.New(s.endpoint(t, "")))
	first := s.last(t, 1)
	client := claude(s)
	page, err := client.Models.List(context.Background(), sdk.ModelListParams{Limit: sdk.Int(1000)})
	if err != nil {
		t.Fatal(err)
	}
	var theirs []provider.Listed
	for _, m := range page.Data {
		answer := provider.No
		if m.Capabilities.ImageInput.Supported {
			answer = provider.Yes
		}
		theirs = append(theirs, provider.Listed{Name: m.ID, ImageInput: answer, ContextWindowTokens: m.MaxInputTokens, MaxOutputTokens: m.MaxTokens})
	}
	if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) != 2 {
		t.Errorf("(-theirs +ours):\n%s", diff)
	}
	second := s.last(t, 2)
	if diff := cmp.Diff([]string{second.Method, second.Path, second.Query}, []string{first.Method, first.Path, first.Query}); diff != "" {
		t.Errorf("(-theirs +ours):\n%s", diff)
	}
}
