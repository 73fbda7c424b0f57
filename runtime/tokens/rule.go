// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"math"
	"strings"
)

// rule is a formula with its numbers filled in. Rules hold no state and are safe
// for concurrent use. Details come in canonical form.
type rule interface {
	// check says what is wrong with the numbers, or nothing.
	check() string
	// sized reports whether the count depends on the image's size.
	sized(detail string) bool
	// measure counts an image of a known size; the size is zero when sized says
	// that it does not matter.
	measure(s Size, detail string) (count, refusal)
	// most is what an image of unknown size may cost at most.
	most(detail string) int64
	// max is the most that any image costs at any detail; 0 when nothing bounds it.
	max() int64
	// basis says in a few words how e was counted.
	basis(e Estimate) string
}

// preparer is a rule that computes what does not depend on the image once, after
// its numbers are checked.
type preparer interface{ prepared() rule }

// count is the outcome of a rule.
type count struct {
	tokens  int64
	resized Size
	// cols and rows are the grid, parts the number of cells, tiles or crops, where
	// the rule has them.
	cols, rows, parts int64
	// unsized is set when the size was needed and not known.
	unsized bool
}

// refusal is the vendor's no; its limit is empty when there is none.
type refusal struct {
	limit, unit   string
	value, actual int64
}

// accepted is no refusal.
var accepted = refusal{}

func (r refusal) error(e *entry) *RejectError {
	return &RejectError{Family: e.Name, Limit: r.limit, Unit: r.unit, Value: r.value, Actual: r.actual, Source: e.Sources[0]}
}

// auto is the canonical form of a detail that is not given.
const auto = "auto"

// canonicalDetail brings the words that vendors use into one form: lower case,
// underscores, without Gemini's prefix, auto when nothing is asked for. It
// allocates only for a word that has to change.
func canonicalDetail(detail string) string {
	switch detail {
	case "", auto:
		return auto
	case "low", "medium", "high", "original":
		return detail
	}
	d := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(detail)), "-", "_")
	d = strings.TrimPrefix(d, "media_resolution_")
	switch d {
	case "", "unspecified", "default":
		return auto
	}
	return d
}

// ceilDiv is a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// isqrt is the integer square root of n, for 0 <= n < 2^62.
func isqrt(n int64) int64 {
	r := int64(math.Sqrt(float64(n)))
	for r*r > n {
		r--
	}
	for (r+1)*(r+1) <= n {
		r++
	}
	return r
}

// fitLong scales s down so that its long side is at most most pixels; the short
// side is rounded to the nearest pixel, halves up, and is at least 1. Integers
// throughout. It never enlarges.
func fitLong(s Size, most int64) Size {
	long := s.long()
	if long <= most {
		return s
	}
	short := max((2*s.short()*most+long)/(2*long), 1)
	if s.Width >= s.Height {
		return Size{Width: most, Height: short}
	}
	return Size{Width: short, Height: most}
}

// grid is a count of cols x rows cells of so many tokens each.
func grid(s Size, cols, rows, tokens int64) count {
	return count{tokens: cols * rows * tokens, resized: s, cols: cols, rows: rows, parts: cols * rows}
}
