// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// StripHidden says by which edits a list loses the image data of our hidden messages,
// for whatever shows or stores it (state and history, streams of values, memory,
// traces): their parts with inline data go. URLs that are fetched, other messages,
// texts, entries that are no objects, and the number and order of messages stay.
// A message is hidden for this by what it says of itself; nobody need vouch for it.
func StripHidden(messages []byte) ([]message.Edit, error) {
	return strip(messages, func(m *listMessage) (parts []message.Span) {
		if !hidden(messages, m) {
			return nil
		}
		for _, part := range partsOf(messages, m.content) {
			if data, is := listImage(messages, part); is && data != "" {
				parts = append(parts, part)
			}
		}
		return parts
	})
}

// strip are the edits that leave out of a list what gone tells of each message.
func strip(messages []byte, gone func(*listMessage) []message.Span) ([]message.Edit, error) {
	all, err := elements(messages)
	if err != nil {
		return nil, err
	}
	var edits []message.Edit
	for _, v := range elementsOf(messages, all) {
		if messages[v.Start] == '{' {
			m := messageOf(messages, v)
			edits = append(edits, without(messages, gone(&m), "")...)
		}
	}
	return edits, nil
}

// hidden reports whether a message says that it is one of ours, for models only.
func hidden(b []byte, m *listMessage) bool {
	return kindOf(b, memberOf(b, m.extra, HiddenMember)) == 't' && kindOf(b, memberOf(b, m.extra, MarkerMember)) == '{'
}

// StripClient says by which edits a list that a client sent loses the members that
// only we set: HiddenMember and MarkerMember of additional_kwargs. Everything else
// stays, ids included.
func StripClient(messages []byte) ([]message.Edit, error) {
	return strip(messages, func(m *listMessage) (members []message.Span) {
		if kindOf(messages, m.extra) != '{' {
			return nil
		}
		for name, f := range membersOf(messages, m.extra) {
			if name == HiddenMember || name == MarkerMember {
				members = append(members, f.whole)
			}
		}
		return members
	})
}

// TextOf is what a message's content says in text alone, such as that of a tool which
// returned images too: its text parts, one a line.
func TextOf(content []byte) (string, error) {
	all, err := elements(content)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, v := range elementsOf(content, all) {
		switch content[v.Start] {
		case '"':
			lines = append(lines, stringOf(content, v))
		case '{':
			if text := memberOf(content, v, "text"); kindOf(content, text) == '"' {
				lines = append(lines, stringOf(content, text))
			}
		}
	}
	return strings.Join(lines, "\n"), nil
}
