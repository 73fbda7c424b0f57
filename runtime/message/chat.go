// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import "strings"

// chat reads a request of OpenAI's Chat Completions, and of the many servers
// that speak it: images in tool messages (Mistral), bare strings as image_url
// (Mistral, Ollama) and parts without a type are taken too.
func (s *scan) chat() {
	found, limit := false, int64(0)
	for name := range s.members() {
		switch name {
		case "model":
			s.model()
		case "messages":
			found = true
			for range s.elements() {
				s.turn(s.chatMessage)
			}
		case "max_tokens": // the older name, which the newer one overrules
			limit = s.whole()
		case "max_completion_tokens":
			s.r.MaxOutputTokens = s.whole()
		case "tools", "functions", "response_format":
			s.reads()
		default:
			s.skip()
		}
	}
	if s.r.MaxOutputTokens == 0 {
		s.r.MaxOutputTokens = limit
	}
	if !found {
		s.missing("messages")
	}
}

func (s *scan) chatMessage(turn *Turn) {
	s.peek()
	start, first := s.i, len(s.r.Images)
	var a Result
	for name := range s.members() {
		switch name {
		case "role":
			word := s.word()
			turn.Role, a.unnumbered = role(word), word == "function"
		case "tool_call_id":
			a.CallID = s.answered()
		case "name":
			a.Name = s.word()
		case "content":
			a.content(s, func() { s.chatContent(mayBeHuman(turn)) })
		case "tool_calls":
			if !s.null() {
				s.r.TextBytes += int64(s.measured(s.chatCalls))
			}
		case "function_call":
			if !s.null() {
				s.r.TextBytes += int64(s.measured(s.chatFunctionCall))
			}
		case "refusal", "reasoning_content":
			if !s.null() {
				s.reads()
			}
		default:
			s.skip()
		}
	}
	if turn.Role == Tool {
		turn.ToolResults, a.Takes = true, !a.unnumbered
		s.result(a, start, first, false)
	}
}

// mayBeHuman reports whether a turn may still turn out to be a human's: its role
// may come after its content.
func mayBeHuman(turn *Turn) bool { return turn.Role == User || turn.Role == Nobody }

// chatCalls reads tool_calls. What is no call is passed.
func (s *scan) chatCalls() {
	if s.peek() != '[' {
		s.skip()
		return
	}
	for range s.elements() {
		if s.peek() == '{' {
			s.chatCall()
		} else {
			s.skip()
		}
	}
}

func (s *scan) chatCall() {
	var c Call
	start := s.i
	for name := range s.members() {
		switch name {
		case "id":
			c.ID = s.word()
		case "function", "custom":
			if s.peek() == '{' {
				s.chatFunction(&c)
			} else {
				s.skip()
			}
		default:
			s.skip()
		}
	}
	s.call(c, start)
}

// chatFunctionCall reads the older function_call.
func (s *scan) chatFunctionCall() {
	if s.peek() != '{' {
		s.skip()
		return
	}
	start, c := s.i, Call{unnumbered: true}
	s.chatFunction(&c)
	s.call(c, start)
}

// chatFunction reads what is called, and with which arguments.
func (s *scan) chatFunction(c *Call) {
	for name := range s.members() {
		switch name {
		case "name":
			c.Name = s.word()
		case "arguments", "input":
			c.Arguments, _ = s.spanned()
		default:
			s.skip()
		}
	}
}

// role is the role of a message of OpenAI's or Anthropic's.
func role(word string) Role {
	switch word {
	case "system", "developer":
		return System
	case "user":
		return User
	case "assistant":
		return Assistant
	case "tool", "function":
		return Tool
	}
	return Nobody
}

// chatContent reads a message's content: text, parts, or null.
func (s *scan) chatContent(human bool) {
	switch s.peek() {
	case '"':
		if human {
			s.said()
		} else {
			s.reads()
		}
	case 'n':
		s.skip()
	default:
		for range s.elements() {
			s.openAIPart(human)
		}
	}
}

// openAIPart reads a part of a message, as chat and Responses write it. What is no
// object is text to some servers (vLLM).
func (s *scan) openAIPart(human bool) {
	if s.peek() != '{' {
		s.reads()
		return
	}
	start := s.i
	var image Image
	var value Span
	var kind, detail string
	text, rest, pictured, file, media := 0, 0, false, false, false
	for name := range s.members() {
		switch name {
		case "type":
			kind = s.word()
		case "text":
			var n int
			value, n = s.quoted()
			text += n
		case "refusal":
			text += s.counted()
		case "image_url":
			pictured = s.imageURL(&image)
		case "detail":
			detail = strings.ToLower(s.word())
		case "file_id":
			_, file = s.optional()
		case "file", "file_data", "file_url", "input_audio", "audio_url", "video_url":
			media = s.there() || media
		case "cache_control": // of gateways that pass it on to Anthropic
			image.kept = s.skip()
		default:
			rest += s.counted()
		}
	}
	if image.Detail == "" {
		image.Detail = detail
	}
	switch {
	case pictured:
		s.image(image, start)
	case kind == "image_url" || kind == "input_image" || kind == "computer_screenshot":
		if image.Source = FileID; !file {
			image.unknown("it has no image_url")
		}
		s.image(image, start)
	case media || file:
		s.r.OtherMedia++
	case kind == "text" || kind == "input_text" || kind == "output_text":
		s.r.TextBytes += int64(text)
		if human && value.Len() > 0 {
			s.text(value, start)
		}
	default:
		s.r.TextBytes += int64(text + rest)
		if human && kind == "" && value.Len() > 0 {
			s.text(value, start)
		}
	}
}
