// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"io"
)

// Kind is what names an image in a conversation.
type Kind string

// The kinds.
const (
	// Called: a call of a vision tool.
	Called Kind = "Called"
	// Markdown: an image of Markdown in a human's message.
	Markdown Kind = "Markdown"
)

// State is what is to become of a sight.
type State string

// The states.
const (
	// Wanted: its image is to be shown.
	Wanted State = "Wanted"
	// ShownByTool: the call's own result holds an image part already.
	ShownByTool State = "ShownByTool"
	// ShownInConversation: a part with the same bytes stands between the call and
	// the assistant's next turn. Only Settle tells it.
	ShownInConversation State = "ShownInConversation"
	// Old: the policy keeps images for the current turn, and a human has spoken since.
	Old State = "Old"
	// ErrorResult: the result is marked as an error, and takes text only.
	ErrorResult State = "ErrorResult"
	// NoPath: the call's arguments name no file.
	NoPath State = "NoPath"
)

// Sight is a place of a conversation at which an image is to be shown.
type Sight struct {
	// ID names it in decision records: a call as "messages[3].tool_calls[0]", a
	// result whose call is not in the body as "input[0]", the first Markdown image
	// of a text as "messages[0].content[1]#0".
	ID   string
	Kind Kind
	// Turn is the index in Request.Turns of the turn in which its image stands, or
	// behind which it is put: that of its result (InToolResult), the last turn of
	// results of its step, or the human's turn.
	Turn int
	// Call, Result and Text are indices in the request's lists, -1 when there is none.
	Call, Result, Text int
	// Tool and CallID are the call's; "" for Markdown.
	Tool, CallID string
	// Path is what the call or the text names, at most MaxPath bytes.
	Path string
	// Prompt is the call's "prompt" argument, or what the Markdown says of its image.
	Prompt string
	// Key names what is shown here, in every request of the conversation: 64
	// hexadecimal digits.
	Key string
	// Weak says that another conversation may have the same key.
	Weak bool
	// Fresh says that no turn of the assistant comes after it: it may be shown for
	// the first time now.
	Fresh bool
	// SHA256 is the digest that the bytes must have, as our own ViewImage's result
	// tells it; "" when it does not.
	SHA256 string
	// OCR is what that result says was read from the image; "" where no template
	// asks for it. It is not to be trusted.
	OCR   string
	State State
}

// Skip says why something that names an image is no sight.
type Skip struct{ ID, Reason string }

// Reasons of a Skip.
const (
	// SkipUnanswered: not every call that the step waits for has its answer.
	SkipUnanswered = "CallsUnanswered"
	// SkipMissingID: a call of the step has no id, so that its answer cannot be told.
	SkipMissingID = "MissingCallID"
	// SkipNotVisible: the answered call is none of the body, and is not known.
	SkipNotVisible = "CallNotVisible"
	// SkipRemote: the Markdown names a URL, which is not fetched.
	SkipRemote = "RemoteImage"
	// SkipEscapes: its path leads out of where it begins.
	SkipEscapes = "PathEscapes"
	// SkipMalformed: its path is empty, too long, or holds a NUL byte or bytes that are not UTF-8.
	SkipMalformed = "PathMalformed"
	// SkipOtherRoot: it is a workspace:// URI, and there is no such workspace here.
	SkipOtherRoot = "WorkspaceUnknown"
	// SkipTooMany: the text, or the conversation, names more images than are looked
	// at: the first ones are.
	SkipTooMany = "TooManyImages"
	// SkipTooLong: the text is longer than what is searched for images.
	SkipTooLong = "TextTooLong"
	// SkipTakesNone: the result takes no image, and that is where images go.
	SkipTakesNone = "ResultTakesNoImage"
)

// Plan is what is to be shown in one request.
type Plan struct {
	// Place is one of router's ToolImages values: where images of calls are put.
	Place string
	// Sights are in the order of their placement: by turn, and within one turn those
	// of calls in the order of its results (InToolResult) and then Markdown's, or
	// Markdown's and then, behind the turn, those of the step's calls in their order.
	Sights []Sight
	Skips  []Skip

	rules *Rules
	turns turns
}

// Picture is an image that was found.
type Picture struct {
	// SHA256 is of its bytes, in lower-case hexadecimal.
	SHA256 string
	// MediaType is that of its bytes, such as "image/png".
	MediaType string
	// Width and Height are in stored pixels, 0 when not known.
	Width, Height int
	// Size is the number of bytes of Data.
	Size int64
	Data io.ReaderAt
}

// Shown is what a sight shows: an image, or one text.
type Shown struct {
	// Picture is nil where Text stands alone.
	Picture *Picture
	Text    string
	// Constant says that Text stands as it is, such as a note of preflight or an
	// observation, and that the image was resolvable.
	Constant bool
}

// Known finds a call of a conversation that the vendor keeps, by its id. A nil
// Known knows none.
type Known func(callID string) (KnownCall, bool)

// KnownCall is a call as the assistant made it.
type KnownCall struct {
	ID, Name string
	// Arguments is the JSON text of an object.
	Arguments string
}
