// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how many objects and arrays may stand within each other. The
// deepest thing in a request is a tool's schema, and vendors take about ten
// levels there; protocol buffers, which Gemini reads into, stop at 100.
const MaxDepth = 256

// scanner walks over JSON once. It allocates nothing for what it passes, and
// after a failure every method does nothing, so that callers look at err once.
type scanner struct {
	b     []byte
	i     int // the next byte
	depth int
	// waste counts the bytes so far that are white space between tokens, and
	// those that escapes take beyond what they stand for.
	waste int
	steps []passed // the way to the value at the cursor
	err   *Error
}

// text is a string of the body.
type text struct {
	Span    // between the quotes
	escaped bool
	size    int // in bytes of UTF-8, after unescaping
}

// fail stops the scanner; the first failure counts.
func (s *scanner) fail(reason Reason, offset int) {
	if s.err == nil {
		s.err = &Error{Reason: reason, Offset: offset, Path: pathOf(s.here())}
	}
}

// peek returns the first byte of the next token, and 0 after a failure.
func (s *scanner) peek() byte {
	if s.err != nil {
		return 0
	}
	start := s.i
	for ; s.i < len(s.b); s.i++ {
		if c := s.b[s.i]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			s.waste += s.i - start
			return c
		}
	}
	s.fail(NotJSON, s.i)
	return 0
}

// wrong fails because the value that begins with c is not of the type wanted.
func (s *scanner) wrong(c byte) {
	if c == '-' || c >= '0' && c <= '9' || bytes.IndexByte([]byte(`{["tfn`), c) >= 0 {
		s.fail(WrongType, s.i)
		return
	}
	s.fail(NotJSON, s.i)
}

// enter passes the bracket that opens an object or an array.
func (s *scanner) enter(bracket byte) bool {
	if c := s.peek(); c != bracket {
		s.wrong(c)
		return false
	}
	return s.push()
}

func (s *scanner) push() bool {
	if s.depth == MaxDepth {
		s.fail(TooDeep, s.i)
		return false
	}
	s.depth++
	s.i++
	return true
}

// members enters an object and yields its members' names: those of the table
// of names as they stand there, "" for all others. The loop's body must pass
// exactly one value each time.
func (s *scanner) members() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !s.enter('{') {
			return
		}
		var seen nameSet
		for first := true; !s.closed('}', first); first = false {
			at := s.i
			key := s.key()
			name := nameOf(s.b, key)
			if name == nil {
				if other := alike(s.b, key); other != nil {
					s.into(other)
					s.once(&seen, other, at)
					s.back()
				}
				if !yield("") {
					return
				}
				continue
			}
			s.into(name)
			s.once(&seen, name, at)
			if !yield(name.text) {
				return
			}
			s.back()
		}
	}
}

// once fails at a member that the object had already, at its other byte.
func (s *scanner) once(seen *nameSet, name *name, at int) {
	if seen.has(name.id) {
		s.fail(DuplicateMember, at)
	}
	seen.add(name.id)
}

// elements enters an array; the loop's body must pass exactly one value each time.
func (s *scanner) elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		if !s.enter('[') {
			return
		}
		for n := 0; !s.closed(']', n == 0); n++ {
			s.element(n)
			if !yield(n) {
				return
			}
			s.back()
		}
	}
}

// closed passes the comma before the next member or element, or the bracket
// after the last one; then it is true.
func (s *scanner) closed(bracket byte, first bool) bool {
	c := s.peek()
	if c == bracket {
		s.i++
		s.depth--
		return true
	}
	if !first {
		if c != ',' {
			s.fail(NotJSON, s.i)
			return true
		}
		s.i++
		s.peek()
	}
	return s.err != nil
}

// key passes a member's name and the colon after it.
func (s *scanner) key() text {
	t := s.str()
	if s.peek() != ':' {
		s.fail(NotJSON, s.i)
		return t
	}
	s.i++
	return t
}

// str passes a string, and fails at any other value.
func (s *scanner) str() text {
	if s.peek() != '"' {
		s.fail(NotJSON, s.i)
		return text{}
	}
	start, i, surplus := s.i+1, s.i+1, 0
	for {
		n := bytes.IndexByte(s.b[i:], '"')
		if n < 0 {
			s.fail(NotJSON, len(s.b))
			return text{}
		}
		end := i + n
		for i < end {
			n := special(s.b[i:end])
			i += n
			if i == end {
				break
			}
			long, short := escape(s.b[i:])
			if long == 0 {
				s.fail(NotJSON, i)
				return text{}
			}
			i += long
			surplus += long - short
		}
		if i == end {
			s.i = end + 1
			s.waste += surplus
			return text{Span{start, end}, surplus > 0, end - start - surplus}
		}
	}
}

// special is the index of the first backslash or control character, which may
// not stand in a string as it is; len(b) when there is none.
func special(b []byte) int {
	if n := bytes.IndexByte(b, '\\'); n >= 0 {
		b = b[:n]
	}
	return control(b)
}

// control is the index of the first control character, len(b) when there is
// none. It looks at eight bytes at once: less 0x20, a byte has its high bit when
// it was a control character or at least 0xA0; so ASCII, as all base64 is, is
// told from the rest. A borrow can only follow a true hit.
func control(b []byte) int {
	const highs, spaces = 0x8080808080808080, 0x2020202020202020
	i := 0
	for ; len(b)-i >= 64; i += 64 {
		p := b[i : i+64 : i+64]
		q, r := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		s, t := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
		u, v := binary.LittleEndian.Uint64(p[32:]), binary.LittleEndian.Uint64(p[40:])
		w, x := binary.LittleEndian.Uint64(p[48:]), binary.LittleEndian.Uint64(p[56:])
		one := (q - spaces) | q | (r - spaces) | r | (s - spaces) | s | (t - spaces) | t
		two := (u - spaces) | u | (v - spaces) | v | (w - spaces) | w | (x - spaces) | x
		if (one|two)&highs != 0 {
			break
		}
	}
	for ; len(b)-i >= 8; i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		if hit := (v - spaces) &^ v & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] < ' ' {
			return i
		}
	}
	return len(b)
}

// escape tells of the escape that b begins with how long it is, and how many
// bytes of UTF-8 it stands for; 0 and 0 when it is none. Half a surrogate pair
// stands for U+FFFD, as in encoding/json.
func escape(b []byte) (long, short int) {
	_, long, short = unescape(b)
	return long, short
}

// unescape is escape with the character itself.
func unescape(b []byte) (r rune, long, short int) {
	if len(b) < 2 || b[0] != '\\' {
		return 0, 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2, 1
	case 'b':
		return '\b', 2, 1
	case 'f':
		return '\f', 2, 1
	case 'n':
		return '\n', 2, 1
	case 'r':
		return '\r', 2, 1
	case 't':
		return '\t', 2, 1
	}
	r = unit(b)
	if r < 0 {
		return 0, 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6, utf8.RuneLen(r)
	}
	if pair := utf16.DecodeRune(r, unit(b[6:])); pair != utf8.RuneError {
		return pair, 12, 4
	}
	return utf8.RuneError, 6, 3
}

// unit is the number of the \uXXXX that b begins with, -1 when there is none.
func unit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// skip passes any value, and returns where it stands.
func (s *scanner) skip() Span {
	s.peek()
	start, outer := s.i, s.depth
	var arrays [MaxDepth/64 + 1]uint64 // a bit for each depth: in an array, not an object
	for s.err == nil {
		c := s.peek() // a value is due
		switch c {
		case '{', '[':
			if !s.push() {
				return Span{}
			}
			arrays[s.depth/64] &^= 1 << (s.depth % 64)
			if c == '[' {
				arrays[s.depth/64] |= 1 << (s.depth % 64)
			}
			if s.peek() != c+2 { // '}' is '{'+2, and ']' is '['+2
				if c == '{' {
					s.key()
				}
				continue
			}
			s.i++
			s.depth--
		case '"':
			s.str()
		default:
			s.scalar(c)
		}
		for s.depth > outer && s.err == nil { // a value has ended
			array := arrays[s.depth/64]>>(s.depth%64)&1 == 1
			if array && s.closed(']', false) || !array && s.closed('}', false) {
				continue
			}
			if !array {
				s.key()
			}
			break
		}
		if s.depth == outer && s.err == nil {
			return Span{start, s.i}
		}
	}
	return Span{}
}

// scalar passes a number, or true, false or null.
func (s *scanner) scalar(c byte) {
	for _, word := range [...]string{"true", "false", "null"} {
		if c == word[0] {
			if !bytes.HasPrefix(s.b[s.i:], []byte(word)) {
				s.fail(NotJSON, s.i)
				return
			}
			s.i += len(word)
			return
		}
	}
	if n := number(s.b[s.i:]); n > 0 {
		s.i += n
		return
	}
	s.fail(NotJSON, s.i)
}

// number is the length of the number that b begins with, 0 when it is none.
func number(b []byte) int {
	i := 0
	digits := func() bool {
		start := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return 0
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return 0
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return 0
		}
	}
	return i
}
