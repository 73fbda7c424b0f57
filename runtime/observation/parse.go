// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// MaxReply is the longest reply that Parse looks at, in bytes. A full page of
// text with a box around every line stays under a tenth of it.
const MaxReply = 1 << 20

// maxAttempts bounds the braces at which Parse tries to find the object, so
// that a reply of nothing but openings costs no more than another.
const maxAttempts = 256

// observationType is the only accepted value of "type".
const observationType = "visual_observation"

// ParseReason says why a reply is no observation: a stable CamelCase word.
type ParseReason string

const (
	// EmptyReply: nothing but white space.
	EmptyReply ParseReason = "EmptyReply"
	// ReplyTooLarge: more than MaxReply bytes.
	ReplyTooLarge ParseReason = "ReplyTooLarge"
	// NoJSON: text without any JSON object.
	NoJSON ParseReason = "NoJSON"
	// IncompleteJSON: an object that the reply does not finish, as when the
	// output limit is too low.
	IncompleteJSON ParseReason = "IncompleteJSON"
	// InvalidJSON: something that begins like an object and is none.
	InvalidJSON ParseReason = "InvalidJSON"
	// WrongType: "type" is not "visual_observation".
	WrongType ParseReason = "WrongType"
	// WrongSchema: "schema" is not Schema.
	WrongSchema ParseReason = "WrongSchema"
	// BlankSummary: "summary" is missing, blank or not a string.
	BlankSummary ParseReason = "BlankSummary"
)

// parseProblems are the sentences of the reasons.
var parseProblems = map[ParseReason]string{
	EmptyReply:     "it is empty",
	ReplyTooLarge:  "it is longer than an observation may be",
	NoJSON:         "it did not contain JSON",
	IncompleteJSON: "its JSON object is incomplete",
	InvalidJSON:    "its JSON is invalid",
	WrongType:      `its "type" is not "visual_observation"`,
	WrongSchema:    `its "schema" is not "` + Schema + `"`,
	BlankSummary:   `its "summary" is blank`,
}

// ParseError is a reply that is no observation. It never quotes the reply.
type ParseError struct{ Reason ParseReason }

// Error says what is wrong with the reply.
func (e *ParseError) Error() string {
	return "parsing the model's observation: " + parseProblems[e.Reason]
}

// Parse reads a model's reply as an observation of ref, made for prompt by by.
//
// It is strict on what makes an observation (type, schema, a summary) and
// lenient on the rest, because models deviate there: fences and prose around
// the object are stepped over; a list may be an object or a string instead, and
// anything else in its place is an empty list. A reference id or prompt in the
// reply is ignored. Over-long lists and texts are cut to MaxObservation and the
// bounds beside it, and the uncertainties say so. Errors are *ParseError.
func Parse(reply string, ref *Reference, prompt string, by GeneratedBy) (*Observation, error) {
	object, reason := find(reply)
	if reason != "" {
		return nil, &ParseError{Reason: reason}
	}
	if object["type"] != observationType {
		return nil, &ParseError{Reason: WrongType}
	}
	if object["schema"] != Schema {
		return nil, &ParseError{Reason: WrongSchema}
	}
	summary, _ := object["summary"].(string)
	if summary = strings.TrimSpace(summary); summary == "" {
		return nil, &ParseError{Reason: BlankSummary}
	}
	c := cutter{room: MaxObservation}
	o := &Observation{
		Type: observationType, Schema: Schema, VisualReferenceID: ref.ID, Prompt: prompt, GeneratedBy: by, Notice: Notice,
	}
	// In the order in which they take of the room that there is.
	o.Summary = c.summary(summary)
	o.Uncertainties = c.uncertainties(object["uncertainties"])
	o.OCR = c.entries("ocr", object["ocr"], "text")
	o.Elements = c.entries("elements", object["elements"], "description")
	o.Relations = c.entries("relations", object["relations"], "description")
	o.Issues = c.entries("issues", object["issues"], "description")
	o.ExternalSources = c.entries("external_sources", object["external_sources"], "description")
	o.Uncertainties = append(o.Uncertainties, c.notes()...)
	return o, nil
}

// find returns the object that the reply is, or holds among fences and prose:
// the first that says it is an observation, else the first of any.
//
// It decodes at each opening brace in turn, so that braces within strings mean
// nothing. After a syntax error it goes on from the offending byte; an
// unfinished object is the last that is tried.
func find(reply string) (map[string]any, ParseReason) {
	switch {
	case len(reply) > MaxReply:
		return nil, ReplyTooLarge
	case strings.TrimSpace(reply) == "":
		return nil, EmptyReply
	}
	var first map[string]any
	reason := NoJSON
	rest := reply
	for range maxAttempts {
		brace := strings.IndexByte(rest, '{')
		if brace < 0 {
			break
		}
		rest = rest[brace:]
		object, used, failure := decode(rest)
		if failure == "" && object["type"] == observationType {
			return object, ""
		}
		if failure == "" && first == nil {
			first = object
		}
		if failure != "" {
			reason = failure
		}
		rest = rest[used:]
	}
	if first != nil {
		return first, ""
	}
	return nil, reason
}

// decode reads the object that s begins with, and says how many bytes of s
// need not be looked at again: at least one.
func decode(s string) (object map[string]any, used int, failure ParseReason) {
	decoder := json.NewDecoder(strings.NewReader(s))
	err := decoder.Decode(&object)
	if err == nil {
		return object, int(decoder.InputOffset()), ""
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, len(s), IncompleteJSON // what is nested in it is not the answer
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, min(max(int(syntax.Offset)-1, 1), len(s)), InvalidJSON
	}
	return nil, max(int(decoder.InputOffset()), 1), InvalidJSON // a number out of range
}
