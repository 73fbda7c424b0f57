// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"math"
)

// kimiRule is the rule of Kimi's MoonViT: scale down until the patches fit a
// limit and each side another, then merge patches two by two.
//
// Known from the released image processor, which computes the scale in float64
// and cuts the sides to integers; so does this. A side that would become 0 stays 1.
type kimiRule struct {
	// Patch is the side of a patch in pixels; a token is Merge x Merge patches.
	Patch int64 `json:"patch"`
	Merge int64 `json:"merge"`
	// PatchLimit bounds the whole patches of the image, MaxPatchesSide those of a side.
	PatchLimit     int64 `json:"patchLimit"`
	MaxPatchesSide int64 `json:"maxPatchesSide"`
}

func (r kimiRule) check() string {
	if r.Patch <= 0 || r.Merge <= 0 || r.MaxPatchesSide <= 0 || r.PatchLimit < r.MaxPatchesSide {
		return "numbers out of range"
	}
	return ""
}

func (r kimiRule) sized(string) bool { return true }

func (r kimiRule) measure(s Size, _ string) (count, refusal) {
	whole := max(1, s.Width/r.Patch) * max(1, s.Height/r.Patch)
	side := float64(r.MaxPatchesSide * r.Patch)
	scale := min(1, math.Sqrt(float64(r.PatchLimit)/float64(whole)), side/float64(s.Width), side/float64(s.Height))
	s = Size{Width: max(int64(float64(s.Width)*scale), 1), Height: max(int64(float64(s.Height)*scale), 1)}
	cell := r.Patch * r.Merge
	return grid(s, ceilDiv(s.Width, cell), ceilDiv(s.Height, cell), 1), accepted
}

// most is a bound that holds for every size. Let u and v be the whole patches of
// both sides after scaling: u*v <= PatchLimit, and neither passes MaxPatchesSide.
// What the whole patches leave out (less than a patch) and the rounding up to a
// token (less than a token) add less than 1/Merge + 1 tokens to u/Merge and to
// v/Merge; the product is largest where one side is at its bound.
func (r kimiRule) most(string) int64 {
	u, merge := float64(r.MaxPatchesSide), float64(r.Merge)
	v := float64(r.PatchLimit) / u
	return int64((u/merge + 1/merge + 1) * (v/merge + 1/merge + 1))
}

func (r kimiRule) max() int64 { return r.most(auto) }

func (r kimiRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px cells of %s: %d x %d", r.Patch*r.Merge, e.Resized, e.count.cols, e.count.rows)
}
