// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

// chatWire is OpenAI's Chat Completions: parts of a user's message are
// ChatCompletionRequestUserMessageContentPart of its API reference. Servers of
// Mistral's kind take the same parts in tools' messages (ToolMessage of
// mistral-common, src/mistral_common/protocol/instruct/messages.py).
var chatWire = wire{
	textHead: `{"type":"text","text":`, textTail: `}`,
	content:   "content",
	user:      [2]string{`{"role":"user","content":[`, `]}`},
	assistant: [2]string{`{"role":"assistant","content":`, `}`},
	picture: func(mediaType string, _ dress) (head, tail string) {
		return `{"type":"image_url","image_url":{"url":"` + dataURL(mediaType), `"}}`
	},
}
