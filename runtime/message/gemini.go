// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"cmp"
	"strings"
)

// gemini reads a request of Gemini's generateContent. Its JSON is that of
// protocol buffers: camel case or the fields' own names, and a single value
// where a list is due, as the vendor's own examples have it. A request of
// countTokens may hold one of generateContent whole.
func (s *scan) gemini() {
	found, detail := s.geminiMembers(true)
	for i := range s.r.Images {
		if s.r.Images[i].Detail == "" {
			s.r.Images[i].Detail = detail
		}
	}
	if !found {
		s.missing("contents")
	}
}

func (s *scan) geminiMembers(outer bool) (found bool, detail string) {
	for name := range s.members() {
		switch name {
		case "model":
			s.model()
		case "contents":
			found = true
			s.list(func() { s.turn(s.geminiContent) })
		case "systemInstruction", "system_instruction":
			if !s.null() {
				s.turn(func(turn *Turn) {
					s.geminiContent(turn)
					turn.Role = System
				})
			}
		case "generationConfig", "generation_config":
			detail = s.geminiConfig()
		case "tools":
			s.reads()
		case "generateContentRequest", "generate_content_request":
			switch {
			case !outer:
				s.skip()
			case !s.null():
				within, its := s.geminiMembers(false)
				found, detail = found || within, cmp.Or(its, detail)
			}
		default:
			s.skip()
		}
	}
	return found, detail
}

// list reads an array of values, or one value in its stead, and returns where it stands.
func (s *scan) list(each func()) Span {
	c := s.peek()
	start := s.i
	if c != '[' {
		each()
		return Span{start, s.i}
	}
	for range s.elements() {
		each()
	}
	return Span{start, s.i}
}

func (s *scan) geminiConfig() (detail string) {
	if s.null() {
		return ""
	}
	for name := range s.members() {
		switch name {
		case "maxOutputTokens", "max_output_tokens":
			s.r.MaxOutputTokens = s.whole()
		case "mediaResolution", "media_resolution":
			detail = s.resolution()
		default:
			s.skip()
		}
	}
	return detail
}

// resolution reads a media resolution: a word, or an object with one.
func (s *scan) resolution() (detail string) {
	word := ""
	if s.peek() == '{' {
		for name := range s.members() {
			if name == "level" {
				word = s.word()
			} else {
				s.skip()
			}
		}
	} else {
		word = s.word()
	}
	detail = strings.TrimPrefix(strings.ToLower(word), "media_resolution_")
	if detail == "unspecified" {
		return ""
	}
	return detail
}

func (s *scan) geminiContent(turn *Turn) {
	turn.Role = User
	first, results, any, all := len(s.r.Images), len(s.r.Results), false, true
	for name := range s.members() {
		switch name {
		case "role":
			turn.Role = geminiRole(s.word())
		case "parts":
			if s.null() {
				continue
			}
			parts := s.list(func() {
				any = true
				all = s.geminiPart(turn) && all
			})
			for i := results; i < len(s.r.Results); i++ {
				s.r.Results[i].Parts = parts
			}
		default:
			s.skip()
		}
	}
	turn.ToolResults = any && all && turn.Role != Assistant
	if turn.Role == Tool {
		turn.ToolResults = true
		for i := first; i < len(s.r.Images); i++ {
			s.r.Images[i].InToolResult = true
		}
	}
}

func geminiRole(word string) Role {
	switch word {
	case "", "user":
		return User
	case "model":
		return Assistant
	case "function", "tool":
		return Tool
	case "system":
		return System
	}
	return Nobody
}

// geminiPart reads a part of a turn's content, or of none where it stands deeper,
// and reports whether it is a function's response.
func (s *scan) geminiPart(turn *Turn) bool {
	s.peek()
	start, response, thought := s.i, false, false
	results := len(s.r.Results)
	var value Span
	var image Image
	var detail string
	pictured, media := false, false
	for name := range s.members() {
		switch name {
		case "text":
			if !s.null() {
				var n int
				value, n = s.quoted()
				s.r.TextBytes += int64(n)
			}
		case "functionCall", "function_call":
			if !s.null() {
				s.r.TextBytes += int64(s.measured(func() { s.geminiCall(turn) }))
			}
		case "inlineData", "inline_data", "fileData", "file_data":
			if !s.null() {
				is := s.geminiData(&image, strings.HasPrefix(name, "file"))
				pictured, media = pictured || is, media || !is
			}
		case "functionResponse", "function_response":
			if !s.null() {
				response = true
				s.geminiResponse(turn)
			}
		case "mediaResolution", "media_resolution":
			detail = s.resolution()
		case "thought":
			thought = s.yes()
		case "thoughtSignature", "thought_signature":
			s.geminiSignature(turn)
		default:
			s.reads()
		}
	}
	if turn != nil && value.Len() > 0 && !thought && mayBeHuman(turn) {
		s.text(value, start)
	}
	for i := results; i < len(s.r.Results); i++ {
		s.r.Results[i].Part = Span{start, s.i}
	}
	if image.Detail == "" {
		image.Detail = detail
	}
	if pictured {
		s.image(image, start)
	}
	if media {
		s.r.OtherMedia++
	}
	return response
}

// geminiData reads inlineData or fileData, and reports whether it is an image's:
// by its declared type, or inline without any.
func (s *scan) geminiData(image *Image, file bool) bool {
	var p picture
	s.object(&p)
	image.kept = p.name
	switch {
	case s.err != nil:
	case !file && p.hasSHA256:
		image.facts(&s.scanner, &p)
	case file:
		image.MediaType = p.media
		image.Source = Remote
		if !p.hasURL {
			image.unknown("its fileData has no fileUri")
		} else if s.atVendor(p.url) {
			image.Source = FileID
		}
		return strings.HasPrefix(p.media, "image/")
	default:
		image.inline(&p)
	}
	return p.media == "" || strings.HasPrefix(p.media, "image/")
}

// filesAPI begins the URI of a file that was uploaded to Gemini.
const filesAPI = "https://generativelanguage.googleapis.com/"

func (s *scan) atVendor(t text) bool {
	return t.size > len(filesAPI) && t.size <= longestWord && strings.HasPrefix(strings.ToLower(s.copied(t)), filesAPI)
}

// geminiResponse reads a function's response, whose parts hold its media.
func (s *scan) geminiResponse(turn *Turn) {
	s.peek()
	start, first := s.i, len(s.r.Images)
	a := Result{Takes: true, unnumbered: true}
	for name := range s.members() {
		switch name {
		case "id":
			a.CallID = s.answered()
		case "name":
			t, n := s.heard()
			a.Name = s.short(t)
			s.r.TextBytes += int64(n)
		case "parts":
			a.content(s, func() {
				if !s.null() {
					s.list(func() { s.geminiPart(nil) })
				}
			})
		default: // response
			s.reads()
		}
	}
	if turn == nil {
		s.answer(first, -1, &a, false)
	} else {
		s.result(a, start, first, false)
	}
	for i := first; i < len(s.r.Images); i++ {
		s.r.Images[i].boxed = true
	}
}

// geminiCall reads a call of a function.
func (s *scan) geminiCall(turn *Turn) {
	if s.peek() != '{' {
		s.skip()
		return
	}
	start, c := s.i, Call{unnumbered: true}
	for name := range s.members() {
		switch name {
		case "id":
			c.ID = s.word()
		case "name":
			c.Name = s.word()
		case "args":
			c.Arguments, _ = s.spanned()
		default:
			s.skip()
		}
	}
	if turn != nil {
		s.call(c, start)
	}
}

func (s *scan) geminiSignature(turn *Turn) {
	if value, n := s.quoted(); turn != nil && value.Len() > 0 && n > 0 {
		s.signature(value)
	}
}
