// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

// Call is one call of a tool that the assistant made and that the client
// answers. Calls that the vendor's own servers answer are none.
type Call struct {
	// Turn is the index in Request.Turns.
	Turn int
	// ID is the vendor's; "" where the wire gives none.
	ID string
	// Name is the tool's.
	Name string
	// Span is the JSON value of the call: an element of tool_calls, an item, a
	// block, or the value of functionCall.
	Span Span
	// Arguments is the JSON value that holds the arguments: an object, or a string
	// with an object's JSON in it; empty where there are none.
	Arguments Span

	unnumbered bool // the wire has no ids, and its result is found by Name
	way        way
}

// Result is the answer to a call.
type Result struct {
	// Turn is the index in Request.Turns.
	Turn int
	// Call is the index in Request.Calls of the call that is answered: one of the
	// assistant's turns right before the result; -1 when the body has none. Several
	// results may answer the same call.
	Call int
	// CallID is as the result says it; "" where the wire gives none. Name is the
	// tool's, where the result says it (Gemini).
	CallID, Name string
	// Object is the JSON object that holds the result: a message, an item, a block,
	// or the value of functionResponse. Its last byte is the closing brace.
	Object Span
	// Content is the JSON value of the result's content: what image parts are put
	// into. OpenAI's and Anthropic's content or output, a string or an array; the
	// parts of Gemini's functionResponse; there and in Responses it may be an object,
	// the one part. Empty where the member is not there or is null.
	Content Span
	// Null is the null that stands where Content would: it is replaced, as a second
	// member of that name would be one too many. Empty otherwise.
	Null Span
	// Part is the part of a Gemini content that holds Object, and Parts that
	// content's whole array of parts, or Part again where that is the one part in the
	// place of an array; both empty in other dialects.
	Part, Parts Span
	// IsError says that the result is marked as an error.
	IsError bool
	// Takes says that image parts may be put into it: those of computer, shell and
	// patch calls, and of chat's older functions, take none, and nothing is put into
	// content of a type that the dialect does not have.
	Takes bool

	unnumbered bool // as in Call
	way        way
}

// Text is one piece of text that a human wrote: of a user's turn that is not made
// of tool results alone.
type Text struct {
	// Turn is the index in Request.Turns.
	Turn int
	// Value is the JSON string.
	Value Span
	// Part is the JSON value of the part that holds it; where the content is a bare
	// string, that string itself.
	Part Span

	way way
}

// Signature is a piece of the assistant's reasoning that its vendor has signed: it
// holds for the conversation before it, as that was sent.
type Signature struct {
	// Turn is the index in Request.Turns.
	Turn int
	// Span is what is left out to drop it: the whole thinking or redacted_thinking
	// block (Anthropic), the whole reasoning item with encrypted content (OpenAI
	// Responses), or the JSON string of thoughtSignature (Gemini), which is replaced.
	// An empty signature is none.
	Span Span
}
