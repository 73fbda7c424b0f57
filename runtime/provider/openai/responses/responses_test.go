// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/responses"
)

var wire = exchangetest.Protocol{
	New: responses.New, Base: "/v1/", Path: "/v1/responses", Key: exchangetest.Bearer,
	Model: "org/see-2", Slot: `"data:image/png;base64," & {"url":"data:image/png;base64,"}`,
	Schema: `{"type": "object", "additionalProperties": false}`, Format: `"text":{`,
	Answer: reply(text(`"ok"`)), Reply: "a response",
}

// reply is a response with the content of its message, which is JSON.
func reply(content string) string {
	return `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"see-2-2026","output":[` +
		`{"type":"reasoning","id":"rs_1","summary":[],"content":null},` + message(content) +
		`],"usage":{"input_tokens":1024,"output_tokens":33,"output_tokens_details":{"reasoning_tokens":20}}}`
}

// message is an item with a content, which is JSON.
func message(content string) string {
	return `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":` + content + `}`
}

// text is a content with one text, as JSON.
func text(t string) string { return `[{"type":"output_text","annotations":[],"text":` + t + `}]` }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheContractOfProtocols(t *testing.T) { wire.Contract(t) }

func TestAServerThatRefusesTextFormatIsAskedOnceMoreWithout(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
	}{
		"OpenAI, for an old model":      {400, `{"error":{"message":"Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model.","type":"invalid_request_error","param":"text.format","code":null}}`},
		"a schema that it cannot take":  {400, `{"error":{"message":"Invalid schema","param":"text.format.schema","code":"invalid_json_schema"}}`},
		"a server that knows no text":   {400, `{"error":{"message":"Unknown parameter: 'text'.","param":"text","code":"unknown_parameter"}}`},
		"vLLM":                          {400, `{"error":{"message":"guided decoding","type":"BadRequestError","param":null,"code":400}}`},
		"a server that checks its JSON": {422, `{"detail":[{"type":"extra_forbidden","loc":["body","text"],"input":{}}]}`},
	} {
		t.Run(name, func(t *testing.T) { wire.FallsBack(t, wire.Look(), wire.Format, tc.status, tc.body) })
	}
}

func TestListIsWhatTheServerLists(t *testing.T) {
	wire.Lists(t, []provider.Listed{{Name: "a/sees", ImageInput: provider.Yes, ContextWindowTokens: 9}},
		exchangetest.Page{URI: "/v1/models", Body: `{"data":[{"id":"a/sees","architecture":{"input_modalities":["image"]},"context_length":9}]}`})
}
