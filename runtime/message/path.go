// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strconv"
	"strings"
)

// step leads from a value to one within it: a member's name or, where that is
// "", an element's index.
type step struct {
	name  string
	index int
}

// pathOf writes steps as people do: messages[3].content[1].
func pathOf(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		if s.name == "" {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	return b.String()
}

// ID names an image's part in decisions and messages: "messages[3].content[1]".
func (r *Request) ID(image int) string { return pathOf(r.way(image)) }

// Pointer is an image's part as a JSON Pointer (RFC 6901): "/messages/3/content/1".
func (r *Request) Pointer(image int) string {
	var b strings.Builder
	for _, s := range r.way(image) {
		b.WriteByte('/')
		if s.name == "" {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(s.name) // no name of the table has a '~' or a '/'
		}
	}
	return b.String()
}

func (r *Request) way(image int) []step {
	way := r.Images[image].way
	return r.steps[way.Start:way.End]
}
