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
	first, call := len(s.r.Images), ""
	for name := range s.members() {
		switch name {
		case "role":
			turn.Role = role(s.word())
		case "tool_call_id":
			call = s.word()
		case "content":
			s.chatContent()
		case "refusal", "reasoning_content", "tool_calls", "function_call":
			if !s.null() {
				s.reads()
			}
		default:
			s.skip()
		}
	}
	if turn.Role == Tool {
		turn.ToolResults = true
		s.answer(first, call, false, false)
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
func (s *scan) chatContent() {
	switch s.peek() {
	case '"':
		s.reads()
	case 'n':
		s.skip()
	default:
		for range s.elements() {
			s.openAIPart()
		}
	}
}

// openAIPart reads a part of a message, as chat and Responses write it.
func (s *scan) openAIPart() {
	s.peek()
	start := s.i
	var image Image
	var kind, detail string
	text, rest, pictured, file, media := 0, 0, false, false, false
	for name := range s.members() {
		switch name {
		case "type":
			kind = s.word()
		case "text", "refusal":
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
	default:
		s.r.TextBytes += int64(text + rest)
	}
}
