// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	openairesponses "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/visionoperator/vision-operator/test/loop"
)

// agentKey is the agent's own credential, which no model's server must see.
const agentKey = "sk-agents-own"

// errUnfinished is a stream that ended before the reply did.
var errUnfinished = errors.New("the stream ended before the reply did")

// offered are the tools that agents offer; the model calls what its script says.
var offered = []string{"run_command", "view_image"}

// parameters is what the tools take.
func parameters() map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{"type": "object", "properties": map[string]any{"path": text, "prompt": text, "command": text}}
}

func pngURL(png []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
}

// agentOfOpenAI is the SDK's client at an address, with nothing else set.
func agentOfOpenAI(base string) openai.Client {
	return openai.NewClient(option.WithBaseURL(base), option.WithAPIKey(agentKey), option.WithMaxRetries(0))
}

// chatAgent is an agent made with the SDK for chat completions.
type chatAgent struct {
	client   openai.Client
	model    string
	stream   bool
	messages []openai.ChatCompletionMessageParamUnion
}

func (a *chatAgent) Human(text string) { a.messages = append(a.messages, openai.UserMessage(text)) }

func (a *chatAgent) Results(outcomes []loop.Outcome, beside string) {
	var images []openai.ChatCompletionContentPartUnionParam
	for _, o := range outcomes {
		a.messages = append(a.messages, openai.ToolMessage(o.Text, o.Call.ID))
		if o.Own != nil {
			images = append(images, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: pngURL(o.Own)}))
		}
	}
	if images != nil {
		a.messages = append(a.messages, openai.UserMessage(images))
	}
	if beside != "" {
		a.Human(beside)
	}
}

func (a *chatAgent) Send(ctx context.Context) (loop.Said, error) {
	params := openai.ChatCompletionNewParams{Model: a.model, Messages: a.messages}
	for _, name := range offered {
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Parameters: parameters()}))
	}
	reply, err := a.ask(ctx, params)
	if err != nil {
		return loop.Said{}, err
	}
	message := reply.Choices[0].Message
	a.messages = append(a.messages, message.ToParam())
	said := loop.Said{Text: message.Content}
	for _, call := range message.ToolCalls {
		said.Calls = append(said.Calls, loop.Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return said, nil
}

func (a *chatAgent) ask(ctx context.Context, params openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
	if !a.stream {
		return a.client.Chat.Completions.New(ctx, params)
	}
	stream := a.client.Chat.Completions.NewStreaming(ctx, params)
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		whole.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if len(whole.Choices) == 0 || whole.Choices[0].FinishReason == "" {
		return nil, errUnfinished
	}
	return &whole.ChatCompletion, nil
}

// responsesAgent is an agent made with the SDK for Responses.
type responsesAgent struct {
	client   openai.Client
	model    string
	stream   bool
	kept     bool // the vendor keeps the conversation
	previous string
	input    openairesponses.ResponseInputParam
}

func (a *responsesAgent) Human(text string) {
	a.input = append(a.input, openairesponses.ResponseInputItemParamOfMessage(text, openairesponses.EasyInputMessageRoleUser))
}

func (a *responsesAgent) Results(outcomes []loop.Outcome, beside string) {
	for _, o := range outcomes {
		item := openairesponses.ResponseInputItemFunctionCallOutputParam{CallID: openai.String(o.Call.ID)}
		item.Output.OfString = openai.String(o.Text)
		if o.Own != nil {
			item.Output = openairesponses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfResponseFunctionCallOutputItemArray: openairesponses.ResponseFunctionCallOutputItemListParam{
				{OfInputText: &openairesponses.ResponseInputTextContentParam{Text: o.Text}},
				{OfInputImage: &openairesponses.ResponseInputImageContentParam{ImageURL: openai.String(pngURL(o.Own))}},
			}}
		}
		whole := openairesponses.ResponseInputItemUnionParam{OfFunctionCallOutput: &item}
		if o.Call.Custom {
			whole = openairesponses.ResponseInputItemParamOfCustomToolCallOutput(o.Call.ID, o.Text)
		}
		a.input = append(a.input, whole)
	}
	if beside != "" {
		a.Human(beside)
	}
}

func (a *responsesAgent) Send(ctx context.Context) (loop.Said, error) {
	params := openairesponses.ResponseNewParams{Model: a.model}
	params.Input.OfInputItemList = a.input
	for _, name := range offered {
		params.Tools = append(params.Tools, openairesponses.ToolParamOfFunction(name, parameters(), false))
	}
	if a.kept && a.previous != "" {
		params.PreviousResponseID = openai.String(a.previous)
	}
	if !a.kept {
		params.Store = openai.Bool(false)
		params.Include = []openairesponses.ResponseIncludable{openairesponses.ResponseIncludableReasoningEncryptedContent}
	}
	reply, err := a.ask(ctx, params)
	if err != nil {
		return loop.Said{}, err
	}
	if a.previous = reply.ID; a.kept {
		a.input = nil
	}
	said := loop.Said{Text: reply.OutputText()}
	for _, item := range reply.Output {
		var param openairesponses.ResponseInputItemUnionParam
		switch item := item.AsAny().(type) {
		case openairesponses.ResponseReasoningItem:
			p := item.ToParam()
			param.OfReasoning = &p
		case openairesponses.ResponseOutputMessage:
			p := item.ToParam()
			param.OfOutputMessage = &p
		case openairesponses.ResponseFunctionToolCall:
			p := item.ToParam()
			param.OfFunctionCall = &p
			said.Calls = append(said.Calls, loop.Call{ID: item.CallID, Name: item.Name, Arguments: item.Arguments})
		case openairesponses.ResponseCustomToolCall:
			p := item.ToParam()
			param.OfCustomToolCall = &p
			said.Calls = append(said.Calls, loop.Call{ID: item.CallID, Name: item.Name, Arguments: item.Input, Custom: true})
		}
		if !a.kept {
			a.input = append(a.input, param)
		}
	}
	return said, nil
}

func (a *responsesAgent) ask(ctx context.Context, params openairesponses.ResponseNewParams) (*openairesponses.Response, error) {
	if !a.stream {
		return a.client.Responses.New(ctx, params)
	}
	stream := a.client.Responses.NewStreaming(ctx, params)
	for stream.Next() {
		if completed, ok := stream.Current().AsAny().(openairesponses.ResponseCompletedEvent); ok {
			return &completed.Response, nil
		}
	}
	return nil, errors.Join(stream.Err(), errUnfinished)
}
