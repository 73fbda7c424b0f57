// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"math"
)

// rowRule is the rule of Mistral and Pixtral: fit the long side, cover the image
// with cells, and add one token at the end of each row.
//
// Published as code (mistral-common, image.py), which scales by
// round-half-to-even of side/ratio in float64; so does this. A side that would
// round to 0 stays 1 px.
type rowRule struct {
	// Cell is the side of a token in pixels, MaxSide the longest side kept.
	Cell    int64 `json:"cell"`
	MaxSide int64 `json:"maxSide"`
	// RejectSide is the longest side that the vendor accepts; 0 when none is known.
	RejectSide int64 `json:"rejectSide,omitempty"`
}

func (r rowRule) check() string {
	if r.Cell <= 0 || r.MaxSide < r.Cell || r.RejectSide < 0 {
		return "numbers out of range"
	}
	return ""
}

func (r rowRule) sized(string) bool { return true }

func (r rowRule) measure(s Size, _ string) (count, refusal) {
	if r.RejectSide > 0 && s.long() > r.RejectSide {
		return count{}, refusal{limit: "longest side", unit: "px", value: r.RejectSide, actual: s.long()}
	}
	if ratio := float64(s.long()) / float64(r.MaxSide); ratio > 1 { // of both sides' ratios the larger
		s = Size{Width: scaleEven(s.Width, ratio), Height: scaleEven(s.Height, ratio)}
	}
	c := grid(s, ceilDiv(s.Width, r.Cell), ceilDiv(s.Height, r.Cell), 1)
	c.tokens += c.rows
	return c, accepted
}

// scaleEven is side/ratio, rounded half to even, at least 1.
func scaleEven(side int64, ratio float64) int64 {
	return max(int64(math.RoundToEven(float64(side)/ratio)), 1)
}

func (r rowRule) most(string) int64 {
	side := ceilDiv(r.MaxSide, r.Cell)
	return (side + 1) * side
}

func (r rowRule) max() int64 { return r.most(auto) }

func (r rowRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px cells of %s: %d rows of %d and a row end", r.Cell, e.Resized, e.count.rows, e.count.cols)
}
