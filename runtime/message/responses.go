// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"cmp"
	"strings"
)

// responses reads a request of OpenAI's Responses. Every item of its input is a
// turn: an answer of the model is several.
func (s *scan) responses() {
	found, previous, conversation := false, "", ""
	for name := range s.members() {
		switch name {
		case "model":
			s.model()
		case "input":
			found = s.responsesInput()
		case "previous_response_id":
			s.r.Stateful = s.peek() != 'n' || s.r.Stateful
			previous = s.word()
		case "conversation":
			s.r.Stateful = s.peek() != 'n' || s.r.Stateful
			conversation = s.conversation()
		case "prompt":
			s.r.Stateful = s.there() || s.r.Stateful
		case "max_output_tokens":
			s.r.MaxOutputTokens = s.whole()
		case "instructions", "tools", "text":
			if !s.null() {
				s.reads()
			}
		default:
			s.skip()
		}
	}
	s.r.Previous = cmp.Or(previous, conversation)
	if !found && !s.r.Stateful {
		s.missing("input")
	}
}

// conversation reads the id of a conversation: a string, or an object with one.
func (s *scan) conversation() (id string) {
	if s.peek() != '{' {
		return s.word()
	}
	for name := range s.members() {
		if name == "id" {
			id = s.word()
		} else {
			s.skip()
		}
	}
	return id
}

func (s *scan) responsesInput() bool {
	switch s.peek() {
	case '"':
		s.turn(func(turn *Turn) {
			turn.Role = User
			s.said()
		})
	case 'n':
		s.skip()
		return false
	default:
		for range s.elements() {
			s.turn(s.responsesItem)
		}
	}
	return true
}

// responsesItem reads a message, a call, a call's output, or whatever else the
// model or its tools have said.
func (s *scan) responsesItem(turn *Turn) {
	s.peek()
	start, first, rest := s.i, len(s.r.Images), 0
	var kind, role, call string
	var id, tool text
	var arguments Span
	var a Result
	sealed := false
	for name := range s.members() {
		switch name {
		case "type":
			kind = s.word()
		case "role":
			role = s.word()
		case "call_id":
			call = s.answered()
		case "content":
			s.responsesContent(true)
		case "output":
			a.content(s, func() { s.responsesContent(false) })
		case "name":
			var n int
			tool, n = s.heard()
			rest += n
		case "arguments", "input":
			var n int
			arguments, n = s.spanned()
			rest += n
		case "id":
			id, _ = s.optional()
		case "encrypted_content":
			t, _ := s.optional()
			sealed = t.size > 0
		case "status":
			s.skip()
		default: // result too, which is the image of image_generation_call
			rest += s.counted()
		}
	}
	turn.Role = roleOfItem(kind, role)
	turn.ToolResults = turn.Role == Tool
	switch {
	case turn.Role == Tool && strings.HasSuffix(kind, "_call_output"):
		if kind == "local_shell_call_output" && call == "" { // the vendor's own types give the call's call_id as its id
			call = s.short(id)
		}
		a.CallID, a.Takes = call, kind == "function_call_output" || kind == "custom_tool_call_output"
		s.result(a, start, first, kind == "computer_call_output")
	case turn.Role == Tool:
		s.answer(first, -1, &Result{CallID: call}, false)
	case kind == "reasoning" && sealed:
		s.signature(Span{start, s.i})
	case kind == "item_reference" || kind == "" && role == "":
		s.reference(id, start)
	default:
		c := Call{ID: call, Arguments: arguments}
		if c.ofItem(kind) {
			c.Name = cmp.Or(c.Name, s.short(tool))
			s.call(c, start)
		}
	}
	switch {
	case kind == "image_generation_call":
		s.r.OtherMedia++
	case kind != "message" && kind != "item_reference" && (kind != "" || role == ""):
		s.r.TextBytes += int64(rest)
	}
}

// reference keeps the id of an item that the vendor has.
func (s *scan) reference(id text, start int) {
	if word := s.short(id); word != "" && s.fits(len(s.r.References), start) {
		s.r.References = append(s.r.References, word)
	}
}

// ofItem reports whether an item of the kind is a call that the client answers, and
// gives calls of the vendor's own tools their names; those have no arguments to read.
func (c *Call) ofItem(kind string) bool {
	switch kind {
	case "function_call", "custom_tool_call":
		return true
	case "computer_call":
		c.Name = "computer"
	case "local_shell_call", "shell_call":
		c.Name = "shell"
	case "apply_patch_call":
		c.Name = "apply_patch"
	default:
		return false
	}
	c.Arguments = Span{}
	return true
}

// roleOfItem tells who an item comes from. A reference to an earlier item may
// be anybody's; it is mostly one to a call, before its output.
func roleOfItem(kind, word string) Role {
	switch {
	case kind == "message" || kind == "" && word != "":
		return role(word)
	case kind == "":
		return Nobody
	case strings.HasSuffix(kind, "_output") || kind == "mcp_approval_response":
		return Tool
	}
	return Assistant
}

// responsesContent reads a message's content or a call's output: text, parts, or
// one part.
func (s *scan) responsesContent(human bool) {
	switch s.peek() {
	case '[':
		for range s.elements() {
			s.openAIPart(human)
		}
	case '{':
		s.openAIPart(human)
	case 'n':
		s.skip()
	case '"':
		if human {
			s.said()
		} else {
			s.reads()
		}
	default:
		s.wrong(s.peek())
	}
}
