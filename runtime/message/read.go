// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// Reader yields the decoded bytes of an image's inline data, in pieces: for a
// hash and for the probe of its header. It takes what one vendor or another
// does: the standard and the URL-safe alphabet (RFC 4648), padding or none, line
// breaks, and JSON's escapes. Anything else is an *Error with BadBase64, after
// the bytes that came before it.
//
// It reads the body, which must stay as it was scanned. The zero Reader is empty.
type Reader struct {
	body    []byte
	i, end  int
	escaped bool
	out     [3]byte // what was decoded and found no room
	pending []byte  // of out
	err     error   // what comes after pending
}

// NewReader returns a Reader of an image of the body; it is empty for one that
// is not Inline.
func NewReader(body []byte, image *Image) *Reader {
	return newReader(body, image.Data, image.Escaped)
}

func newReader(body []byte, data Span, escaped bool) *Reader {
	return &Reader{body: body, i: data.Start, end: data.End, escaped: escaped}
}

// Read decodes into p.
func (r *Reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.pending) > 0 {
			c := copy(p[n:], r.pending)
			r.pending = r.pending[c:]
			n += c
			continue
		}
		if r.err != nil {
			break
		}
		read, written := groups(p[n:], r.body[r.i:r.end])
		r.i += read
		if n += written; n < len(p) {
			r.group()
		}
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

var buffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// WriteTo decodes the rest into w, as io.Copy does.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	buf, _ := buffers.Get().(*[16 << 10]byte)
	defer buffers.Put(buf)
	total := int64(0)
	for {
		n, err := r.Read(buf[:])
		if n > 0 {
			written, failed := w.Write(buf[:n])
			total += int64(written)
			if failed != nil {
				return total, failed
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// group decodes the next four characters, or what the data ends with, one by one.
func (r *Reader) group() {
	var sum uint32
	for n := 0; n < 4; {
		at := r.i
		c, more := r.next()
		switch v := sextets[c]; {
		case !more:
			r.last(n, sum, at)
			return
		case c == '\r' || c == '\n':
		case c == '=':
			if n < 2 || !r.padded(3-n) {
				r.bad(at)
				return
			}
			r.last(n, sum, at)
			return
		case v == invalid:
			r.bad(at)
			return
		default:
			sum = sum<<6 | v
			n++
		}
	}
	r.out = [3]byte{byte(sum >> 16), byte(sum >> 8), byte(sum)}
	r.pending = r.out[:]
}

// last ends the data with a group of n characters.
func (r *Reader) last(n int, sum uint32, at int) {
	switch n {
	case 1:
		r.bad(at)
		return
	case 2:
		r.out[0] = byte(sum >> 4)
		r.pending = r.out[:1]
	case 3:
		r.out[0], r.out[1] = byte(sum>>10), byte(sum>>2)
		r.pending = r.out[:2]
	}
	r.err = io.EOF
}

// padded passes what may follow the first '=': so many more, and line breaks.
func (r *Reader) padded(signs int) bool {
	for {
		switch c, more := r.next(); {
		case !more:
			return signs == 0
		case c == '=':
			signs--
		case c != '\r' && c != '\n':
			return false
		}
	}
}

func (r *Reader) bad(at int) { r.err = &Error{Reason: BadBase64, Offset: at} }

// next is the next character, unescaped.
func (r *Reader) next() (c byte, more bool) {
	if r.i >= r.end {
		return 0, false
	}
	if c = r.body[r.i]; c != '\\' || !r.escaped {
		r.i++
		return c, true
	}
	char, long, short := unescape(r.body[r.i:r.end])
	r.i += max(long, 1)
	if short != 1 {
		return 0, true // no character of base64
	}
	return byte(char), true
}

// invalid marks bytes that are no character of base64.
const invalid = 1 << 31

// sextets gives the six bits of a character of either alphabet; shifted are the
// same for each place in a group.
var (
	sextets = alphabet(0)
	shifted = [3][256]uint32{alphabet(18), alphabet(12), alphabet(6)}
)

func alphabet(shift int) (table [256]uint32) {
	for c := range table {
		table[c] = invalid
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		table[c] = uint32(i) << shift
	}
	table['-'], table['_'] = table['+'], table['/']
	return table
}

// groups decodes whole groups of four characters, two at a time, up to the first
// byte that is none of base64 or to the end of either slice. It is why preflight
// costs less than twice its hash.
func groups(dst, src []byte) (read, written int) {
	first, second, third, fourth := &shifted[0], &shifted[1], &shifted[2], &sextets
	for len(src)-read >= 8 && len(dst)-written >= 8 {
		s, d := src[read:read+8:read+8], dst[written:written+8:written+8]
		a := first[s[0]] | second[s[1]] | third[s[2]] | fourth[s[3]]
		b := first[s[4]] | second[s[5]] | third[s[6]] | fourth[s[7]]
		if (a|b)&invalid != 0 {
			break
		}
		binary.BigEndian.PutUint64(d, uint64(a)<<40|uint64(b)<<16)
		read += 8
		written += 6
	}
	for len(src)-read >= 4 && len(dst)-written >= 3 {
		s := src[read : read+4 : read+4]
		a := first[s[0]] | second[s[1]] | third[s[2]] | fourth[s[3]]
		if a&invalid != 0 {
			break
		}
		dst[written], dst[written+1], dst[written+2] = byte(a>>16), byte(a>>8), byte(a)
		read += 4
		written += 3
	}
	return read, written
}

// decodeHead decodes the head that facts tell, and reports whether it is base64
// of at most MaxHead bytes.
func decodeHead(body []byte, t text) ([]byte, bool) {
	room := min(t.size/4*3+3, MaxHead) + 1
	head, n := make([]byte, room), 0
	r := newReader(body, t.Span, t.escaped)
	for n < room {
		m, err := r.Read(head[n:])
		n += m
		if err != nil {
			return head[:n:n], errors.Is(err, io.EOF)
		}
	}
	return nil, false
}
