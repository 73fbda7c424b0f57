// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"strconv"
	"strings"
)

// The most that a request may have, so that a small body of tiny parts does not
// become a large Request. Vendors refuse far fewer images (Gemini takes 3,600),
// and Anthropic, as the most generous, 100,000 messages.
const (
	MaxTurns  = 100_000
	MaxImages = 10_000
	// MaxParts is the most of calls, of results, of texts, of signatures and of
	// references, each.
	MaxParts = 100_000
)

// Scan reads a body in one pass. It copies no image data, and what it allocates
// does not depend on the images' sizes. The body must be one JSON value as RFC
// 8259 has it, byte by byte, data included; text that is not UTF-8 is let pass.
//
// An error is an *Error: the body is no JSON, or no request of the dialect.
// Members and parts that are not known are skipped, a member that is null is not
// there, and an image that is not understood is one with an Unknown source:
// what a vendor thinks of those is its own to say.
//
// A member that matters and stands twice in one object is an error. Vendors'
// parsers differ there (Python's and Go's take the last one, protocol buffers
// refuse), and an image must not be judged by one value and sent by the other. To
// Go's, which Ollama and others read with, "Model" is "model", so it is the same
// member here where both stand; alone, it is one that is not known.
func Scan(d Dialect, body []byte) (*Request, error) {
	read, ok := dialects[d]
	if !ok {
		return nil, &Error{Reason: UnknownDialect}
	}
	s := &scan{scanner: scanner{b: body}, r: &Request{Dialect: d}}
	if c := s.peek(); c != '{' {
		s.wrong(c)
		if s.err.Reason == WrongType {
			s.err.Reason = NotAnObject
		}
		return nil, s.err
	}
	read(s)
	if s.err == nil {
		if rest := bytes.TrimLeft(body[s.i:], " \t\r\n"); len(rest) > 0 {
			s.fail(NotJSON, len(body)-len(rest))
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	s.r.pair()
	return s.r, nil
}

var dialects = map[Dialect]func(*scan){
	OpenAIChat: (*scan).chat, OpenAIResponses: (*scan).responses,
	AnthropicMessages: (*scan).anthropic, GeminiContents: (*scan).gemini,
}

// scan is one reading: the scanner and what it has found.
type scan struct {
	scanner
	r    *Request
	next int // in r.Calls, whose result may come next
}

// missing fails because the object that was just passed lacks a member.
func (s *scan) missing(name string) {
	s.into(names[name])
	s.fail(Missing, s.i)
	s.back()
}

// turn reads a message, by what, as one more turn.
func (s *scan) turn(what func(turn *Turn)) {
	s.peek()
	turn, first, start, before := Turn{}, s.found(), s.i, s.r.TextBytes
	what(&turn)
	if len(s.r.Turns) == MaxTurns {
		s.fail(TooMany, start)
		return
	}
	turn.Span, turn.TextBytes = Span{start, s.i}, s.r.TextBytes-before
	for i := first.images; i < len(s.r.Images); i++ {
		s.r.Images[i].Turn = len(s.r.Turns)
	}
	s.settle(&turn, first)
	s.r.Turns = add(s.r.Turns, turn, 8)
}

// image adds the part that was just passed as an image. One that holds other
// images as well would be two things at once, which every vendor refuses.
func (s *scan) image(i Image, start int) {
	if n := len(s.r.Images); n > 0 && s.r.Images[n-1].Part.Start > start {
		s.fail(WrongType, start)
		return
	}
	if len(s.r.Images) == MaxImages {
		s.fail(TooMany, start)
		return
	}
	i.Part, i.way, i.Result = Span{start, s.i}, s.way(), -1
	s.r.Images = append(s.r.Images, i)
}

// answer marks the images from first on as parts of a result, which is none of
// Request.Results where at is -1.
func (s *scan) answer(first, at int, a *Result, fixed bool) {
	for i := first; i < len(s.r.Images); i++ {
		image := &s.r.Images[i]
		image.InToolResult, image.CallID, image.InError, image.Result = true, a.CallID, a.IsError, at
		image.Fixed = image.Fixed || fixed
	}
}

// measured is counted for a value that what passes.
func (s *scan) measured(what func()) int {
	s.peek()
	start, before := s.i, s.waste
	what()
	return s.i - start - (s.waste - before)
}

// spanned is counted, with where the value stands; a null stands nowhere.
func (s *scan) spanned() (Span, int) {
	c := s.peek()
	start := s.i
	size := s.counted()
	if c == 'n' {
		return Span{}, size
	}
	return Span{start, s.i}, size
}

// quoted is counted, with where the value stands if it is a string.
func (s *scan) quoted() (Span, int) {
	s.peek()
	start := s.i
	t, n := s.heard()
	if t.End == 0 {
		return Span{}, n
	}
	return Span{start, s.i}, n
}

// heard is counted, with the string if the value is one.
func (s *scan) heard() (text, int) {
	if s.peek() != '"' {
		return text{}, s.counted()
	}
	t := s.str()
	return t, t.size
}

// counted passes any value and returns how much a model reads of it: a string's
// text, and other values as compact JSON.
func (s *scan) counted() int {
	if s.peek() == '"' {
		return s.str().size
	}
	before := s.waste
	span := s.skip()
	return span.Len() - (s.waste - before)
}

// reads counts the value at the cursor as text that the model reads.
func (s *scan) reads() { s.r.TextBytes += int64(s.counted()) }

// optional passes a string, or any other value as if nothing were there.
func (s *scan) optional() (t text, ok bool) {
	if s.peek() == '"' {
		return s.str(), true
	}
	s.skip()
	return text{}, false
}

// null passes a null, if that is what comes.
func (s *scan) null() bool {
	if s.peek() == 'n' {
		s.skip()
		return true
	}
	return false
}

// there passes a value and reports whether it is more than null.
func (s *scan) there() bool {
	is := s.peek() != 'n'
	s.skip()
	return is
}

// longestWord bounds strings that are copied: no type, role, media type or id is longer.
const longestWord = 256

// word passes a value and returns it, if it is a string of moderate length.
func (s *scan) word() string {
	t, _ := s.optional()
	return s.short(t)
}

// short is a string of moderate length, "" for longer ones.
func (s *scan) short(t text) string {
	if t.size == 0 || t.size > longestWord {
		return ""
	}
	return s.copied(t)
}

// copied is a short string as Go's; the common words cost nothing.
func (s *scan) copied(t text) string {
	if t.escaped {
		return decoded(s.b, t)
	}
	b := s.b[t.Start:t.End]
	if w, ok := words[string(b)]; ok {
		return w
	}
	return string(b)
}

var words = func() map[string]string {
	all := map[string]string{}
	for w := range strings.FieldsSeq(`
		system developer user assistant tool function model text image_url input_text input_image output_text refusal message
		function_call function_call_output reasoning image document tool_use tool_result thinking base64 url file facts
		computer_call custom_tool_call custom_tool_call_output item_reference redacted_thinking view_image ViewImage
		auto low high original medium ultra_high image/png image/jpeg image/gif image/webp`) {
		all[w] = w
	}
	return all
}()

// yes passes a value and reports whether it is true.
func (s *scan) yes() bool {
	is := s.peek() == 't'
	s.skip()
	return is
}

// whole passes a value and returns it if it is a whole number that is not
// negative; 0 otherwise. Protocol buffers take numbers in strings and with
// exponents too.
func (s *scan) whole() int64 {
	var digits string
	if s.peek() == '"' {
		digits = s.word()
	} else if span := s.skip(); span.Len() <= longestWord {
		digits = string(s.b[span.Start:span.End])
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return max(n, 0)
	}
	const exact = 1 << 53
	if f, err := strconv.ParseFloat(digits, 64); err == nil && f >= 0 && f <= exact && f == float64(int64(f)) {
		return int64(f)
	}
	return 0
}

// model reads the name of the model. Gemini's countTokens may have a second one, in
// the request that it holds.
func (s *scan) model() {
	s.peek()
	start := s.i
	s.r.Model, s.r.SecondModel = s.word(), s.r.ModelValue
	s.r.ModelValue = Span{start, s.i}
}
