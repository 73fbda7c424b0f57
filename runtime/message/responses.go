// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import "strings"

// responses reads a request of OpenAI's Responses. Every item of its input is a
// turn: an answer of the model is several.
func (s *scan) responses() {
	found := false
	for name := range s.members() {
		switch name {
		case "model":
			s.model()
		case "input":
			found = s.responsesInput()
		case "previous_response_id", "conversation", "prompt":
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
	if !found && !s.r.Stateful {
		s.missing("input")
	}
}

func (s *scan) responsesInput() bool {
	switch s.peek() {
	case '"':
		s.turn(func(turn *Turn) {
			turn.Role = User
			s.reads()
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
	first, result, rest := len(s.r.Images), 0, 0
	var kind, role, call string
	for name := range s.members() {
		switch name {
		case "type":
			kind = s.word()
		case "role":
			role = s.word()
		case "call_id":
			call = s.word()
		case "content", "output":
			s.responsesContent()
		case "result": // of image_generation_call: the image
			result = s.counted()
		case "id", "status", "encrypted_content":
			s.skip()
		default:
			rest += s.counted()
		}
	}
	turn.Role = roleOfItem(kind, role)
	if turn.Role == Tool {
		turn.ToolResults = true
		s.answer(first, call, false, kind == "computer_call_output")
	}
	switch {
	case kind == "image_generation_call":
		s.r.OtherMedia++
	case kind != "message" && kind != "item_reference" && (kind != "" || role == ""):
		s.r.TextBytes += int64(rest + result)
	}
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
func (s *scan) responsesContent() {
	switch s.peek() {
	case '[':
		for range s.elements() {
			s.openAIPart()
		}
	case '{':
		s.openAIPart()
	case 'n':
		s.skip()
	case '"':
		s.reads()
	default:
		s.wrong(s.peek())
	}
}
