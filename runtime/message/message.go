// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package message reads the bodies of model requests, one file per dialect, and
// says where in their bytes the turns, images, calls and results stand. It is pure,
// decodes no image, and changes nothing: whoever degrades or adds an image splices
// the byte ranges it gives, and every other byte stays as the client sent it.
package message

import "github.com/visionoperator/vision-operator/runtime/router"

// Dialect is a wire protocol as a client speaks it.
type Dialect string

// The dialects, by the names that reviews use.
const (
	OpenAIChat        Dialect = "openai-chat"
	OpenAIResponses   Dialect = "openai-responses"
	AnthropicMessages Dialect = "anthropic-messages"
	GeminiContents    Dialect = "gemini-contents"
)

// Dialects returns all of them, in a fixed order.
func Dialects() []Dialect {
	return []Dialect{OpenAIChat, OpenAIResponses, AnthropicMessages, GeminiContents}
}

// Transport is the router's name of a dialect's wire protocol; "" for an unknown dialect.
func (d Dialect) Transport() string {
	switch d {
	case OpenAIChat:
		return router.TransportOpenAIChatCompletions
	case OpenAIResponses:
		return router.TransportOpenAIResponses
	case AnthropicMessages:
		return router.TransportAnthropicMessages
	case GeminiContents:
		return router.TransportGeminiGenerateContent
	}
	return ""
}

// Span is a range of bytes of a body: from Start up to, and not including, End.
type Span struct{ Start, End int }

// Len is the number of bytes.
func (s Span) Len() int { return s.End - s.Start }

// Request is a body taken apart. Spans refer to the bytes that were scanned.
type Request struct {
	Dialect Dialect
	// Model is the body's own; Gemini names it in the path, and leaves it empty.
	Model string
	// ModelValue is the JSON value of the member that names the model; empty where none does.
	ModelValue Span
	// SecondModel is that of another member that names it, as a request within one of
	// Gemini's countTokens does; mostly empty.
	SecondModel Span
	// MaxOutputTokens is what the body asks for; 0 when it says nothing.
	MaxOutputTokens int64
	// Turns are in the order of their bytes. Instructions that stand outside the
	// conversation are a turn of the role System where the dialect gives them parts.
	Turns []Turn
	// Images are all of the request, in the order of their bytes.
	Images []Image
	// OtherMedia counts parts that are neither text nor image, in whatever form
	// (documents, audio, video, generated images): what they cost is not known.
	OtherMedia int
	// TextBytes counts everything that a model reads as text: instructions, texts,
	// calls, results, tools and their schemas; no image data. It counts bytes of
	// UTF-8 after unescaping, without the white space between JSON's tokens.
	TextBytes int64
	// Stateful says that the conversation goes on from one that the vendor keeps:
	// what was said there is not in the body.
	Stateful bool
	// Previous is the id of the response or conversation that it goes on from; ""
	// where the body names none.
	Previous string
	// References are the ids of earlier items that stand in the body by reference alone.
	References []string
	// Calls are the assistant's calls of tools that the client answers, and Results
	// the answers, both in the order of their bytes.
	Calls   []Call
	Results []Result
	// Texts are what humans wrote, in the order of their bytes.
	Texts []Text
	// Signatures are of the assistant's reasoning, in the order of their bytes.
	Signatures []Signature

	ways []link // see Request.ID
}

// Turn is one message of the conversation, in order; in OpenAI Responses, one item.
type Turn struct {
	Role Role
	// ToolResults says that the turn is made of tool results alone, whatever its
	// role on the wire: nobody human said it.
	ToolResults bool
	// Signed says that the turn is the assistant's and holds one of Signatures.
	Signed bool
	// Span is the JSON value of the message or item.
	Span Span
	// TextBytes is the turn's share of Request.TextBytes.
	TextBytes int64
}

// Human reports whether a human said it: a user's turn that is not made of tool
// results alone.
func (t *Turn) Human() bool { return t.Role == User && !t.ToolResults }

// Role is who speaks.
type Role string

// The roles. A wire's developer and system are System; its tool and function are
// Tool; Gemini's model is Assistant, and a content without a role is User.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
	// Nobody is a role that is missing or not known.
	Nobody Role = ""
)

// Image is one image part of a request.
type Image struct {
	// Turn is the index in Request.Turns.
	Turn int
	// Part is the whole JSON value of the part, in whose place a text part may
	// stand: see Request.TextPart.
	Part Span
	// Data is the base64 text of inline data, without quotes and without a data
	// URL's head; empty for the other sources. Reader decodes it.
	Data Span
	// DataBytes is how long that text is as the vendor gets it, without escapes: what
	// limits on base64 count.
	DataBytes int
	// Escaped says that Data has JSON escapes in it ("\/"), so that its bytes are
	// not base64 before they are unescaped; Reader does that.
	Escaped bool
	Source  Source
	// Why is a short clause that says what is wrong with an Unknown source.
	Why string
	// Unread says that an Unknown source holds what some server may take for
	// data: a data URL in a form that is not read, or text without a scheme, which
	// several decode as bare base64. Nothing can be said of such an image.
	Unread bool
	// MediaType is the declared one, lower case and without parameters; "" when none is.
	MediaType string
	// Detail is the vendor's word for the resolution, lower case and, for Gemini,
	// without MEDIA_RESOLUTION_; "" when none is given. Where the request has one
	// for all of its images, it is theirs.
	Detail string
	// InToolResult says that the part stands within a tool's result, and CallID
	// which call it answers, when the wire says so.
	InToolResult bool
	CallID       string
	// Result is the index in Request.Results of the result that the part stands
	// within; -1 when it stands in none.
	Result int
	// InError says that the tool's result is marked as an error; Anthropic takes
	// nothing but text there.
	InError bool
	// Fixed says that no text may stand in the part's place: the result of a
	// computer call is a screenshot.
	Fixed bool
	// Facts are set when the sender replaced the data by facts about it.
	Facts *Facts

	way   way
	kept  Span // a member's JSON value that TextPart keeps; empty when there is none
	boxed bool // in the parts of a Gemini function's response
}

// Source is where an image's bytes are.
type Source string

// The sources.
const (
	Inline  Source = "inline"  // base64 in the body
	Remote  Source = "remote"  // a URL that the vendor fetches; we never do
	FileID  Source = "file"    // a file at the vendor
	AsFacts Source = "facts"   // the sender told facts in place of data
	Unknown Source = "unknown" // a form that is not known, or is malformed
)

// MaxHead is the most that Facts.Head may be, in bytes.
const MaxHead = 64 << 10

// Facts stand in the place of an image's data in the facts form of a review:
//
//	{"sha256": 64 hexadecimal digits, "bytes": raw size, "mediaType"?: …, "head"?: base64 of at most 64 KiB}
//
// Where that place is, each dialect has one rule; the part around it stays:
//
//   - OpenAI chat: the object is the value of image_url.url, beside detail; or of
//     image_url itself, and may then hold detail too.
//   - OpenAI Responses: the object is the value of image_url.
//   - Anthropic: the object is the value of source, with "type":"facts".
//   - Gemini: the object is the value of inlineData (inline_data), and may hold
//     displayName too.
//
// Other members are skipped. sha256 and bytes are of the decoded image.
type Facts struct {
	// SHA256 is in lower case.
	SHA256    string `json:"sha256"`
	Bytes     int64  `json:"bytes"`
	MediaType string `json:"mediaType,omitempty"`
	// Head is the image's first bytes, as they are.
	Head []byte `json:"head,omitempty"`
}

// Required reports whether an image of the request is one that the model was
// asked about, and may not be left out: those of the newest human message (a
// user's turn that is not made of tool results alone), and those in results of
// tools that answer the newest assistant message. After an assistant message
// that comes last (a prefill, a pause), nothing answers it yet.
func (r *Request) Required(image int) bool {
	human, assistant := r.newest()
	i := &r.Images[image]
	return i.Turn == human || i.InToolResult && i.Turn > assistant
}

// newest finds the newest turn of a human and of the assistant, -1 when there is none.
func (r *Request) newest() (human, assistant int) {
	human, assistant = -1, -1
	for i := len(r.Turns) - 1; i >= 0 && (human < 0 || assistant < 0); i-- {
		switch t := &r.Turns[i]; {
		case human < 0 && t.Human():
			human = i
		case assistant < 0 && t.Role == Assistant:
			assistant = i
		}
	}
	return human, assistant
}
