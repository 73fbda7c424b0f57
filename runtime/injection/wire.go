// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import "github.com/visionoperator/vision-operator/runtime/message"

// wire is how a dialect writes the things that are put in.
type wire struct {
	// textHead and textTail stand around a JSON string to make a text part of it.
	textHead, textTail string
	// content names the member of a result that holds parts.
	content string
	// user stands around the parts of a message of the user's, and assistant around
	// the JSON string that is all the assistant says.
	user, assistant [2]string
	// refusesBlank says that a text part must hold more than white space.
	refusesBlank bool
	// picture stands around the base64 of an image.
	picture func(mediaType string, d dress) (head, tail string)
	// boxed is a text where only media may stand; nil where text parts may.
	boxed func(text string, d dress) string
}

// dress is how a part is to look at its place.
type dress struct {
	// boxed: among the parts of a Gemini function's response, which are media.
	boxed bool
	// snake: with the names of protocol buffers' fields, not those of their JSON.
	snake bool
}

var wires = map[message.Dialect]*wire{
	message.OpenAIChat: &chatWire, message.OpenAIResponses: &responsesWire,
	message.AnthropicMessages: &anthropicWire, message.GeminiContents: &geminiWire,
}

// note is a text part.
func (w *wire) note(s string, d dress) []message.Segment {
	if d.boxed && w.boxed != nil {
		return text(w.boxed(s, d))
	}
	return text(w.textHead + string(quoted(s)) + w.textTail)
}

// image is an image part, whose data is streamed.
func (w *wire) image(p *Picture, d dress) []message.Segment {
	head, tail := w.picture(p.MediaType, d)
	return []message.Segment{{Text: []byte(head)}, {Data: p.Data, Size: p.Size}, {Text: []byte(tail)}}
}

// dataURL begins a data URL (RFC 2397) as the inside of a JSON string.
func dataURL(mediaType string) string { return "data:" + inside(mediaType) + ";base64," }

// inside is a JSON string without its quotes.
func inside(s string) string {
	q := quoted(s)
	return string(q[1 : len(q)-1])
}
