// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package message reads the bodies of model requests, one file per dialect, and
// says where in their bytes the turns and images stand. It is pure, decodes no
// image, and changes nothing: whoever degrades or adds an image edits the byte
// ranges it gives, and every other byte stays as the client sent it.
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

// Transport is the router's name of a dialect's wire protocol; "" for an unknown dialect.
func (d Dialect) Transport() string {
	return map[Dialect]string{
		OpenAIChat: router.TransportOpenAIChatCompletions, OpenAIResponses: router.TransportOpenAIResponses,
		AnthropicMessages: router.TransportAnthropicMessages, GeminiContents: router.TransportGeminiGenerateContent,
	}[d]
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
	// MaxOutputTokens is what the body asks for; 0 when it says nothing.
	MaxOutputTokens int64
	Turns           []Turn
	// Images are all of the request, in the order of their bytes.
	Images []Image
	// TextBytes counts everything that a model reads as text: instructions, texts,
	// calls, results, tools and their schemas; no image data.
	TextBytes int64
}

// Turn is one message of the conversation, in order.
type Turn struct {
	Role Role
	// ToolResults says that the turn is made of tool results alone, whatever its
	// role on the wire: nobody human said it.
	ToolResults bool
	Span        Span
}

// Role is who speaks.
type Role string

// The roles. A wire's developer and system are System; its tool and function are Tool.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Image is one image part of a request.
type Image struct {
	// Turn is the index in Request.Turns.
	Turn int
	// Part is the whole JSON value of the part, in whose place a text part may stand.
	Part Span
	// Data is the base64 text of inline data, without quotes and without a data
	// URL's head; empty for the other sources.
	Data   Span
	Source Source
	// MediaType is the declared one, lower case and without parameters; "" when none is.
	MediaType string
	// Detail is the vendor's word for the resolution, lower case; "" when none is given.
	Detail string
	// InToolResult says that the part stands within a tool's result, and CallID
	// which call it answers, when the wire says so.
	InToolResult bool
	CallID       string
	// Facts are set when the sender replaced the data by facts about it.
	Facts *Facts
}

// Source is where an image's bytes are.
type Source string

// The sources.
const (
	Inline  Source = "inline"  // base64 in the body
	Remote  Source = "remote"  // a URL that the vendor fetches; we never do
	FileID  Source = "file"    // a file at the vendor
	AsFacts Source = "facts"   // the sender told facts in place of data
	Unknown Source = "unknown" // a form that is not known
)

// Facts stand in the place of an image's data in the facts form of a review:
// {"sha256":…,"bytes":…,"mediaType":…,"head":base64 of at most 64 KiB}.
type Facts struct {
	SHA256    string `json:"sha256"`
	Bytes     int64  `json:"bytes"`
	MediaType string `json:"mediaType,omitempty"`
	// Head is the image's first bytes, as they are.
	Head []byte `json:"head,omitempty"`
}
