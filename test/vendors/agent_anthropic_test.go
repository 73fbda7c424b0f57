// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"context"
	"encoding/base64"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/visionoperator/vision-operator/test/loop"
)

// claudeAgent is an agent made with Anthropic's SDK, whose model thinks.
type claudeAgent struct {
	client   sdk.Client
	model    string
	stream   bool
	messages []sdk.MessageParam
}

// agentOfClaude is the SDK's client at an address, with nothing else set.
func agentOfClaude(base string) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey(agentKey), option.WithMaxRetries(0))
}

func (a *claudeAgent) Human(text string) {
	a.messages = append(a.messages, sdk.NewUserMessage(sdk.NewTextBlock(text)))
}

func (a *claudeAgent) Results(outcomes []loop.Outcome, beside string) {
	var blocks []sdk.ContentBlockParamUnion
	for _, o := range outcomes {
		block := sdk.NewToolResultBlock(o.Call.ID, o.Text, o.Failed)
		if o.Own != nil {
			image := sdk.NewImageBlockBase64("image/png", base64.StdEncoding.EncodeToString(o.Own)).OfImage
			block.OfToolResult.Content = append(block.OfToolResult.Content, sdk.ToolResultBlockParamContentUnion{OfImage: image})
		}
		blocks = append(blocks, block)
	}
	if beside != "" {
		blocks = append(blocks, sdk.NewTextBlock(beside))
	}
	a.messages = append(a.messages, sdk.NewUserMessage(blocks...))
}

func (a *claudeAgent) Send(ctx context.Context) (loop.Said, error) {
	params := sdk.MessageNewParams{
		Model: a.model, MaxTokens: 4096, Messages: a.messages,
		Thinking: sdk.ThinkingConfigParamUnion{OfAdaptive: &sdk.ThinkingConfigAdaptiveParam{}},
		System:   []sdk.TextBlockParam{{Text: "You are an agent.", CacheControl: sdk.NewCacheControlEphemeralParam()}},
	}
	for _, name := range offered {
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
			Name: name, InputSchema: sdk.ToolInputSchemaParam{Properties: parameters()["properties"]},
		}})
	}
	reply, err := a.ask(ctx, params)
	if err != nil {
		return loop.Said{}, err
	}
	a.messages = append(a.messages, reply.ToParam())
	var said loop.Said
	for _, block := range reply.Content {
		switch block := block.AsAny().(type) {
		case sdk.TextBlock:
			said.Text += block.Text
		case sdk.ToolUseBlock:
			said.Calls = append(said.Calls, loop.Call{ID: block.ID, Name: block.Name, Arguments: string(block.Input)})
		}
	}
	return said, nil
}

func (a *claudeAgent) ask(ctx context.Context, params sdk.MessageNewParams) (*sdk.Message, error) {
	if !a.stream {
		return a.client.Messages.New(ctx, params)
	}
	stream := a.client.Messages.NewStreaming(ctx, params)
	var whole sdk.Message
	ended := false
	for stream.Next() {
		event := stream.Current()
		if err := whole.Accumulate(event); err != nil {
			return nil, err
		}
		_, last := event.AsAny().(sdk.MessageStopEvent)
		ended = ended || last
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if !ended {
		return nil, errUnfinished
	}
	return &whole, nil
}
