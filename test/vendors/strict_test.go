// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	openairesponses "github.com/openai/openai-go/v3/responses"
)

// TestStrangersAreFound shows that the checks of this package can fail: each
// body is one that the vendor's type holds, but for the member "strange".
func TestStrangersAreFound(t *testing.T) {
	loses := map[string]func(t *testing.T, body []byte) string{
		"chat": func(t *testing.T, body []byte) string {
			_, lost := read[openai.ChatCompletionNewParams](t, body)
			return lost
		},
		"responses": func(t *testing.T, body []byte) string {
			_, lost := read[openairesponses.ResponseNewParams](t, body)
			return lost
		},
		"anthropic": func(t *testing.T, body []byte) string { _, lost := read[sdk.MessageNewParams](t, body); return lost },
		"gemini":    func(t *testing.T, body []byte) string { _, lost := read[generateContent](t, body); return lost },
	}
	for protocol, bodies := range map[string][]string{
		"chat": {
			`{"model":"m","messages":[],"strange":1}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","strange":1}}]}]}`,
			`{"model":"m","messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{},"strict":true,"strange":1}}}`,
		},
		"responses": {
			`{"model":"m","strange":1}`,
			`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto","image_url":"u","strange":1}]}]}`,
			`{"model":"m","text":{"format":{"type":"json_schema","name":"n","schema":{},"strict":true,"strange":1}}}`,
		},
		"anthropic": {
			`{"model":"m","max_tokens":1,"messages":[],"strange":1}`,
			`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA==","strange":1}}]}]}`,
			`{"model":"m","max_tokens":1,"messages":[],"output_config":{"format":{"type":"json_schema","schema":{},"strange":1}}}`,
		},
		"gemini": {
			`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"strange":1}`,
			`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"eA==","strange":1}}]}]}`,
			`{"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"object","strange":1}}}`,
		},
	} {
		for _, body := range bodies {
			t.Run(protocol, func(t *testing.T) {
				if lost := loses[protocol](t, []byte(body)); !strings.Contains(lost, "strange") {
					t.Errorf("of %s is lost: %q", body, lost)
				}
				known := strings.Replace(body, `,"strange":1`, "", 1)
				if lost := loses[protocol](t, []byte(known)); lost != "" {
					t.Errorf("of %s is lost:\n%s", known, lost)
				}
			})
		}
	}
}
