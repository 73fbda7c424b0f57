// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// List is a conversation as frameworks of LangChain's kind hold it: an array of
//
//	{"type": "human"|"ai"|"tool"|"system", "content": text or parts, "id"?, "additional_kwargs"?,
//	 "tool_calls"?: [{"name", "args", "id"}], "tool_call_id"?, "status"?: "error"}
//
// each of them flat, or with all but type within "data" (messages_to_dict), or with
// a "role" of OpenAI's names in the place of type. Calls are read in OpenAI's form
// too, and from additional_kwargs where tool_calls has none. It refers to the bytes
// that were read, which must stay as they are.
type List struct {
	body     []byte
	messages []listMessage
}

// listMessage is one message of a list.
type listMessage struct {
	role message.Role
	form form
	// fields is the object that holds the members, and the others values of it;
	// empty where they are not there.
	fields, content, extra message.Span
	id, callID             string
	failed                 bool
	calls                  []listCall
}

// listCall is a call of a tool.
type listCall struct {
	id, name string
	// arguments is the JSON text of an object; nil where that is malformed.
	arguments []byte
}

// form is how a message is written.
type form int

const (
	flat     form = iota // {"type":"human","content":…}
	nested               // {"type":"human","data":{"content":…}}
	roleWise             // {"role":"user","content":…}
)

// ReadList reads a list of messages. An error is a *message.Error, which holds no
// byte of the list.
func ReadList(messages []byte) (*List, error) {
	all, err := elements(messages)
	if err != nil {
		return nil, err
	}
	l := &List{body: messages}
	for n, v := range elementsOf(messages, all) {
		path := fmt.Sprintf("messages[%d]", n)
		if n == message.MaxTurns {
			return nil, &message.Error{Reason: message.TooMany, Offset: v.Start, Path: path}
		}
		if messages[v.Start] != '{' {
			return nil, &message.Error{Reason: message.WrongType, Offset: v.Start, Path: path}
		}
		l.messages = append(l.messages, messageOf(messages, v))
	}
	return l, nil
}

// next is the index of the assistant's next message behind one; the list's length
// where there is none.
func (l *List) next(i int) int {
	for i++; i < len(l.messages); i++ {
		if l.messages[i].role == message.Assistant {
			return i
		}
	}
	return i
}

// newestHuman is the index of the newest message that a human sent, and not we; -1
// when there is none.
func (p *ListPlan) newestHuman() int {
	for i, m := range slices.Backward(p.list.messages) {
		if _, is := p.oursAt(i); m.role == message.User && !is {
			return i
		}
	}
	return -1
}

// Turns are the list's messages as preflight judges a conversation by them, without
// their lengths. Images of ours that the list holds make no turn a human's.
func (p *ListPlan) Turns() []message.Turn {
	turns := make([]message.Turn, len(p.list.messages))
	for i := range p.list.messages {
		m := &p.list.messages[i]
		turns[i] = message.Turn{Role: m.role, ToolResults: m.role == message.Tool, Signed: m.role == message.Assistant && p.list.signed(m)}
	}
	for _, o := range p.ours {
		turns[o.at].Role = message.Nobody
	}
	return turns
}

// signed reports whether a message of the assistant's holds reasoning that its vendor
// has signed or encrypted, as frameworks hand it back.
func (l *List) signed(m *listMessage) bool {
	return slices.ContainsFunc(partsOf(l.body, m.content), func(part message.Span) bool {
		for name, f := range membersOf(l.body, part) {
			switch name {
			case "signature", "thought_signature", "encrypted_content":
				if stringOf(l.body, f.value) != "" {
					return true
				}
			case "type":
				if stringOf(l.body, f.value) == "redacted_thinking" {
					return true
				}
			}
		}
		return false
	})
}

// elements is the array that all of the bytes are.
func elements(b []byte) (message.Span, error) {
	start := skipSpace(b, 0)
	switch {
	case !json.Valid(b):
		return message.Span{}, &message.Error{Reason: message.NotJSON, Offset: offsetOf(b)}
	case b[start] != '[':
		return message.Span{}, &message.Error{Reason: message.WrongType, Offset: start, Path: "messages"}
	}
	return message.Span{Start: start, End: len(bytes.TrimRight(b, " \t\r\n"))}, nil
}

// offsetOf is the byte at which b stops being JSON.
func offsetOf(b []byte) int {
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(b, new(json.RawMessage)), &syntax) {
		return int(syntax.Offset)
	}
	return len(b)
}

// messageOf reads one message. What has a form that is not known is a message of
// nobody's, and stays.
func messageOf(b []byte, v message.Span) listMessage {
	m := listMessage{fields: v}
	if data := memberOf(b, v, "data"); kindOf(b, data) == '{' {
		m.fields, m.form = data, nested
	}
	m.role = listRole(stringOf(b, memberOf(b, v, "type")))
	if m.role == message.Nobody && m.form == flat {
		if m.role = listRole(stringOf(b, memberOf(b, v, "role"))); m.role != message.Nobody {
			m.form = roleWise
		}
	}
	var calls message.Span
	for name, f := range membersOf(b, m.fields) {
		switch name {
		case "content":
			m.content = f.value
		case "additional_kwargs":
			m.extra = f.value
		case "id":
			m.id = stringOf(b, f.value)
		case "tool_call_id":
			m.callID = stringOf(b, f.value)
		case "status":
			m.failed = stringOf(b, f.value) == "error"
		case "tool_calls":
			calls = f.value
		}
	}
	if m.role == message.Assistant {
		if m.calls = callsOf(b, calls); len(m.calls) == 0 {
			m.calls = callsOf(b, memberOf(b, m.extra, "tool_calls"))
		}
	}
	return m
}

// listRole is a message's role by LangChain's or OpenAI's name of it.
func listRole(word string) message.Role {
	switch word {
	case "human", "user", "HumanMessageChunk":
		return message.User
	case "ai", "assistant", "AIMessageChunk":
		return message.Assistant
	case "tool", "function", "ToolMessageChunk":
		return message.Tool
	case "system", "developer", "SystemMessageChunk":
		return message.System
	}
	return message.Nobody
}

// callsOf reads calls: {"name","args","id"}, or OpenAI's {"id","function":{"name","arguments"}}.
func callsOf(b []byte, v message.Span) []listCall {
	if kindOf(b, v) != '[' {
		return nil
	}
	var calls []listCall
	for _, e := range elementsOf(b, v) {
		if b[e.Start] != '{' {
			calls = append(calls, listCall{})
			continue
		}
		call := listCall{id: stringOf(b, memberOf(b, e, "id")), name: stringOf(b, memberOf(b, e, "name"))}
		arguments := memberOf(b, e, "args")
		if function := memberOf(b, e, "function"); kindOf(b, function) == '{' {
			call.name, arguments = stringOf(b, memberOf(b, function, "name")), memberOf(b, function, "arguments")
		}
		switch kindOf(b, arguments) {
		case '{':
			call.arguments = b[arguments.Start:arguments.End]
		case '"':
			if inner := []byte(stringOf(b, arguments)); json.Valid(inner) {
				call.arguments = bytes.TrimSpace(inner)
			}
		}
		calls = append(calls, call)
	}
	return calls
}

// argument is the first of names whose value is a text that is not empty.
func (c *listCall) argument(names ...string) (value string, ok bool) {
	if len(c.arguments) == 0 || c.arguments[0] != '{' {
		return "", false
	}
	root := message.Span{End: len(c.arguments)}
	for _, name := range names {
		if s := stringOf(c.arguments, memberOf(c.arguments, root, name)); s != "" {
			return s, true
		}
	}
	return "", false
}
