// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"slices"
)

// Segment is a piece of what an edit puts in: Text as it is or, where Data is set,
// the first Size bytes of Data in standard base64 with padding (RFC 4648 §4).
type Segment struct {
	Text []byte
	Data io.ReaderAt
	Size int64
}

// Edit puts Segments in the place of Span; an empty Span inserts before the byte
// at its Start, and no Segments delete.
type Edit struct {
	Span     Span
	Segments []Segment
}

// Range is a place where a spliced body differs from the client's: at the client's
// byte Offset, Inserted bytes stand in the place of Deleted ones.
type Range struct {
	Offset   int64 `json:"offset"`
	Deleted  int64 `json:"deleted"`
	Inserted int64 `json:"inserted"`
}

// largestData bounds Segment.Size, so that lengths cannot overflow: a pebibyte.
const largestData = 1 << 50

// Spliced is a body with edits. It holds neither a copy of the body nor of the
// data: both must stay as they are for as long as it is read. It may be read by
// several at once.
type Spliced struct {
	pieces []Segment
	ranges []Range
	size   int64
}

// Splice applies edits to a body. Their order does not matter, but that those that
// insert at the same byte do so in the order given, before an edit that begins
// there. An edit that changes nothing is none. The error is an *Error with BadEdit.
func Splice(body []byte, edits []Edit) (*Spliced, error) {
	sorted := ordered(edits)
	s := &Spliced{size: int64(len(body))}
	at, end := 0, 0 // what is in s already; the end of the edits so far
	for _, e := range sorted {
		if e.Span.Start < end || e.Span.End < e.Span.Start || e.Span.End > len(body) {
			return nil, &Error{Reason: BadEdit, Offset: e.Span.Start}
		}
		end = e.Span.End
		if e.idle(body) {
			continue
		}
		s.text(body[at:e.Span.Start])
		at = end
		inserted := int64(0)
		for _, g := range e.Segments {
			if g.Data == nil && g.Size != 0 || g.Data != nil && (g.Size < 0 || g.Size > largestData || len(g.Text) > 0) {
				return nil, &Error{Reason: BadEdit, Offset: e.Span.Start}
			}
			inserted += g.len()
			if g.Data == nil {
				s.text(g.Text)
			} else if g.Size > 0 {
				s.pieces = append(s.pieces, g)
			}
		}
		s.changed(Range{int64(e.Span.Start), int64(e.Span.Len()), inserted})
	}
	s.text(body[at:])
	return s, nil
}

// idle reports whether the edit puts in what stands there already.
func (e Edit) idle(body []byte) bool {
	old := body[e.Span.Start:e.Span.End]
	for _, g := range e.Segments {
		if g.Size != 0 || !bytes.HasPrefix(old, g.Text) {
			return false
		}
		old = old[len(g.Text):]
	}
	return len(old) == 0
}

// len is how long the segment is in the body, in bytes.
func (g Segment) len() int64 {
	if g.Data == nil {
		return int64(len(g.Text))
	}
	return (g.Size + 2) / 3 * 4
}

func (s *Spliced) text(b []byte) {
	if len(b) > 0 {
		s.pieces = append(s.pieces, Segment{Text: b})
	}
}

// changed adds a range, to the last one where they touch.
func (s *Spliced) changed(r Range) {
	s.size += r.Inserted - r.Deleted
	if n := len(s.ranges) - 1; n >= 0 && s.ranges[n].Offset+s.ranges[n].Deleted == r.Offset {
		s.ranges[n].Deleted += r.Deleted
		s.ranges[n].Inserted += r.Inserted
		return
	}
	s.ranges = append(s.ranges, r)
}

// Len is how long the body is, in bytes, with the edits.
func (s *Spliced) Len() int64 { return s.size }

// Ranges are where the body differs from the client's, ascending and apart. Taking
// the inserted bytes out, and the deleted ones back in, gives the client's.
func (s *Spliced) Ranges() []Range { return slices.Clone(s.ranges) }

// Changed reports whether the body differs from the client's.
func (s *Spliced) Changed() bool { return len(s.ranges) > 0 }

// Reader reads the body from its beginning; it is an io.WriterTo too. It yields
// exactly Len bytes, or fails with an *Error with ShortData: it never pads.
func (s *Spliced) Reader() io.Reader { return &splicedReader{pieces: s.pieces} }

type splicedReader struct {
	pieces []Segment // what is left to read
	at     int64     // in the first piece: bytes of Text, or raw ones of Data
	read   int64     // bytes of the body
	out    [4]byte   // a group that found no room
	left   []byte    // of out
	err    error
}

// rawChunk is how many bytes of data are encoded at once: whole groups, which fill
// a buffer of the pool when they are encoded.
const rawChunk = 12 << 10

// Read copies texts and encodes data into p.
func (r *splicedReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && r.err == nil {
		n += r.some(p[n:])
	}
	r.read += int64(n)
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

// some reads a bit of the first piece into p, which has room, or sets err.
func (r *splicedReader) some(p []byte) int {
	if len(r.left) > 0 {
		n := copy(p, r.left)
		r.left = r.left[n:]
		return n
	}
	if len(r.pieces) == 0 {
		r.err = io.EOF
		return 0
	}
	first := r.pieces[0]
	if first.Data == nil {
		n := copy(p, first.Text[r.at:])
		r.pass(int64(n), int64(len(first.Text)))
		return n
	}
	if len(p) < len(r.out) {
		r.left = r.out[:r.encode(r.out[:], first)]
		return 0
	}
	return r.encode(p, first)
}

// encode puts whole groups of the data into p, which has room for one.
func (r *splicedReader) encode(p []byte, g Segment) int {
	buf, _ := buffers.Get().(*[16 << 10]byte)
	defer buffers.Put(buf)
	raw := buf[:min(int64(len(p)/4*3), rawChunk, g.Size-r.at)]
	if n, err := g.Data.ReadAt(raw, r.at); n < len(raw) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		r.err = &Error{Reason: ShortData, Offset: int(r.read), Cause: err}
		return 0
	}
	base64.StdEncoding.Encode(p, raw)
	r.pass(int64(len(raw)), g.Size)
	return base64.StdEncoding.EncodedLen(len(raw))
}

// pass goes on by n in the first piece, and to the next one at its end.
func (r *splicedReader) pass(n, size int64) {
	if r.at += n; r.at == size {
		r.pieces, r.at = r.pieces[1:], 0
	}
}

// WriteTo writes the rest to w, as io.Copy does; texts are not copied.
func (r *splicedReader) WriteTo(w io.Writer) (int64, error) {
	buf, _ := buffers.Get().(*[16 << 10]byte)
	defer buffers.Put(buf)
	total := int64(0)
	for {
		var b []byte
		if len(r.left) == 0 && len(r.pieces) > 0 && r.pieces[0].Data == nil && r.err == nil {
			b = r.pieces[0].Text[r.at:]
			r.pass(int64(len(b)), int64(len(b))+r.at)
			r.read += int64(len(b))
		} else {
			n, err := r.Read(buf[:])
			if errors.Is(err, io.EOF) {
				return total, nil
			}
			if err != nil {
				return total, err
			}
			b = buf[:n]
		}
		n, err := w.Write(b)
		if total += int64(n); err != nil {
			return total, err
		}
	}
}
