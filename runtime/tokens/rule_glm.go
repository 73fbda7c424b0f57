// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import "fmt"

// heightRule is GLM's rule as others worked it out: sides rounded up to whole
// cells, at least MinTokens, and above MaxTokens the largest height that fits,
// found by bisecting, with the width in proportion. In integers, the width cut to
// whole pixels and at least 1; one row that is still too long counts MaxTokens.
type heightRule struct {
	Cell      int64 `json:"cell"`
	MinTokens int64 `json:"minTokens"`
	MaxTokens int64 `json:"maxTokens"`
}

func (r heightRule) check() string {
	if r.Cell <= 0 || r.MinTokens <= 0 || r.MaxTokens < r.MinTokens {
		return "numbers out of range"
	}
	return ""
}

func (r heightRule) sized(string) bool { return true }

func (r heightRule) cells(s Size) int64 { return ceilDiv(s.Width, r.Cell) * ceilDiv(s.Height, r.Cell) }

func (r heightRule) measure(s Size, _ string) (count, refusal) {
	resized := s
	if r.cells(s) > r.MaxTokens {
		at := func(height int64) Size { return Size{Width: max(s.Width*height/s.Height, 1), Height: height} }
		lo, hi := int64(1), s.Height
		for lo+1 < hi {
			if mid := (lo + hi) / 2; r.cells(at(mid)) <= r.MaxTokens {
				lo = mid
			} else {
				hi = mid
			}
		}
		resized = at(lo)
	}
	c := grid(resized, ceilDiv(resized.Width, r.Cell), ceilDiv(resized.Height, r.Cell), 1)
	c.tokens = min(max(c.tokens, r.MinTokens), r.MaxTokens)
	return c, accepted
}

func (r heightRule) most(string) int64 { return r.MaxTokens }
func (r heightRule) max() int64        { return r.MaxTokens }

func (r heightRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px cells of %s: %d x %d, at least %d and at most %d", r.Cell, e.Resized, e.count.cols, e.count.rows, r.MinTokens, r.MaxTokens)
}
