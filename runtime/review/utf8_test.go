// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/review"
)

// A body may hold bytes that are not UTF-8, which most vendors replace. The
// answer is JSON all the same.
func TestAnAnswerIsUTF8WhateverTheBodyHolds(t *testing.T) {
	// filled has <ff> replaced by a byte that begins no rune.
	filled := func(format, part string) []byte {
		return bytes.ReplaceAll(filled(fmt.Appendf(nil, format, part)), []byte("<ff>"), []byte{0xff})
	}
	gemini := func(part string) []byte {
		return filled(`{"contents":[{"parts":[%s]},{"role":"model","parts":[{"text":"a"}]},{"parts":[{"text":"b"}]}]}`, part)
	}
	claude := func(part string) []byte {
		return filled(`{"messages":[{"role":"user","content":[%s]},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]}`, part)
	}
	for name, tc := range map[string]struct {
		dialect message.Dialect
		body    []byte
		guard   string
	}{
		"a declared type":  {message.GeminiContents, gemini(`{"inlineData":{"mimeType":"image/<ff>","data":"@png:10000x5001@"}}`), `{"op":"remove","path":"/contents/0/parts/0/inlineData"}`},
		"a part's type":    {message.OpenAIChat, claude(`{"type":"<ff>","image_url":"data:image/png;base64,@png:10000x5001@"}`), `{"op":"remove","path":"/messages/0/content/0/type"}`},
		"a mark of caches": {message.AnthropicMessages, claude(`{"type":"image","cache_control":{"type":"<ff>"},"source":{"type":"base64","data":"@png:10000x5001@"}}`), `{"op":"test","path":"/messages/0/content/0/type","value":"image"}`},
		"a name that functions give": {
			message.GeminiContents, gemini(`{"functionResponse":{"name":"f","parts":[{"inlineData":{"displayName":"<ff>","mimeType":"image/png","data":"@png:10000x5001@"}}]}}`),
			`{"op":"test","path":"/contents/0/parts/0/functionResponse/parts/0/inlineData/mimeType","value":"image/png"}`,
		},
	} {
		for _, kind := range []review.PatchType{review.JSONPatch, review.ByteRanges} {
			response := judged(t, &review.Request{Model: "eye-1", Dialect: tc.dialect, Body: tc.body, PatchTypes: []review.PatchType{kind}})
			if answer := written(t, response); !utf8.Valid(answer) || !json.Valid(answer) || !response.Degraded() {
				t.Errorf("%s, %s: %q", name, kind, answer)
			}
			if kind == review.JSONPatch && !strings.HasPrefix(string(response.Patch), "["+tc.guard) {
				t.Errorf("%s: %q", name, response.Patch)
			}
		}
	}
}

func TestADeclaredTypeIsNotRepeatedAtLength(t *testing.T) {
	long := "image/" + strings.Repeat("x", 240)
	for _, body := range []string{
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://example.com/a","mimeType":"` + long + `"}}]}]}`,
		`{"contents":[{"parts":[{"inlineData":{"data":"@png:9x9@","mimeType":"` + long + `"}}]}]}`,
	} {
		response := judged(t, &review.Request{Model: "eye-1", Dialect: message.GeminiContents, Body: filled([]byte(body))})
		if response.Allowed || strings.Contains(response.Status.Message, strings.Repeat("x", 100)) || !strings.Contains(response.Status.Message, "xxx…") {
			t.Errorf("%+v", response.Status)
		}
	}
}
