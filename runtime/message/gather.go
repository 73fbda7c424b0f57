// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

// marks are how many of each there were before a turn.
type marks struct{ images, calls, results, texts, signatures int }

func (s *scan) found() marks {
	r := s.r
	return marks{len(r.Images), len(r.Calls), len(r.Results), len(r.Texts), len(r.Signatures)}
}

// settle drops what the turn that was just passed cannot have said: a role may
// come after everything else.
func (s *scan) settle(turn *Turn, first marks) {
	r := s.r
	assistant := turn.Role == Assistant
	if !assistant {
		r.Calls, r.Signatures = r.Calls[:first.calls], r.Signatures[:first.signatures]
	} else if first.calls == 0 || r.Calls[first.calls-1].Turn < len(r.Turns)-1 {
		s.next = first.calls
	}
	turn.Signed = len(r.Signatures) > first.signatures
	if (assistant || turn.Role == System) && len(r.Results) > first.results {
		r.Results = r.Results[:first.results]
		for i := first.images; i < len(r.Images); i++ {
			r.Images[i].Result = -1
		}
	}
	if !turn.Human() {
		r.Texts = r.Texts[:first.texts]
	}
}

// fits reports whether there is room for one more of what there are so many of,
// and fails where there is none.
func (s *scan) fits(n, start int) bool {
	if n >= MaxParts {
		s.fail(TooMany, start)
	}
	return s.err == nil
}

// call adds the value that was just passed as a call.
func (s *scan) call(c Call, start int) {
	if s.fits(len(s.r.Calls), start) {
		c.Turn, c.Span, c.way = len(s.r.Turns), Span{start, s.i}, s.way()
		s.r.Calls = add(s.r.Calls, c, 4)
	}
}

// result adds the object that was just passed as a result, and marks the images
// from first on as its parts.
func (s *scan) result(a Result, start, first int, fixed bool) {
	if s.fits(len(s.r.Results), start) {
		a.Turn, a.Call, a.Object, a.way = len(s.r.Turns), -1, Span{start, s.i}, s.way()
		s.answer(first, len(s.r.Results), &a, fixed)
		s.r.Results = add(s.r.Results, a, 4)
	}
}

// text adds a string of a part, the value that was just passed, as a human's.
func (s *scan) text(value Span, start int) {
	if s.fits(len(s.r.Texts), start) {
		s.r.Texts = add(s.r.Texts, Text{Turn: len(s.r.Turns), Value: value, Part: Span{start, s.i}, way: s.way()}, 4)
	}
}

// said reads a bare string as a human's text.
func (s *scan) said() {
	s.peek()
	start := s.i
	s.reads()
	s.text(Span{start, s.i}, start)
}

// answered passes the id of a call, which a result mostly has from the next call
// that has none: then it is the same string.
func (s *scan) answered() string {
	t, _ := s.optional()
	if s.next < len(s.r.Calls) && s.r.Calls[s.next].ID == string(s.b[t.Start:t.End]) && !t.escaped {
		s.next++
		return s.r.Calls[s.next-1].ID
	}
	return s.short(t)
}

// add appends one more; the first one makes room for so many at once.
func add[T any](all []T, one T, first int) []T {
	if all == nil {
		all = make([]T, 0, first)
	}
	return append(all, one)
}

func (s *scan) signature(span Span) {
	if s.fits(len(s.r.Signatures), span.Start) {
		s.r.Signatures = append(s.r.Signatures, Signature{len(s.r.Turns), span})
	}
}

// content keeps where a result's content stands.
func (a *Result) content(s *scan, read func()) {
	null := s.peek() == 'n'
	start := s.i
	read()
	if null {
		a.Null = Span{start, s.i}
	} else {
		a.Content = Span{start, s.i}
	}
}
