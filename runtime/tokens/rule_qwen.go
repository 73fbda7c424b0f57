// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"math"
)

// smartRule is smart_resize, the rule of Qwen's vision models and of others built
// on them: round both sides to whole cells, and scale into an area.
//
// Published as code (qwen-vl-utils, vision_process.py), which computes in float64
// and rounds halves to even; so does this, in the same order.
type smartRule struct {
	// Factor is the side of a token in pixels.
	Factor int64 `json:"factor"`
	// MinPixels and MaxPixels bound the area after resizing.
	MinPixels int64 `json:"minPixels"`
	MaxPixels int64 `json:"maxPixels"`
	// MaxAspect is the longest side over the shortest above which the code refuses.
	MaxAspect int64 `json:"maxAspect"`
	// MaxPixelsAt replaces MaxPixels for some details.
	MaxPixelsAt map[string]int64 `json:"maxPixelsAt,omitempty"`
	// SquareAt are details at which the image becomes a square of that side.
	SquareAt map[string]int64 `json:"squareAt,omitempty"`
}

func (r smartRule) check() string {
	cell := r.Factor * r.Factor
	if r.Factor <= 0 || r.MinPixels < cell || r.MaxPixels < r.MinPixels || r.MaxAspect <= 0 {
		return "numbers out of range"
	}
	for name, n := range r.MaxPixelsAt {
		if n < r.MinPixels {
			return "detail " + name + " has an area out of range"
		}
	}
	for name, n := range r.SquareAt {
		if n < r.Factor {
			return "detail " + name + " has a side out of range"
		}
	}
	return ""
}

func (r smartRule) sized(detail string) bool { return r.SquareAt[detail] == 0 }

func (r smartRule) maxPixels(detail string) int64 {
	if n, ok := r.MaxPixelsAt[detail]; ok {
		return n
	}
	return r.MaxPixels
}

func (r smartRule) measure(s Size, detail string) (count, refusal) {
	if side := r.SquareAt[detail]; side > 0 {
		s = Size{Width: side, Height: side}
		return grid(s, ceilDiv(side, r.Factor), ceilDiv(side, r.Factor), 1), accepted
	}
	if s.long() > r.MaxAspect*s.short() {
		return count{}, refusal{limit: "aspect ratio", unit: "to 1", value: r.MaxAspect, actual: ceilDiv(s.long(), s.short())}
	}
	s = smartResize(s, r.Factor, r.MinPixels, r.maxPixels(detail))
	return grid(s, s.Width/r.Factor, s.Height/r.Factor, 1), accepted
}

// smartResize is the published function of that name.
func smartResize(s Size, factor, least, most int64) Size {
	f, w, h := float64(factor), float64(s.Width), float64(s.Height)
	rounded := func(side float64) int64 { return max(factor, int64(math.RoundToEven(side/f))*factor) }
	out := Size{Width: rounded(w), Height: rounded(h)}
	switch area := float64(s.Width * s.Height); {
	case out.Width*out.Height > most:
		beta := math.Sqrt(area / float64(most))
		out.Width = max(factor, int64(math.Floor(w/beta/f))*factor)
		out.Height = max(factor, int64(math.Floor(h/beta/f))*factor)
	case out.Width*out.Height < least:
		beta := math.Sqrt(float64(least) / area)
		out.Width = int64(math.Ceil(w*beta/f)) * factor
		out.Height = int64(math.Ceil(h*beta/f)) * factor
	}
	return out
}

func (r smartRule) most(detail string) int64 {
	if side := r.SquareAt[detail]; side > 0 {
		n := ceilDiv(side, r.Factor)
		return n * n
	}
	return r.maxPixels(detail) / (r.Factor * r.Factor)
}

func (r smartRule) max() int64 {
	most := r.most(auto)
	for name := range r.MaxPixelsAt {
		most = max(most, r.most(name))
	}
	return max(most, r.MaxPixels/(r.Factor*r.Factor))
}

func (r smartRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px cells of %s: %d x %d", r.Factor, e.Resized, e.count.cols, e.count.rows)
}
