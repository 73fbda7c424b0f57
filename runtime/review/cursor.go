// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// cursor walks over the members of JSON objects by their bytes. It holds only
// what it walks over against the grammar; a value that it passes is as long as
// its brackets and quotes say, and who reads it finds out whether it is JSON.
type cursor struct {
	b []byte
	i int
}

// peek passes white space and returns the next byte; 0 at the end.
func (c *cursor) peek() byte {
	for ; c.i < len(c.b); c.i++ {
		if b := c.b[c.i]; b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return b
		}
	}
	return 0
}

// take passes one byte if it is the next token.
func (c *cursor) take(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.i++
	return true
}

// member is a member of an object: its name, and the span of its value.
type member struct {
	name  string
	value message.Span
}

// mostMembers is more than any object has whose members are looked at.
const mostMembers = 64

// members reads the object at the cursor. It is not ok when it is none, or has
// very many members; what was read of it until then is returned.
func (c *cursor) members() (all []member, ok bool) {
	if !c.take('{') {
		return all, false
	}
	if c.take('}') {
		return nil, true
	}
	for len(all) < mostMembers {
		if c.peek() != '"' {
			return all, false
		}
		start := c.i
		if !c.str() {
			return all, false
		}
		m := member{}
		if json.Unmarshal(c.b[start:c.i], &m.name) != nil || !c.take(':') {
			return all, false
		}
		if m.value, ok = c.value(); !ok {
			return all, false
		}
		all = append(all, m)
		if c.take('}') {
			return all, true
		}
		if !c.take(',') {
			return all, false
		}
	}
	return all, false
}

// once reports whether no name is there twice.
func once(all []member) bool {
	for i := range all {
		if slices.ContainsFunc(all[:i], func(m member) bool { return m.name == all[i].name }) {
			return false
		}
	}
	return true
}

// value passes any value.
func (c *cursor) value() (message.Span, bool) {
	c.peek()
	start, depth := c.i, 0
	for c.i < len(c.b) {
		switch b := c.b[c.i]; {
		case b == '"':
			if !c.str() {
				return message.Span{}, false
			}
			if depth == 0 {
				return message.Span{Start: start, End: c.i}, true
			}
			continue
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth == 0 { // of what the value stands in
				return message.Span{Start: start, End: c.i}, c.i > start
			}
			if depth--; depth == 0 {
				c.i++
				return message.Span{Start: start, End: c.i}, true
			}
		case depth == 0 && (b == ',' || b == ' ' || b == '\n' || b == '\r' || b == '\t'):
			return message.Span{Start: start, End: c.i}, c.i > start
		}
		c.i++
	}
	return message.Span{Start: start, End: c.i}, depth == 0 && c.i > start
}

// str passes the string at the cursor.
func (c *cursor) str() bool {
	for at := c.i + 1; ; {
		end := bytes.IndexByte(c.b[min(at, len(c.b)):], '"')
		if end < 0 {
			return false
		}
		end += at
		slashes := 0
		for slashes < end-at && c.b[end-1-slashes] == '\\' {
			slashes++
		}
		at = end + 1
		if slashes%2 == 0 {
			c.i = at
			return true
		}
	}
}
