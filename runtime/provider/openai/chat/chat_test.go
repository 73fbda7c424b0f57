// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var wire = exchangetest.Protocol{
	New: chat.New, Base: "/v1/", Path: "/v1/chat/completions", Key: exchangetest.Bearer,
	Model: "org/see-2", Slot: `"data:image/png;base64," & {"url":"data:image/png;base64,"}`,
	Schema: `{"type": "object", "additionalProperties": false}`, Format: `"response_format"`,
	Answer: reply(`"ok"`), Reply: "a chat completion",
}

// reply is a completion with a content, which is JSON.
func reply(content string) string {
	return `{"model":"see-2-2026","choices":[{"finish_reason":"stop","message":{"role":"assistant","refusal":null,"content":` + content +
		`}}],"usage":{"prompt_tokens":1024,"completion_tokens":33}}`
}

func TestTheContractOfProtocols(t *testing.T) { wire.Contract(t) }

func TestAServerThatRefusesResponseFormatIsAskedOnceMoreWithout(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
	}{
		"OpenAI, for an old model":      {400, `{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.","type":"invalid_request_error","param":"response_format","code":null}}`},
		"a schema that it cannot take":  {400, `{"error":{"message":"Invalid schema for response_format","param":"response_format.json_schema.schema","code":"invalid_json_schema"}}`},
		"vLLM":                          {400, `{"object":"error","message":"guided decoding","type":"BadRequestError","param":null,"code":400}`},
		"DeepSeek":                      {400, `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`},
		"LM Studio":                     {400, `{"error":"'response_format.type' must be 'json_schema' or 'text'"}`},
		"a server that checks its JSON": {422, `{"detail":[{"type":"extra_forbidden","loc":["body","response_format"],"input":{}}]}`},
	} {
		t.Run(name, func(t *testing.T) { wire.FallsBack(t, wire.Look(), wire.Format, tc.status, tc.body) })
	}
}

func TestListIsWhatTheServerLists(t *testing.T) {
	wire.Lists(t, []provider.Listed{{Name: "a/sees", ImageInput: provider.Yes, ContextWindowTokens: 9}},
		exchangetest.Page{URI: "/v1/models", Body: `{"data":[{"id":"a/sees","architecture":{"input_modalities":["image"]},"context_length":9}]}`})
}
