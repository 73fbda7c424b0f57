// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"slices"
	"strconv"
	"strings"
)

// step leads from a value to one within it: the number of a member's name, or an
// element's index. It is small, and no pointer, as a request has many.
type step struct {
	at     int32
	member bool
}

// passed is a step on the way to the value at the cursor, and the way's end in
// Request.ways up to there; 0 while nobody has kept it.
type passed struct {
	step
	kept way
}

// way is how to get to a value: the number of its last step in Request.ways, counted
// from 1; 0 is the body. Ways share their beginnings, so that many values deep in a
// body take no more than as many that are not.
type way int32

// link is a way's last step, and the way before it.
type link struct {
	step
	before way
}

func (s *scanner) into(n *name)  { s.steps = append(s.steps, passed{step: step{int32(n.number), true}}) }
func (s *scanner) element(n int) { s.steps = append(s.steps, passed{step: step{int32(n), false}}) }
func (s *scanner) back()         { s.steps = s.steps[:len(s.steps)-1] }

// way keeps the way to the value at the cursor.
func (s *scan) way() way {
	if s.r.ways == nil {
		s.r.ways = make([]link, 0, 16)
	}
	n := len(s.steps)
	for n > 0 && s.steps[n-1].kept == 0 {
		n--
	}
	end := way(0)
	if n > 0 {
		end = s.steps[n-1].kept
	}
	for ; n < len(s.steps); n++ {
		s.r.ways = append(s.r.ways, link{s.steps[n].step, end})
		end = way(len(s.r.ways))
		s.steps[n].kept = end
	}
	return end
}

// stepsTo are the steps of a way.
func (r *Request) stepsTo(w way) []step {
	var all []step
	for ; w > 0; w = r.ways[w-1].before {
		all = append(all, r.ways[w-1].step)
	}
	slices.Reverse(all)
	return all
}

// here are the steps to the value at the cursor.
func (s *scanner) here() []step {
	all := make([]step, len(s.steps))
	for i := range all {
		all[i] = s.steps[i].step
	}
	return all
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
func (r *Request) ID(image int) string { return pathOf(r.stepsTo(r.Images[image].way)) }

// CallAt names a call as ID does an image: "messages[3].tool_calls[0]".
func (r *Request) CallAt(call int) string { return pathOf(r.stepsTo(r.Calls[call].way)) }

// ResultAt names a result: "messages[4]".
func (r *Request) ResultAt(result int) string { return pathOf(r.stepsTo(r.Results[result].way)) }

// TextAt names a text's part: "messages[0].content[1]", or "messages[0].content" where
// the content is a bare string.
func (r *Request) TextAt(text int) string { return pathOf(r.stepsTo(r.Texts[text].way)) }

// Pointer is an image's part as a JSON Pointer (RFC 6901): "/messages/3/content/1".
func (r *Request) Pointer(image int) string {
	var b strings.Builder
	for _, s := range r.stepsTo(r.Images[image].way) {
		b.WriteByte('/')
		if !s.member {
			b.WriteString(strconv.Itoa(int(s.at)))
		} else {
			b.WriteString(spellings[s.at]) // no name of the table has a '~' or a '/'
		}
	}
	return b.String()
}
