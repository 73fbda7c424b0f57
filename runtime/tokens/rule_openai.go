// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import "fmt"

// patchSide is the side of OpenAI's patches in pixels.
const patchSide = 32

// patchRule is OpenAI's rule for models that count patches: fit the image to the
// detail's longest side, cover it with patches of 32 px, shrink it until they fit
// the detail's budget, multiply, round up. Published as prose and tables
// (developers.openai.com/api/docs/guides/images-vision); computed in integers,
// which is what "full precision until the floor" asks for.
type patchRule struct {
	// Multiplier is the tokens of a patch.
	Multiplier decimal `json:"multiplier"`
	// Details are the bounds of each detail; Auto names the one that is used when
	// none, or one without bounds here, is asked for.
	Details map[string]patchDetail `json:"details"`
	Auto    string                 `json:"auto"`
	// RejectAbovePatches is where the vendor refuses. CapPatches is where counting
	// stops, for models of which only a neighbour's rule is known. One of them is set.
	RejectAbovePatches int64 `json:"rejectAbovePatches,omitempty"`
	CapPatches         int64 `json:"capPatches,omitempty"`
}

// patchDetail bounds one detail. A MaxPatches of 0 is no budget.
type patchDetail struct {
	MaxSide    int64 `json:"maxSide"`
	MaxPatches int64 `json:"maxPatches,omitempty"`
}

func (r patchRule) check() string {
	if _, ok := r.Details[r.Auto]; !ok {
		return "auto must name one of the details"
	}
	if (r.RejectAbovePatches > 0) == (r.CapPatches > 0) {
		return "either rejectAbovePatches or capPatches must be set"
	}
	for name, d := range r.Details {
		if d.MaxSide < patchSide || d.MaxSide > 65535 || d.MaxPatches < 0 {
			return "detail " + name + " has bounds out of range"
		}
	}
	if r.Multiplier <= 0 {
		return "multiplier must be above 0"
	}
	return ""
}

func (r patchRule) sized(string) bool { return true }

func (r patchRule) detail(name string) patchDetail {
	if d, ok := r.Details[name]; ok {
		return d
	}
	return r.Details[r.Auto]
}

func (r patchRule) measure(s Size, detail string) (count, refusal) {
	d := r.detail(detail)
	s = fitLong(s, d.MaxSide)
	cols, rows := ceilDiv(s.Width, patchSide), ceilDiv(s.Height, patchSide)
	if d.MaxPatches > 0 && cols*rows > d.MaxPatches {
		s = shrinkToPatches(s, d.MaxPatches)
		cols, rows = ceilDiv(s.Width, patchSide), ceilDiv(s.Height, patchSide)
	}
	patches := cols * rows
	if r.RejectAbovePatches > 0 && patches > r.RejectAbovePatches {
		return count{}, refusal{limit: "patches of 32 px after resizing", unit: "patches", value: r.RejectAbovePatches, actual: patches}
	}
	if r.CapPatches > 0 {
		patches = min(patches, r.CapPatches)
	}
	return count{tokens: r.Multiplier.timesUp(patches), resized: s, cols: cols, rows: rows, parts: patches}, accepted
}

// shrinkToPatches scales s down until the patches that cover it fit the budget.
//
// As published: f = sqrt(32*32*budget/(w*h)), then f *= min(floor(w*f/32)/(w*f/32),
// floor(h*f/32)/(h*f/32)), then floor both sides. As w*f/32 = sqrt(w*budget/h),
// the whole patches along a side are integer square roots, the side that decides
// becomes exactly that many patches, and the other follows by the aspect. A side
// shorter than one patch stays one pixel.
func shrinkToPatches(s Size, budget int64) Size {
	cols, rows := isqrt(s.Width*budget/s.Height), isqrt(s.Height*budget/s.Width)
	if cols*s.Height <= rows*s.Width {
		w := cols * patchSide
		return Size{Width: max(w, 1), Height: max(s.Height*w/s.Width, 1)}
	}
	h := rows * patchSide
	return Size{Width: max(s.Width*h/s.Height, 1), Height: max(h, 1)}
}

func (r patchRule) most(detail string) int64 {
	d := r.detail(detail)
	side := ceilDiv(d.MaxSide, patchSide)
	patches := side * side
	for _, bound := range []int64{d.MaxPatches, r.RejectAbovePatches, r.CapPatches} {
		if bound > 0 {
			patches = min(patches, bound)
		}
	}
	return r.Multiplier.timesUp(patches)
}

func (r patchRule) max() int64 {
	most := int64(0)
	for name := range r.Details {
		most = max(most, r.most(name))
	}
	return most
}

func (r patchRule) basis(e Estimate) string {
	return fmt.Sprintf("32 px patches of %s: %d x %d, %d counted, x%s rounded up", e.Resized, e.count.cols, e.count.rows, e.count.parts, r.Multiplier)
}

// tileRule is OpenAI's rule for models that count tiles of 512 px: fit into a
// square, shrink the short side, count tiles. Sides are rounded to the nearest
// pixel in the fit and down in the shrinking. Published as prose, computed in
// integers.
type tileRule struct {
	// Base is charged once, Tile for each tile.
	Base int64 `json:"base"`
	Tile int64 `json:"tile"`
	// Fit is the side of the square, ShortSide the most that the short side keeps.
	Fit       int64 `json:"fit"`
	ShortSide int64 `json:"shortSide"`
	// LowIsBase: detail low costs Base alone, whatever the size.
	LowIsBase bool `json:"lowIsBase,omitempty"`
	// HighSquare and HighOther are added at high fidelity, for square images and
	// for others (image generation only).
	HighSquare int64 `json:"highSquare,omitempty"`
	HighOther  int64 `json:"highOther,omitempty"`
}

// tileSide is the side of OpenAI's tiles in pixels.
const tileSide = 512

func (r tileRule) check() string {
	if r.Base <= 0 || r.Tile <= 0 || r.Fit < r.ShortSide || r.ShortSide < tileSide || r.HighSquare > r.HighOther {
		return "numbers out of range"
	}
	return ""
}

func (r tileRule) sized(detail string) bool { return !r.baseOnly(detail) }

func (r tileRule) baseOnly(detail string) bool { return r.LowIsBase && detail == "low" }

func (r tileRule) highFidelity(detail string) bool {
	return r.HighOther > 0 && (detail == "high" || detail == "high_fidelity")
}

func (r tileRule) measure(s Size, detail string) (count, refusal) {
	if r.baseOnly(detail) {
		return count{tokens: r.Base}, accepted
	}
	extra := int64(0)
	if r.highFidelity(detail) {
		extra = r.HighOther
		if s.Width == s.Height {
			extra = r.HighSquare
		}
	}
	s = fitLong(s, r.Fit)
	if short := s.short(); short > r.ShortSide {
		if s.Width <= s.Height {
			s = Size{Width: r.ShortSide, Height: s.Height * r.ShortSide / short}
		} else {
			s = Size{Width: s.Width * r.ShortSide / short, Height: r.ShortSide}
		}
	}
	c := grid(s, ceilDiv(s.Width, tileSide), ceilDiv(s.Height, tileSide), r.Tile)
	c.tokens += r.Base + extra
	return c, accepted
}

func (r tileRule) most(detail string) int64 {
	if r.baseOnly(detail) {
		return r.Base
	}
	most := r.Base + r.Tile*ceilDiv(r.Fit, tileSide)*ceilDiv(r.ShortSide, tileSide)
	if r.highFidelity(detail) {
		most += r.HighOther
	}
	return most
}

func (r tileRule) max() int64 { return r.most("high") }

func (r tileRule) basis(e Estimate) string {
	if e.count.parts == 0 {
		return fmt.Sprintf("%d tokens whatever the size", r.Base)
	}
	text := fmt.Sprintf("512 px tiles of %s: %d + %d x %d", e.Resized, r.Base, e.count.parts, r.Tile)
	if extra := e.Tokens - r.Base - e.count.parts*r.Tile; extra > 0 {
		text += fmt.Sprintf(" + %d for high fidelity", extra)
	}
	return text
}
