// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// Reason is why bytes are not what they should be: a stable CamelCase word.
type Reason string

// The reasons.
const (
	// UnknownDialect: Scan was asked for a dialect that it does not read.
	UnknownDialect Reason = "UnknownDialect"
	// NotJSON: the body breaks JSON's grammar (RFC 8259) at Offset, or ends there.
	NotJSON Reason = "NotJSON"
	// NotAnObject: the body is some other JSON value.
	NotAnObject Reason = "NotAnObject"
	// TooDeep: more than MaxDepth objects and arrays stand within each other.
	TooDeep Reason = "TooDeep"
	// TooMany: there are more than MaxTurns turns, more than MaxImages
	// images, or more than MaxParts calls, results, texts, signatures or references.
	TooMany Reason = "TooMany"
	// WrongType: the value at Path has a type that no request of the dialect has there.
	WrongType Reason = "WrongType"
	// Missing: the member at Path, without which a body is no request, is not there.
	Missing Reason = "Missing"
	// DuplicateMember: an object has a member that matters twice; see Scan.
	DuplicateMember Reason = "DuplicateMember"
	// BadFacts: the object that stands for an image's data does not tell its facts.
	BadFacts Reason = "BadFacts"
	// BadBase64: the data at Offset is not base64; only Reader gives it.
	BadBase64 Reason = "BadBase64"
	// BadEdit: an edit stands outside the body or in another edit, or its data has
	// no size that can be; only Splice gives it.
	BadEdit Reason = "BadEdit"
	// ShortData: the data of an edit ends before its size, or cannot be read (see
	// Cause); only the reader of a Spliced gives it.
	ShortData Reason = "ShortData"
)

var sentences = map[Reason]string{
	UnknownDialect:  "the dialect is not known",
	NotJSON:         "it is not JSON",
	NotAnObject:     "it is not a JSON object",
	TooDeep:         fmt.Sprintf("values are nested more than %d deep", MaxDepth),
	TooMany:         fmt.Sprintf("there are more than %d turns, %d images or %d of anything else", MaxTurns, MaxImages, MaxParts),
	WrongType:       "the value has the wrong type",
	Missing:         "the member is missing",
	DuplicateMember: "the member is there twice",
	BadFacts:        "the facts of an image need sha256 (64 hexadecimal digits), bytes (at least 1) and, if given, mediaType and a head of at most 64 KiB in base64",
	BadBase64:       "the data is not base64",
	BadEdit:         "an edit stands outside the body or in another one, or its data has no size",
	ShortData:       "the data that is put there ends before its size, or cannot be read",
}

// Error is the one error of this package. It holds no byte of the body.
type Error struct {
	Reason Reason
	// Offset is the byte of the body at which the reading stopped.
	Offset int
	// Path is where, such as "messages[3].content"; "" for the body itself.
	Path string
	// Cause is what failed beneath, where something did.
	Cause error
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Error gives the place and the reason.
func (e *Error) Error() string {
	doing := "reading the request"
	switch e.Reason {
	case BadBase64:
		doing = "decoding an image"
	case BadEdit, ShortData:
		doing = "splicing the request"
	}
	if e.Path != "" {
		doing += " at " + e.Path
	}
	return fmt.Sprintf("%s (byte %d): %s", doing, e.Offset, sentences[e.Reason])
}

// Fault is the refusal of a request for this error.
func (e *Error) Fault() *fault.Fault {
	f := fault.New(fault.InvalidToolInput, string(e.Reason), "%s", e.Error()).Because(e).With("offset", e.Offset)
	if e.Path != "" {
		f.With("field", e.Path)
	}
	return f
}
