// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strconv"
	"strings"
)

// step leads from a value to one within it: the number of a member's name, or an
// element's index. It is small, and no pointer, as a request has many.
type step struct {
	member bool
	at     int32
}

func (s *scanner) into(n *name)  { s.steps = append(s.steps, step{true, int32(n.number)}) }
func (s *scanner) element(n int) { s.steps = append(s.steps, step{false, int32(n)}) }
func (s *scanner) back()         { s.steps = s.steps[:len(s.steps)-1] }

// way keeps the way to the value at the cursor, as a range of Request.steps.
func (s *scan) way() Span {
	at := len(s.r.steps)
	if at == 0 {
		s.r.steps = make([]step, 0, 16)
	}
	s.r.steps = append(s.r.steps, s.steps...)
	return Span{at, len(s.r.steps)}
}

// pathOf writes steps as people do: messages[3].content[1].
func pathOf(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		if !s.member {
			b.WriteString("[" + strconv.Itoa(int(s.at)) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(spellings[s.at])
	}
	return b.String()
}

// ID names an image's part in decisions and messages: "messages[3].content[1]".
func (r *Request) ID(image int) string { return pathOf(r.way(r.Images[image].way)) }

// CallAt names a call as ID does an image: "messages[3].tool_calls[0]".
func (r *Request) CallAt(call int) string { return pathOf(r.way(r.Calls[call].way)) }

// ResultAt names a result: "messages[4]".
func (r *Request) ResultAt(result int) string { return pathOf(r.way(r.Results[result].way)) }

// TextAt names a text's part: "messages[0].content[1]", or "messages[0].content" where
// the content is a bare string.
func (r *Request) TextAt(text int) string { return pathOf(r.way(r.Texts[text].way)) }

// Pointer is an image's part as a JSON Pointer (RFC 6901): "/messages/3/content/1".
func (r *Request) Pointer(image int) string {
	var b strings.Builder
	for _, s := range r.way(r.Images[image].way) {
		b.WriteByte('/')
		if !s.member {
			b.WriteString(strconv.Itoa(int(s.at)))
		} else {
			b.WriteString(spellings[s.at]) // no name of the table has a '~' or a '/'
		}
	}
	return b.String()
}

func (r *Request) way(way Span) []step { return r.steps[way.Start:way.End] }
