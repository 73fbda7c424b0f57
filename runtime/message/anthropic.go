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
			s.turnOf(System, func() bool { return s.blocks(nil) })
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
			results = s.blocks(turn)
		default:
			s.skip()
		}
	}
	turn.ToolResults = results && turn.Role == User
}

// blocks reads content: text, or blocks, of a turn; of none where it stands deeper,
// so that what is said and called there is nobody's. It reports whether there are
// blocks and all of them are results of tools.
func (s *scan) blocks(turn *Turn) bool {
	switch s.peek() {
	case '"':
		if turn != nil && mayBeHuman(turn) {
			s.said()
		} else {
			s.reads()
		}
		return false
	case 'n':
		s.skip()
		return false
	}
	any, all := false, true
	for range s.elements() {
		any = true
		all = s.block(turn) && all
	}
	return any && all
}

// block reads one block and those within it, and reports whether it is a tool's result.
func (s *scan) block(turn *Turn) bool {
	s.peek()
	b, first := block{start: s.i}, len(s.r.Images)
	for name := range s.members() {
		s.blockMember(&b, name)
	}
	switch {
	case b.kind == "image":
		if !b.sourced {
			b.image.unknown("it has no source")
		}
		b.image.kept = b.mark
		s.image(b.image, b.start)
	case b.kind == "tool_result" && turn == nil:
		s.answer(first, -1, &b.a, false)
	case b.kind == "tool_result":
		b.a.Takes = b.a.Content.Len() == 0 || s.b[b.a.Content.Start] != '{'
		s.result(b.a, b.start, first, false)
	case b.kind == "text":
		s.r.TextBytes += int64(b.text)
	case b.sourced && b.p.kind == "text":
		s.r.TextBytes += int64(b.rest + b.p.data.size)
	case b.sourced && b.p.kind == "content":
		s.r.TextBytes += int64(b.rest)
	case b.sourced:
		s.r.OtherMedia++
	default:
		s.r.TextBytes += int64(b.text + b.rest)
	}
	if turn != nil {
		s.speaks(turn, &b)
	}
	return b.kind == "tool_result"
}

// block gathers what its members say: what it is may come last.
type block struct {
	kind       string
	start      int
	p          picture
	image      Image
	mark       Span // of cache_control
	sourced    bool // it has a source, in p
	text, rest int  // bytes of texts, and of what is not known
	id, name   text
	value      Span // of the member text
	input      Span
	signed     bool
	a          Result
}

// blockMember reads one member of a block.
func (s *scan) blockMember(b *block, name string) {
	n := 0
	switch name {
	case "type":
		b.kind = s.word()
	case "text":
		b.value, n = s.quoted()
		b.text += n
	case "thinking":
		b.text += s.counted()
	case "source":
		if c := s.peek(); c != '{' && c != 'n' { // a search result's, as text
			b.rest += s.counted()
			return
		}
		b.sourced = s.source(&b.p, &b.image)
	case "content": // of a result or a search's; an object is a server tool's
		b.a.content(s, func() { b.rest += s.within() })
	case "tool_use_id":
		b.a.CallID = s.answered()
	case "is_error":
		b.a.IsError = s.yes()
	case "id":
		b.id, _ = s.optional()
	case "name":
		b.name, n = s.heard()
		b.rest += n
	case "input":
		b.input, n = s.spanned()
		b.rest += n
	case "signature":
		t, _ := s.optional()
		b.signed = t.size > 0
	case "data", "encrypted_content":
		s.skip()
	case "cache_control":
		b.mark = s.skip()
	default:
		b.rest += s.counted()
	}
}

// speaks adds the block that was just passed to what its turn says and calls.
func (s *scan) speaks(turn *Turn, b *block) {
	switch b.kind {
	case "text":
		if b.value.Len() > 0 && mayBeHuman(turn) {
			s.text(b.value, b.start)
		}
	case "tool_use":
		s.call(Call{ID: s.short(b.id), Name: s.short(b.name), Arguments: b.input}, b.start)
	case "thinking":
		if b.signed {
			s.signature(Span{b.start, s.i})
		}
	case "redacted_thinking":
		s.signature(Span{b.start, s.i})
	}
}

// within reads the content of a block, and returns what counts of a server tool's,
// which is an object.
func (s *scan) within() int {
	if s.peek() == '{' {
		return s.counted()
	}
	s.blocks(nil)
	return 0
}

// source reads where the data of an image or of a document is. A document's may
// be blocks, which are read like all others.
func (s *scan) source(p *picture, image *Image) bool {
	if s.null() {
		return false
	}
	for name := range s.members() {
		if name == "content" {
			s.blocks(nil)
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
