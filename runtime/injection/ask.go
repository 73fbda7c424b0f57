// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// ListDialect names messages as frameworks of LangChain's kind hold them; see List.
const ListDialect message.Dialect = "langchain-messages"

// Ask is the question of who owns a loop: what is to be changed in its messages.
type Ask struct {
	Dialect message.Dialect
	// Model is a route or a name; "" where the caller tells none.
	Model string
	// Messages are where the array stands in the bytes that were read.
	Messages message.Span
	// Viewed is the state of viewed images with its updates in; nil where none was told.
	Viewed Viewed
	// Cleared says that an update emptied the state before others.
	Cleared bool
}

// MostUpdates bounds the list of a state and its updates.
const MostUpdates = 1_000

// longestModel bounds a model's name, in bytes.
const longestModel = 8 << 10

// ReadAsk reads a question:
//
//	{"dialect": "openai-chat", "messages": […], "model"?: "…", "viewedImages"?: {…} or [{…}, …]}
//
// messages is what stands as messages, input or contents in a request of the
// dialect, which is one of message.Dialects or ListDialect; viewedImages is a state
// as ReadViewed has it, or a list of one and of its updates, in order. What stands
// within messages is left to who reads them. An error is an *AskError.
func ReadAsk(data []byte) (*Ask, error) {
	start := skipSpace(data, 0)
	if !json.Valid(data) {
		return nil, &AskError{Reason: AskNotJSON, Problem: fmt.Sprintf("it is not JSON from byte %d on", offsetOf(data))}
	}
	if data[start] != '{' {
		return nil, &AskError{Reason: AskWrongType, Problem: "it is no object"}
	}
	a := &Ask{}
	seen := map[string]bool{}
	for name, m := range membersOf(data, message.Span{Start: start, End: len(data)}) {
		if seen[name] {
			return nil, &AskError{Reason: AskTwice, At: name, Problem: "it is there twice"}
		}
		seen[name] = true
		if err := a.read(data, name, m.value); err != nil {
			return nil, err
		}
	}
	switch {
	case a.Dialect == "":
		return nil, &AskError{Reason: AskMissing, At: "dialect", Problem: "it is not there"}
	case a.Dialect != ListDialect && !slices.Contains(message.Dialects(), a.Dialect):
		return nil, &AskError{Reason: AskDialect, At: "dialect", Problem: "there is no such dialect"}
	case a.Messages.Len() == 0:
		return nil, &AskError{Reason: AskMissing, At: "messages", Problem: "it is not there"}
	}
	return a, nil
}

// read reads one member.
func (a *Ask) read(b []byte, name string, v message.Span) error {
	wrong := func(problem string) error { return &AskError{Reason: AskWrongType, At: name, Problem: problem} }
	switch name {
	case "dialect", "model":
		if kindOf(b, v) == 'n' && name == "model" {
			return nil
		}
		if kindOf(b, v) != '"' || v.Len() > longestModel {
			return wrong(fmt.Sprintf("it is no text of at most %d bytes", longestModel))
		}
		if name == "model" {
			a.Model = stringOf(b, v)
		} else {
			a.Dialect = message.Dialect(stringOf(b, v))
		}
	case "messages":
		if kindOf(b, v) != '[' {
			return wrong("it is no array")
		}
		a.Messages = v
	case "viewedImages":
		return a.readViewed(b, v)
	default:
		const most = 200 // a name that is not known may be anything
		return &AskError{Reason: AskUnknown, At: name[:min(len(name), most)], Problem: "there is no such member"}
	}
	return nil
}

// readViewed reads the state and what changes it.
func (a *Ask) readViewed(b []byte, v message.Span) error {
	updates := []message.Span{v}
	switch kindOf(b, v) {
	case 'n':
		return nil
	case '[':
		updates = updates[:0]
		for _, e := range elementsOf(b, v) {
			if len(updates) == MostUpdates {
				return &AskError{Reason: AskViewed, At: "viewedImages", Problem: fmt.Sprintf("it has more than %d updates", MostUpdates)}
			}
			updates = append(updates, e)
		}
	}
	state := Viewed{}
	for _, at := range updates {
		u, err := ReadViewed(b[at.Start:at.End])
		if err == nil {
			state, err = state.Merge(u)
		}
		if err != nil {
			return &AskError{Reason: AskViewed, At: "viewedImages", Problem: err.Error(), Cause: err}
		}
		a.Cleared = a.Cleared || u.Clear
	}
	a.Viewed = state
	return nil
}

// wrappers are what stands before the messages in a request of a dialect: all are
// as long as `{"messages":`, which is the least that stands before them in an Ask.
var wrappers = map[message.Dialect]string{
	message.OpenAIChat: `{"messages":`, message.OpenAIResponses: `{   "input":`,
	message.AnthropicMessages: `{"messages":`, message.GeminiContents: `{"contents":`,
}

// Wrapped is how many bytes stand before the messages in what Wrap makes.
const Wrapped = len(`{"messages":`)

// Wrap makes a request of the messages, without a copy of them: it overwrites what
// stands beside them in data, from which the question was read. Nil for a dialect
// that is no vendor's.
func (a *Ask) Wrap(data []byte) []byte {
	head, known := wrappers[a.Dialect]
	if !known {
		return nil
	}
	copy(data[a.Messages.Start-Wrapped:], head)
	data[a.Messages.End] = '}' // at the least the question's own stands there
	return data[a.Messages.Start-Wrapped : a.Messages.End+1]
}

// AskReason is why a question cannot be read: a stable CamelCase word.
type AskReason string

// The reasons.
const (
	AskNotJSON   AskReason = "NotJSON"
	AskWrongType AskReason = "WrongType"
	AskMissing   AskReason = "Missing"
	AskTwice     AskReason = "DuplicateMember"
	AskUnknown   AskReason = "UnknownMember"
	AskDialect   AskReason = "UnknownDialect"
	AskViewed    AskReason = "ViewedImagesMalformed"
)

// AskError says what is wrong with a question. It holds no message and no image data.
type AskError struct {
	Reason AskReason
	// At is the member; "" for the whole.
	At string
	// Problem is a clause.
	Problem string
	Cause   error
}

// Error gives the member and the problem.
func (e *AskError) Error() string {
	if e.At == "" {
		return "reading the request for injection: " + e.Problem
	}
	return fmt.Sprintf("reading the request for injection at %q: %s", e.At, e.Problem)
}

// Unwrap is the cause; nil when there is none.
func (e *AskError) Unwrap() error { return e.Cause }
