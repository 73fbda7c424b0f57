// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// answeredWith is a request in which a tool of the newest turn returned an image of its own.
func answeredWith(d message.Dialect, data string) string {
	switch d {
	case message.OpenAIResponses:
		return fmt.Sprintf(`{"model":"see","input":[{"role":"user","content":"what?"},{"type":"function_call","call_id":"call_abcdef12","name":"shot","arguments":"{}"},{"type":"function_call_output","call_id":"call_abcdef12","output":[{"type":"input_text","text":"shot"},{"type":"input_image","image_url":"data:image/png;base64,%s"}]}]}`, data)
	case message.AnthropicMessages:
		return fmt.Sprintf(`{"model":"see","messages":[{"role":"user","content":"what?"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_abcdef12","name":"shot","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_abcdef12","content":[{"type":"text","text":"shot"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}]}`, data)
	case message.GeminiContents:
		return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":"what?"}]},{"role":"model","parts":[{"functionCall":{"name":"shot","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"shot","response":{"result":"shot"},"parts":[{"inlineData":{"mimeType":"image/png","data":"%s"}}]}}]}]}`, data)
	}
	return fmt.Sprintf(`{"model":"see","messages":[{"role":"user","content":"what?"},{"role":"assistant","tool_calls":[{"id":"call_abcdef12","type":"function","function":{"name":"shot","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_abcdef12","content":[{"type":"text","text":"shot"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`, data)
}

func TestADamagedImageThatAToolReturnedIsExactlyOneText(t *testing.T) {
	whole := base64Of(square(t, 40, 7))
	for what, data := range map[string]string{
		"empty": "", "white space": "  ", "no base64": "!!!!", "another alphabet": "_-_-" + whole[4:], "cut": whole[:33], "white space within": whole[:8] + " " + whole[8:],
		"too much padding": whole + "====", "no image": "aGVsbG8gd29ybGQh",
	} {
		for _, d := range message.Dialects() {
			t.Run(what+"/"+string(d), func(t *testing.T) {
				r := newRig(t)
				r.use(proxied(func(doc *router.Document) { doc.Providers[0].Transport = transports[d] }))
				body := answeredWith(d, data)
				p, err := r.engine.Prepare(t.Context(), engine.ModelRequest{Dialect: d, Model: "see", Body: []byte(body)})
				must(t, err)
				defer p.Release()
				sent, err := io.ReadAll(p.Body.Reader())
				must(t, err)
				note := preflight.Note("")
				if d == message.GeminiContents { // where a function's response has parts, they are data
					note = base64.StdEncoding.EncodeToString([]byte(note))
				}
				if len(p.Record.Edits) != 1 || strings.Count(string(sent), note) != 1 || strings.Contains(string(sent), `"data":"`+data+`"`) || p.Record.Degraded != 1 {
					t.Errorf("sent %s, record %+v", sent, p.Record)
				}
			})
		}
	}
}
