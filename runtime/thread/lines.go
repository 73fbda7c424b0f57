// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package thread

import "bytes"

// lines takes a stream of events apart (WHATWG HTML, server-sent events): it
// passes on the data of each event in pieces, as they come, and says when an event
// ends. Other fields and comments are left out. Lines may end in CR, LF or both.
type lines struct {
	data     func(piece []byte)
	dispatch func()

	begun  bool // something other than a byte order mark has come
	wasCR  bool // a line feed that follows is of the same end
	at     lineState
	column int // of the field's name, or of the byte order mark
	any    bool
}

type lineState uint8

const (
	inName lineState = iota
	atSpace
	inData
	skipping
)

const (
	dataField = "data:"
	byteOrder = "\ufeff"
)

func (l *lines) write(p []byte) {
	for len(p) > 0 {
		if l.wasCR {
			if l.wasCR = false; p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		if l.at == inData || l.at == skipping {
			p = p[l.rest(p):]
			continue
		}
		b := p[0]
		if b == '\n' || b == '\r' {
			l.end(b)
			p = p[1:]
			continue
		}
		if l.at == atSpace {
			if l.at = inData; b == ' ' {
				p = p[1:]
			}
			continue
		}
		l.field(b)
		p = p[1:]
	}
}

// rest reads on to the line's end, and returns how many bytes are of it.
func (l *lines) rest(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	within := p
	if end >= 0 {
		within = p[:end]
	}
	if i := bytes.IndexByte(within, '\r'); i >= 0 {
		end, within = i, p[:i]
	}
	if l.at == inData && len(within) > 0 {
		l.data(within)
	}
	if end < 0 {
		return len(p)
	}
	l.end(p[end])
	return end + 1
}

// field reads a byte of the line's first, its field's name.
func (l *lines) field(b byte) {
	if !l.begun {
		if b == byteOrder[l.column] {
			if l.column++; l.column == len(byteOrder) {
				l.begun, l.column = true, 0
			}
			return
		}
		l.begun = true
	}
	if b != dataField[l.column] {
		l.at = skipping
		return
	}
	if l.column++; l.column < len(dataField) {
		return
	}
	l.at = atSpace
	if l.any {
		l.data([]byte{'\n'}) // between the lines of one event's data
	}
	l.any = true
}

// end ends a line; a blank one ends the event.
func (l *lines) end(b byte) {
	l.wasCR, l.begun = b == '\r', true
	if l.at == inName && l.column == 0 {
		l.dispatch()
		l.any = false
	}
	l.at, l.column = inName, 0
}
