// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package thread

import "bytes"

// MaxItem is the longest JSON text that is kept to be read: 1 MiB. A longer item,
// such as a generated image, is stepped over.
const MaxItem = 1 << 20

// Bounds of a scan.
const (
	maxKey      = 32      // no member's name that is looked for is longer
	smallBuffer = 4 << 10 // what a scan keeps for the next text
)

// member is a value that a scan gives out.
type member uint8

const (
	other            member = iota
	typeMember              // "type" of an event
	itemMember              // "item" of an event
	responseMember          // "response" of an event: looked into
	outputMember            // "output" of a response: looked into
	elementMember           // an element of "output"
	idMember                // "id" of a response
	conversationName        // "conversation" of a response
)

// frame is a container that is looked into: an event or a response as a whole, a
// response within an event, and an output.
type frame uint8

const (
	rootFrame frame = iota
	responseFrame
	outputFrame
)

// state is what a scan expects next.
type state uint8

const (
	atValue state = iota
	atFirst       // a value, or the end of the array
	atKey         // a name, or the end of the object
	inKey
	atColon
	inValue
	afterValue
	ended // the text is whole
	dead  // it is malformed
)

// scan reads one JSON text, in pieces of any length, and gives out those few
// members that tell of calls. It holds no more than one of them at a time. It is
// not strict: what it gives out may be malformed.
type scan struct {
	// event says that the text is an event and holds a response; else it is one.
	event bool
	// found is called with each member, whose text is not kept beyond the call.
	found func(m member, text []byte)

	state  state
	frames [3]frame
	level  int // of frames that are open

	key     [maxKey]byte
	keyLen  int  // maxKey+1: of a name that is longer or escaped, and none that is looked for
	escaped bool // in a string, behind a backslash

	// Of the value that is being read.
	member   member
	depth    int // of its brackets that are open
	inString bool
	buf      []byte
	over     bool // longer than MaxItem
}

// reset makes ready for the next text.
func (s *scan) reset() {
	if cap(s.buf) > smallBuffer {
		s.buf = nil
	}
	*s = scan{event: s.event, found: s.found, buf: s.buf[:0]}
}

// write reads a piece of the text.
func (s *scan) write(p []byte) {
	for len(p) > 0 && s.state < ended {
		switch s.state {
		case inValue:
			p = p[s.value(p):]
		case inKey:
			p = p[s.name(p):]
		default:
			if !isSpace(p[0]) {
				s.step(p[0])
				if s.state == inValue { // what begins a value is of it
					continue
				}
			}
			p = p[1:]
		}
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// step reads one byte between values and names.
func (s *scan) step(b byte) {
	switch {
	case s.state == atColon && b == ':':
		s.state = atValue
	case s.state == atKey && b == '"':
		s.state, s.keyLen = inKey, 0
	case s.state == afterValue && b == ',':
		if s.state = atKey; s.frames[s.level-1] == outputFrame {
			s.state = atValue
		}
	case (s.state == atKey || s.state == afterValue) && b == '}' && s.frames[s.level-1] != outputFrame,
		(s.state == atFirst || s.state == afterValue) && b == ']' && s.frames[s.level-1] == outputFrame:
		s.level--
		if s.state = afterValue; s.level == 0 {
			s.state = ended
		}
	case s.state == atValue || s.state == atFirst:
		s.begin(b)
	default:
		s.state = dead
	}
}

// begin begins a value.
func (s *scan) begin(b byte) {
	m := s.named()
	switch {
	case s.level == 0 && b == '{':
		s.open(rootFrame)
	case s.level == 0, b == '}', b == ']', b == ',', b == ':':
		s.state = dead
	case m == responseMember && b == '{':
		s.open(responseFrame)
	case m == outputMember && b == '[':
		s.open(outputFrame)
	default:
		s.state, s.member, s.depth, s.inString, s.escaped, s.over = inValue, m, 0, false, false, false
		s.buf = s.buf[:0]
	}
}

func (s *scan) open(f frame) {
	s.frames[s.level] = f
	s.level++
	if s.state = atKey; f == outputFrame {
		s.state = atFirst
	}
}

// named is which member the value is that begins.
func (s *scan) named() member {
	if s.level == 0 {
		return other
	}
	at := s.frames[s.level-1]
	if at == outputFrame {
		return elementMember
	}
	key := string(s.key[:min(s.keyLen, maxKey)])
	if s.event && at == rootFrame {
		switch key {
		case "type":
			return typeMember
		case "item":
			return itemMember
		case "response":
			return responseMember
		}
		return other
	}
	switch key {
	case "id":
		return idMember
	case "conversation":
		return conversationName
	case "output":
		return outputMember
	}
	return other
}

// name reads on in a member's name, and returns how many bytes are of it. A name
// with an escape is none that is looked for.
func (s *scan) name(p []byte) int {
	for i, b := range p {
		switch {
		case s.escaped:
			s.escaped = false
		case b == '\\':
			s.escaped, s.keyLen = true, maxKey+1
		case b == '"':
			s.state = atColon
			return i + 1
		case s.keyLen < maxKey:
			s.key[s.keyLen] = b
			s.keyLen++
		default:
			s.keyLen = maxKey + 1
		}
	}
	return len(p)
}

// value reads on in a value, and returns how many bytes are of it.
func (s *scan) value(p []byte) int {
	n, whole := s.extent(p)
	s.keep(p[:n])
	if whole {
		s.state = afterValue
		if s.member != other && !s.over {
			s.found(s.member, s.buf)
		}
		if cap(s.buf) > smallBuffer {
			s.buf = nil
		}
	}
	return n
}

// extent is how many bytes are of the value, and whether it ends with them.
func (s *scan) extent(p []byte) (n int, whole bool) {
	for n < len(p) {
		if s.inString {
			n += s.text(p[n:])
			if !s.inString && s.depth == 0 {
				return n, true
			}
			continue
		}
		switch p[n] {
		case '"':
			s.inString = true
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth == 0 { // a number or a word ends before it
				return n, true
			}
			if s.depth--; s.depth == 0 {
				return n + 1, true
			}
		case ',':
			if s.depth == 0 {
				return n, true
			}
		}
		n++
	}
	return n, false
}

// text reads on in a string behind its first quote, and returns how many bytes
// are of it.
func (s *scan) text(p []byte) int {
	if s.escaped && len(p) > 0 {
		s.escaped = false
		return 1
	}
	end := bytes.IndexByte(p, '"')
	within := p
	if end >= 0 {
		within = p[:end]
	}
	if i := bytes.IndexByte(within, '\\'); i >= 0 {
		s.escaped = true
		return i + 1
	}
	if end < 0 {
		return len(p)
	}
	s.inString = false
	return end + 1
}

// keep keeps what is read of a member that is given out.
func (s *scan) keep(p []byte) {
	if s.member == other || s.over {
		return
	}
	if len(s.buf)+len(p) > MaxItem {
		s.over, s.buf = true, nil
		return
	}
	s.buf = append(s.buf, p...)
}
