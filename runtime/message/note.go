// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// longestKept bounds what a text part keeps of an image's, in bytes of JSON: marks
// and names have a few dozen, and nothing large, such as an image, may pass for one.
const longestKept = 1 << 10

// TextPart is the JSON value that says text in the place of an image's part, as
// the dialect takes it there; nil where none may stand (see Image.Fixed). Of the
// image's part it keeps what others refer to: a mark for the vendor's cache, and
// the name by which a function's response refers to its media; bytes of them that
// are not UTF-8 become U+FFFD, as in most decoders. The same arguments give the same bytes. body is what was scanned.
func (r *Request) TextPart(body []byte, image int, text string) []byte {
	i := &r.Images[image]
	var kept json.RawMessage
	if i.kept.Len() <= longestKept {
		kept = bytes.ToValidUTF8(body[i.kept.Start:i.kept.End], []byte("\uFFFD"))
	}
	switch {
	case i.Fixed:
		return nil
	case r.Dialect == GeminiContents && i.boxed:
		// A function's response has no text parts, but takes media of plain text.
		type blob struct {
			MIMEType    string          `json:"mimeType"`
			Data        string          `json:"data"`
			DisplayName json.RawMessage `json:"displayName,omitempty"`
		}
		return compact(struct {
			InlineData blob `json:"inlineData"`
		}{blob{"text/plain", base64.StdEncoding.EncodeToString([]byte(text)), kept}})
	case r.Dialect == GeminiContents:
		return compact(struct {
			Text string `json:"text"`
		}{text})
	}
	kind := "text"
	if r.Dialect == OpenAIResponses {
		kind = "input_text"
		if r.Turns[i.Turn].Role == Assistant {
			kind = "output_text"
		}
	}
	return compact(struct {
		Type         string          `json:"type"`
		Text         string          `json:"text"`
		CacheControl json.RawMessage `json:"cache_control,omitempty"`
	}{kind, text, kept})
}

// compact writes JSON without the escapes that only HTML needs.
func compact(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// What comes here are texts, numbers and values that were scanned: they can be written.
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
