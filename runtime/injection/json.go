// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"encoding/json"
	"iter"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// The functions of this file walk over JSON that is known to be valid, and copy none of it.

// pass is the byte after the value that begins at i.
func pass(b []byte, i int) int {
	switch b[i] {
	case '"':
		return passString(b, i)
	case '{', '[':
		depth := 0
		for {
			switch b[i] {
			case '"':
				i = passString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(b) && bytes.IndexByte([]byte(" \t\r\n,]}"), b[i]) < 0 {
		i++
	}
	return i
}

// passString is the byte after the string that begins at i.
func passString(b []byte, i int) int {
	for i++; ; {
		quote := i + bytes.IndexByte(b[i:], '"')
		slash := bytes.IndexByte(b[i:quote], '\\')
		if slash < 0 {
			return quote + 1
		}
		i += slash + 2
	}
}

// skipSpace is the first byte from i on that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// member is a member of an object: the whole of it, and its value.
type member struct{ whole, value message.Span }

// membersOf yields the members of the object that begins at v.Start, by name.
func membersOf(b []byte, v message.Span) iter.Seq2[string, member] {
	return func(yield func(string, member) bool) {
		for i := skipSpace(b, v.Start+1); b[i] != '}'; {
			start, end := i, passString(b, i)
			name := stringOf(b, message.Span{Start: i, End: end})
			i = skipSpace(b, skipSpace(b, end)+1)
			end = pass(b, i)
			if !yield(name, member{message.Span{Start: start, End: end}, message.Span{Start: i, End: end}}) {
				return
			}
			if i = skipSpace(b, end); b[i] == ',' {
				i = skipSpace(b, i+1)
			}
		}
	}
}

// elementsOf yields the elements of the array that begins at v.Start.
func elementsOf(b []byte, v message.Span) iter.Seq2[int, message.Span] {
	return func(yield func(int, message.Span) bool) {
		i := skipSpace(b, v.Start+1)
		for n := 0; b[i] != ']'; n++ {
			end := pass(b, i)
			if !yield(n, message.Span{Start: i, End: end}) {
				return
			}
			if i = skipSpace(b, end); b[i] == ',' {
				i = skipSpace(b, i+1)
			}
		}
	}
}

// memberOf is the value of an object's member, the last one of that name as most
// parsers have it; empty where v is no object or has none.
func memberOf(b []byte, v message.Span, name string) (found message.Span) {
	if v.Len() == 0 || b[v.Start] != '{' {
		return message.Span{}
	}
	for n, m := range membersOf(b, v) {
		if n == name {
			found = m.value
		}
	}
	return found
}

// kindOf is the first byte of a value, which tells its type; 0 when there is none.
func kindOf(b []byte, v message.Span) byte {
	if v.Len() == 0 {
		return 0
	}
	return b[v.Start]
}

// stringOf is the text of a JSON string; "" for any other value.
func stringOf(b []byte, v message.Span) string {
	if v.Len() < 2 || b[v.Start] != '"' {
		return ""
	}
	inner := b[v.Start+1 : v.End-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(b[v.Start:v.End], &s) != nil {
		return ""
	}
	return s
}

// without are the edits that leave elements out of arrays, together with the commas
// that go with them. The spans are of elements, ascending. Where an array would be
// left without any, stand stands in the place of them; "" for nothing.
func without(b []byte, elements []message.Span, stand string) []message.Edit {
	var edits []message.Edit
	for n := 0; n < len(elements); {
		run := elements[n]
		for n++; n < len(elements) && next(b, run.End) == elements[n].Start; n++ {
			run.End = elements[n].End
		}
		behind := skipSpace(b, run.End)
		before := len(bytes.TrimRight(b[:run.Start], " \t\r\n"))
		var segments []message.Segment
		switch {
		case b[behind] == ',':
			run.End = skipSpace(b, behind+1)
		case b[before-1] == ',':
			run.Start = len(bytes.TrimRight(b[:before-1], " \t\r\n"))
		default:
			segments = text(stand)
		}
		edits = append(edits, message.Edit{Span: run, Segments: segments})
	}
	return edits
}

// next is where the element begins that follows the one that ends at i; -1 when
// there is none.
func next(b []byte, i int) int {
	if i = skipSpace(b, i); b[i] != ',' {
		return -1
	}
	return skipSpace(b, i+1)
}
