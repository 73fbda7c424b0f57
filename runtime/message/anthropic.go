// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

// anthropic reads a request of Anthropic's Messages.
func (s *scan) anthropic() {
	found := false
	for name := range s.members() {
		switch name {
		case "model":
			s.model()
		case "messages":
			found = true
			for range s.elements() {
				s.turn(s.anthropicMessage)
			}
		case "system":
			s.turnOf(System, s.blocks)
		case "max_tokens":
			s.r.MaxOutputTokens = s.whole()
		case "tools", "output_config":
			s.reads()
		default:
			s.skip()
		}
	}
	if !found {
		s.missing("messages")
	}
}

// turnOf reads instructions: text alone is counted, parts are a turn.
func (s *scan) turnOf(role Role, parts func() bool) {
	switch s.peek() {
	case '"':
		s.reads()
	case 'n':
		s.skip()
	default:
		s.turn(func(turn *Turn) {
			turn.Role = role
			parts()
		})
	}
}

func (s *scan) anthropicMessage(turn *Turn) {
	results := false
	for name := range s.members() {
		switch name {
		case "role":
			turn.Role = role(s.word())
		case "content":
			results = s.blocks()
		default:
			s.skip()
		}
	}
	turn.ToolResults = results && turn.Role == User
}

// blocks reads content: text, or blocks. It reports whether there are blocks and
// all of them are results of tools.
func (s *scan) blocks() bool {
	switch s.peek() {
	case '"':
		s.reads()
		return false
	case 'n':
		s.skip()
		return false
	}
	any, all := false, true
	for range s.elements() {
		any = true
		all = s.block() && all
	}
	return any && all
}

// block reads one block and those within it, and reports whether it is a tool's result.
func (s *scan) block() bool {
	s.peek()
	start, first := s.i, len(s.r.Images)
	var p picture
	var image Image
	var mark Span
	var kind, call string
	text, rest, sourced, isError := 0, 0, false, false
	for name := range s.members() {
		switch name {
		case "type":
			kind = s.word()
		case "text", "thinking":
			text += s.counted()
		case "source":
			sourced = s.source(&p, &image)
		case "content": // of a result or a search's; an object is a server tool's
			if s.peek() == '{' {
				rest += s.counted()
			} else {
				s.blocks()
			}
		case "tool_use_id":
			call = s.word()
		case "is_error":
			isError = s.yes()
		case "id", "signature", "data", "encrypted_content":
			s.skip()
		case "cache_control":
			mark = s.skip()
		default:
			rest += s.counted()
		}
	}
	switch {
	case kind == "image":
		if !sourced {
			image.unknown("it has no source")
		}
		image.kept = mark
		s.image(image, start)
	case kind == "tool_result":
		s.answer(first, call, isError, false)
	case kind == "text":
		s.r.TextBytes += int64(text)
	case sourced && p.kind == "text":
		s.r.TextBytes += int64(rest + p.data.size)
	case sourced && p.kind == "content":
		s.r.TextBytes += int64(rest)
	case sourced:
		s.r.OtherMedia++
	default:
		s.r.TextBytes += int64(text + rest)
	}
	return kind == "tool_result"
}

// source reads where the data of an image or of a document is. A document's may
// be blocks, which are read like all others.
func (s *scan) source(p *picture, image *Image) bool {
	if s.null() {
		return false
	}
	for name := range s.members() {
		if name == "content" {
			s.blocks()
			continue
		}
		s.describe(p, name)
	}
	switch {
	case s.err != nil:
	case p.kind == "facts":
		image.facts(&s.scanner, p)
	case p.kind == "base64":
		image.inline(p)
	case p.kind == "url" && p.hasURL:
		s.address(image, p.url)
		if image.Source != Remote { // data has its own type of source
			*image = Image{Source: Unknown, Why: "its url is none of http and https", Unread: image.Source == Inline || image.Unread}
		}
	case p.kind == "file" && p.file:
		image.Source = FileID
	case p.kind == "url" || p.kind == "file":
		image.unknown("its source lacks what its type names")
	default:
		image.unknown("its source's type is not known")
	}
	return true
}
