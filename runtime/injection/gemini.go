// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/base64"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// geminiWire is Gemini's generateContent: a part is text or inlineData, and the
// parts of a functionResponse (FunctionResponsePart, from Gemini 3 on) are
// inlineData or fileData alone, so that a text there is media of the type
// text/plain. Both spellings of protocol buffers' JSON are read; what is put in
// takes that of the result beside it.
var geminiWire = wire{
	textHead: `{"text":`, textTail: `}`,
	content:   "parts",
	user:      [2]string{`{"role":"user","parts":[`, `]}`},
	assistant: [2]string{`{"role":"model","parts":[{"text":`, `}]}`},
	picture:   geminiData,
	boxed: func(text string, d dress) string {
		head, tail := geminiData("text/plain", d)
		return head + base64.StdEncoding.EncodeToString([]byte(text)) + tail
	},
}

// boxedTypes are the images that the parts of a functionResponse take; the vendor's
// other parts take more (Function calling, "Multimodal function responses",
// https://ai.google.dev/gemini-api/docs/function-calling).
var boxedTypes = []string{"image/png", "image/jpeg", "image/webp"}

// Takes reports whether an image of the media type may stand where the image of a
// sight is put, whatever the model takes elsewhere.
func (p *Plan) Takes(d message.Dialect, sight int, mediaType string) bool {
	return d != message.GeminiContents || !p.inResult(sight) || slices.Contains(boxedTypes, mediaType)
}

func geminiData(mediaType string, d dress) (head, tail string) {
	data, kind := "inlineData", "mimeType"
	if d.snake {
		data, kind = "inline_data", "mime_type"
	}
	return `{"` + data + `":{"` + kind + `":"` + inside(mediaType) + `","data":"`, `"}}`
}
