// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

// anthropicWire is Anthropic's Messages: the content of a tool_result is a string,
// or blocks of text and images. The vendor refuses text blocks that are empty or
// white space alone ("text content blocks must contain non-whitespace text"), which
// a string may be.
var anthropicWire = wire{
	textHead: `{"type":"text","text":`, textTail: `}`,
	content:      "content",
	user:         [2]string{`{"role":"user","content":[`, `]}`},
	assistant:    [2]string{`{"role":"assistant","content":`, `}`},
	refusesBlank: true,
	picture: func(mediaType string, _ dress) (head, tail string) {
		return `{"type":"image","source":{"type":"base64","media_type":"` + inside(mediaType) + `","data":"`, `"}}`
	},
}
