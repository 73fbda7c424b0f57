// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
)

// Bounds of what a review says beside the body, in bytes.
const (
	maxUID  = 256
	maxText = 8 << 10
)

// Written is a response as it is sent:
//
//	{"apiVersion": …, "kind": "VisionReview", "response": {…}}
//
// edits are those of Inject's patch, in any order, and nil where nothing is put in:
// their images are read as the answer is.
func Written(r *Response, edits []message.Edit) (*message.Spliced, error) {
	pieces := []message.Segment{{Text: []byte(`{"apiVersion":"` + APIVersion + `","kind":"` + Kind + `","response":`)}}
	if len(edits) == 0 {
		pieces = append(pieces, message.Segment{Text: compact(r)})
	} else {
		r.PatchType = ByteRanges
		pieces = append(pieces, message.Segment{Text: bytes.TrimSuffix(compact(r), []byte("}"))}, message.Segment{Text: []byte(`,"patch":`)})
		pieces = append(append(pieces, message.ByteRanges(edits, 0)...), message.Segment{Text: []byte("}")})
	}
	return message.Splice(nil, []message.Edit{{Segments: append(pieces, message.Segment{Text: []byte("}\n")})}})
}

// ReadEnvelope reads a VisionReview:
//
//	{"apiVersion"?: …, "kind"?: "VisionReview", "request": {uid, dialect, method,
//	 path, model, profile, operation, dryRun, patchTypes, body}}
//
// Its body is the model request: a JSON object, whose bytes count as they stand
// in data, from its brace; or a string that holds the request's text, whose
// bytes count after unescaping, which is done in place. The Request keeps data.
//
// Members that are not known are warned of. The error is a *fault.Fault.
func ReadEnvelope(data []byte) (*Request, error) {
	c := cursor{b: data}
	all, ok := c.members()
	if !ok || !once(all) || c.peek() != 0 || c.i < len(data) {
		return nil, notAnEnvelope()
	}
	req := &Request{}
	var inner *message.Span
	for i := range all {
		value := data[all[i].value.Start:all[i].value.End]
		switch name := all[i].name; name {
		case "apiVersion", "kind":
			want := map[string]string{"apiVersion": APIVersion, "kind": Kind}[name]
			var said string
			if json.Unmarshal(value, &said) != nil || said != want {
				return nil, malformed(name, "WrongType", "%s is not %q", name, want)
			}
		case "request":
			inner = &all[i].value
		default:
			if err := req.ignore("", name, value); err != nil {
				return nil, err
			}
		}
	}
	if inner == nil {
		return nil, malformed("request", "Missing", "it has no request").
			Hint(`Send {"request": {"path": …, "body": {…}}}, or the model request itself as body with ?path=… in the address.`)
	}
	return req, req.read(data, *inner)
}

func notAnEnvelope() *fault.Fault {
	return malformed("request", "NotAnObject", "it is not one JSON object with each member once").
		Hint(`Send {"request": {"path": …, "body": {…}}}.`)
}

// read reads the member request of an envelope.
func (r *Request) read(data []byte, span message.Span) error {
	c := cursor{b: data[:span.End], i: span.Start}
	all, ok := c.members()
	if !ok || !once(all) || c.i != span.End {
		return malformed("request", "NotAnObject", "request is not a JSON object with each member once")
	}
	for _, m := range all {
		value := data[m.value.Start:m.value.End]
		if m.name == "body" {
			if err := r.readBody(value); err != nil {
				return err
			}
			continue
		}
		into, known := r.fields()[m.name]
		if !known {
			if err := r.ignore("request.", m.name, value); err != nil {
				return err
			}
			continue
		}
		if err := json.Unmarshal(value, into); err != nil {
			return malformed("request."+m.name, "WrongType", "request.%s has the wrong type", m.name)
		}
	}
	return r.check()
}

// fields are where the members of request go.
func (r *Request) fields() map[string]any {
	return map[string]any{
		"uid": &r.UID, "dialect": &r.Dialect, "method": &r.Method, "path": &r.Path, "model": &r.Model, "profile": &r.Profile,
		"operation": &r.Operation, "dryRun": &r.DryRun, "patchTypes": &r.PatchTypes,
	}
}

// mostWarnings bounds how many members that are not known are named.
const mostWarnings = 8

// ignore passes a member that is not known.
func (r *Request) ignore(in, name string, value []byte) error {
	if !json.Valid(value) {
		return notAnEnvelope()
	}
	if len(r.Warnings) < mostWarnings {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the review's %q is not known and was ignored", in+clip(name)))
	}
	return nil
}

// check holds the parts of a review against their bounds.
func (r *Request) check() error {
	if len(r.UID) > maxUID {
		return malformed("uid", "TooLong", "uid has more than %d bytes", maxUID)
	}
	for name, text := range map[string]string{
		"dialect": string(r.Dialect), "method": r.Method, "path": r.Path, "model": r.Model, "profile": r.Profile, "operation": string(r.Operation),
	} {
		if len(text) > maxText {
			return malformed(name, "TooLong", "%s has more than %d bytes", name, maxText)
		}
	}
	if r.Body == nil && methods[strings.ToUpper(r.Method)] {
		return malformed("body", "Missing", "it has no body")
	}
	return nil
}

// readBody takes the body as it stands, or what a string holds.
func (r *Request) readBody(value []byte) error {
	switch value[0] {
	case '{':
		r.Body = value
	case '"':
		text, ok := unquoted(value)
		if !ok {
			return malformed("request.body", "NotJSON", "request.body has an escape that JSON has not")
		}
		r.Body = text
	case 'n': // null is not there
		if string(value) != "null" {
			return notAnEnvelope()
		}
	default:
		return malformed("request.body", "WrongType", "request.body is neither a JSON object nor a string that holds one")
	}
	return nil
}

// unquoted is what a JSON string holds, given with its quotes. It is written over
// the string, run by run between escapes, none of which is shorter than what it
// stands for: bodies are long and mostly without.
func unquoted(value []byte) ([]byte, bool) {
	out := value[1:1]
	rest := value[1 : len(value)-1]
	for len(rest) > 0 {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 {
			at = len(rest)
		}
		out = append(out, rest[:at]...)
		if rest = rest[at:]; len(rest) == 0 {
			break
		}
		if len(rest) < 2 {
			return nil, false
		}
		if plain, ok := escapes[rest[1]]; ok {
			out, rest = append(out, plain), rest[2:]
			continue
		}
		r, long := unicodeEscape(rest)
		if long == 0 {
			return nil, false
		}
		if utf16.IsSurrogate(r) {
			low, more := unicodeEscape(rest[long:])
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				long += more
			}
		}
		out, rest = utf8.AppendRune(out, r), rest[long:]
	}
	return out, true
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unicodeEscape reads \uXXXX at the beginning of b; long is 0 when there is none.
func unicodeEscape(b []byte) (r rune, long int) {
	const length = len(`\u0000`)
	if len(b) < length || b[0] != '\\' || b[1] != 'u' {
		return 0, 0
	}
	n, err := strconv.ParseUint(string(b[2:length]), 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(n), length
}
