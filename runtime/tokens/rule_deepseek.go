// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"math"
)

// deepseekRule is the rule of DeepSeek V4.1: enlarge a small image, cover it with
// cells, and shrink it when they and their row ends pass the limit.
//
// Known from the released configuration and its processor, which computes in
// float64 and cuts to integers; so does this. A side that would become 0 stays 1.
type deepseekRule struct {
	// Patch is the side of a patch in pixels; a token is Merge x Merge patches.
	Patch int64 `json:"patch"`
	Merge int64 `json:"merge"`
	// MinPixels is the area up to which an image is enlarged.
	MinPixels int64 `json:"minPixels"`
	// MaxTokens bounds the tokens of an image, Frame of them around the rows.
	MaxTokens int64 `json:"maxTokens"`
	Frame     int64 `json:"frame"`
	// LowFit is the longest side that detail low keeps, before anything else.
	LowFit int64 `json:"lowFit"`
}

func (r deepseekRule) check() string {
	if r.Patch <= 0 || r.Merge <= 0 || r.MinPixels <= 0 || r.Frame < 0 || r.MaxTokens < r.Frame+2 || r.LowFit <= 0 {
		return "numbers out of range"
	}
	return ""
}

func (r deepseekRule) sized(string) bool { return true }

func (r deepseekRule) cells(side int64) int64 { return ceilDiv(ceilDiv(side, r.Patch), r.Merge) }

func (r deepseekRule) counted(s Size, cols, rows int64) count {
	return count{tokens: rows*(cols+1) + r.Frame, resized: s, cols: cols, rows: rows, parts: cols * rows}
}

func (r deepseekRule) measure(s Size, detail string) (count, refusal) {
	if detail == "low" {
		s = fitLong(s, r.LowFit)
	}
	if area := s.Width * s.Height; area < r.MinPixels {
		scale := math.Sqrt(float64(r.MinPixels) / float64(area))
		s = Size{Width: max(int64(float64(s.Width)*scale), 1), Height: max(int64(float64(s.Height)*scale), 1)}
	}
	c := r.counted(s, r.cells(s.Width), r.cells(s.Height))
	if c.tokens > r.MaxTokens {
		c = r.shrunk(s)
	}
	return c, accepted
}

// shrunk solves rows*(cols+1) = budget for the aspect of s, and brings the sides
// down to whole cells of that grid.
func (r deepseekRule) shrunk(s Size) count {
	budget := r.MaxTokens - r.Frame
	w, h := float64(s.Width), float64(s.Height)
	aspect := h / w
	cols := math.Sqrt(float64(budget)/aspect+.25) - .5
	rows := float64(cols * aspect)
	cell, patch := float64(r.Patch*r.Merge), float64(r.Patch)
	switch {
	case cols < 1:
		return r.counted(Size{Width: int64(cell), Height: budget / 2 * int64(cell)}, 1, budget/2)
	case rows < 1:
		return r.counted(Size{Width: (budget - 1) * int64(cell), Height: int64(cell)}, budget-1, 1)
	}
	beta := min(math.Floor(cols)*cell/w, math.Floor(rows)*cell/h)
	down := func(side float64) int64 { return max(int64(math.Floor(side*beta/patch))*r.Patch, 1) }
	s = Size{Width: down(w), Height: down(h)}
	return r.counted(s, r.cells(s.Width), r.cells(s.Height))
}

func (r deepseekRule) most(string) int64 { return r.MaxTokens }
func (r deepseekRule) max() int64        { return r.MaxTokens }

func (r deepseekRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px cells of %s: %d rows of %d and a row end, and %d around", r.Patch*r.Merge, e.Resized, e.count.rows, e.count.cols, r.Frame)
}

// viewRule is the rule of DeepSeek-VL2: one view of the whole image, and a grid of
// views of the best resolution among those of at most MaxViews views. The best
// keeps the most of the image's pixels, and of those wastes the least. The grid's
// rows of tokens end with one token each.
type viewRule struct {
	// View is the side of a view in pixels, Cells the tokens along it.
	View  int64 `json:"view"`
	Cells int64 `json:"cells"`
	// MaxViews bounds the grid.
	MaxViews int64 `json:"maxViews"`
}

func (r viewRule) check() string {
	if r.View <= 0 || r.Cells <= 0 || r.MaxViews <= 0 || r.MaxViews > 64 {
		return "numbers out of range"
	}
	return ""
}

func (r viewRule) sized(string) bool { return true }

func (r viewRule) tokens(cols, rows int64) int64 {
	return r.Cells*(r.Cells+1) + 1 + r.Cells*rows*(r.Cells*cols+1)
}

func (r viewRule) measure(s Size, _ string) (count, refusal) {
	cols, rows := int64(1), int64(1)
	kept, wasted := int64(-1), int64(0)
	for c := int64(1); c <= r.MaxViews; c++ {
		for n := int64(1); c*n <= r.MaxViews; n++ {
			box := Size{Width: c * r.View, Height: n * r.View}
			k := min(fitArea(s, box), s.Width*s.Height)
			w := box.Width*box.Height - k
			if k > kept || k == kept && w < wasted {
				cols, rows, kept, wasted = c, n, k, w
			}
			if box.Width*s.Height <= box.Height*s.Width {
				break // More rows would only waste more.
			}
		}
	}
	out := grid(Size{Width: cols * r.View, Height: rows * r.View}, cols, rows, 0)
	out.tokens = r.tokens(cols, rows)
	return out, accepted
}

// fitArea is the area of s scaled to touch box from within, its sides cut to
// integers.
func fitArea(s, box Size) int64 {
	if box.Width*s.Height <= box.Height*s.Width {
		return box.Width * (s.Height * box.Width / s.Width)
	}
	return box.Height * (s.Width * box.Height / s.Height)
}

func (r viewRule) most(string) int64 {
	most := int64(0)
	for c := int64(1); c <= r.MaxViews; c++ {
		most = max(most, r.tokens(c, r.MaxViews/c))
	}
	return most
}

func (r viewRule) max() int64 { return r.most(auto) }

func (r viewRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px views: the whole and %d x %d", r.View, e.count.cols, e.count.rows)
}
