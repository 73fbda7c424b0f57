// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

// responsesWire is OpenAI's Responses: the output of a function_call_output or of
// a custom_tool_call_output is a string, or an array of input_text, input_image and
// input_file; detail is required of an input_image (API reference, Responses, input).
var responsesWire = wire{
	textHead: `{"type":"input_text","text":`, textTail: `}`,
	content:   "output",
	user:      [2]string{`{"type":"message","role":"user","content":[`, `]}`},
	assistant: [2]string{`{"type":"message","role":"assistant","content":`, `}`},
	picture: func(mediaType string, _ dress) (head, tail string) {
		return `{"type":"input_image","image_url":"` + dataURL(mediaType), `","detail":"auto"}`
	},
}
