// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"math"
)

// bisectRule is Anthropic's rule: cells of 28 px; an image whose cells pass the
// edge or the count is shrunk to the largest size that fits, found by bisecting
// the long side.
//
// Published with reference code in eight languages
// (platform.claude.com/docs/en/build-with-claude/vision-coordinates), which
// computes the short side as round-half-to-even of side/aspect in float64; so
// does this.
type bisectRule struct {
	Cell int64 `json:"cell"`
	// MaxEdge bounds each side in pixels, after rounding up to whole cells.
	MaxEdge int64 `json:"maxEdge"`
	// MaxTokens bounds the cells.
	MaxTokens int64 `json:"maxTokens"`
}

func (r bisectRule) check() string {
	if r.Cell <= 0 || r.MaxEdge < r.Cell || r.MaxTokens <= 0 {
		return "numbers out of range"
	}
	return ""
}

func (r bisectRule) sized(string) bool { return true }

func (r bisectRule) fits(long, short int64) bool {
	cols, rows := ceilDiv(long, r.Cell), ceilDiv(short, r.Cell)
	return cols*r.Cell <= r.MaxEdge && rows*r.Cell <= r.MaxEdge && cols*rows <= r.MaxTokens
}

func (r bisectRule) measure(s Size, _ string) (count, refusal) {
	long, short := s.long(), s.short()
	if !r.fits(long, short) {
		long, short = r.largest(long, short)
	}
	if s.Width >= s.Height {
		s = Size{Width: long, Height: short}
	} else {
		s = Size{Width: short, Height: long}
	}
	return grid(s, ceilDiv(s.Width, r.Cell), ceilDiv(s.Height, r.Cell), 1), accepted
}

// largest bisects the long side between 1, which fits, and its own length, which
// does not.
func (r bisectRule) largest(long, short int64) (int64, int64) {
	aspect := float64(long) / float64(short)
	lo, hi, kept := int64(1), long, int64(1)
	for lo+1 < hi {
		mid := (lo + hi) / 2
		other := max(int64(math.RoundToEven(float64(mid)/aspect)), 1)
		if r.fits(mid, other) {
			lo, kept = mid, other
		} else {
			hi = mid
		}
	}
	return lo, kept
}

func (r bisectRule) most(string) int64 { return r.MaxTokens }
func (r bisectRule) max() int64        { return r.MaxTokens }

func (r bisectRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px cells of %s: %d x %d", r.Cell, e.Resized, e.count.cols, e.count.rows)
}
