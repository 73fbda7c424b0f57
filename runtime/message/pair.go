// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"cmp"
	"slices"
)

// pair tells for each result which call it answers. A step is a run of the
// assistant's turns with the turns after it up to the next one of the assistant's;
// its results answer its own calls alone.
func (r *Request) pair() {
	calls, results := r.Calls, r.Results
	var p pairing
	for t := 0; t < len(r.Turns) && len(calls) > 0 && len(results) > 0; {
		for t < len(r.Turns) && r.Turns[t].Role != Assistant {
			t++
		}
		for len(results) > 0 && results[0].Turn < t {
			results = results[1:]
		}
		for t < len(r.Turns) && r.Turns[t].Role == Assistant {
			t++
		}
		made := 0
		for made < len(calls) && calls[made].Turn < t {
			made++
		}
		for t < len(r.Turns) && r.Turns[t].Role != Assistant {
			t++
		}
		given := 0
		for given < len(results) && results[given].Turn < t {
			given++
		}
		p.step(calls[:made], results[:given], len(r.Calls)-len(calls))
		calls, results = calls[made:], results[given:]
	}
}

// label is what calls and results are paired by: an id, or a name where the wire
// has no ids.
type label struct {
	text   string
	named  bool
	number int // in the step
}

func (l label) compare(o label) int {
	return cmp.Or(cmp.Compare(l.text, o.text), cmp.Compare(b2i(l.named), b2i(o.named)), l.number-o.number)
}

func (l label) same(o label) bool { return l.text == o.text && l.named == o.named }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pairing holds the labels of a step, so that the next one allocates nothing.
type pairing struct{ calls, results []label }

// step pairs the calls of a step, of which the first is number base, with its results.
func (p *pairing) step(calls []Call, results []Result, base int) {
	p.calls, p.results = p.calls[:0], p.results[:0]
	for i, c := range calls {
		if l := (label{c.ID, false, i}); l.text != "" {
			p.calls = append(p.calls, l)
		} else if c.unnumbered && c.Name != "" {
			p.calls = append(p.calls, label{c.Name, true, i})
		}
	}
	for i, a := range results {
		if l := (label{a.CallID, false, i}); l.text != "" {
			p.results = append(p.results, l)
		} else if a.unnumbered && a.Name != "" {
			p.results = append(p.results, label{a.Name, true, i})
		}
	}
	slices.SortFunc(p.calls, label.compare)
	slices.SortFunc(p.results, label.compare)
	left := p.calls
	for first := 0; first < len(p.results); {
		l, end := p.results[first], first
		for end < len(p.results) && p.results[end].same(l) {
			end++
		}
		for len(left) > 0 && !left[0].same(l) && left[0].compare(l) < 0 {
			left = left[1:]
		}
		made := 0
		for made < len(left) && left[made].same(l) {
			made++
		}
		if made > 0 && (!l.named || made == end-first) {
			for i, result := range p.results[first:end] {
				results[result.number].Call = base + left[min(i, made-1)].number
			}
		}
		left, first = left[made:], end
	}
}
