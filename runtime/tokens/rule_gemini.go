// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import "fmt"

// flatRule charges a number that depends on the detail alone: Gemini 3's media
// resolutions, and models whose images are all resized to one size.
type flatRule struct {
	// Details are the tokens of each detail; Auto names the one that is used when
	// none, or another, is asked for.
	Details map[string]int64 `json:"details"`
	Auto    string           `json:"auto"`
}

func (r flatRule) check() string {
	if _, ok := r.Details[r.Auto]; !ok {
		return "auto must name one of the details"
	}
	for name, n := range r.Details {
		if n <= 0 {
			return "detail " + name + " must cost something"
		}
	}
	return ""
}

func (r flatRule) sized(string) bool { return false }

func (r flatRule) measure(_ Size, detail string) (count, refusal) {
	return count{tokens: r.most(detail)}, accepted
}

func (r flatRule) most(detail string) int64 {
	if n, ok := r.Details[detail]; ok {
		return n
	}
	return r.Details[r.Auto]
}

func (r flatRule) max() int64 {
	most := int64(0)
	for _, n := range r.Details {
		most = max(most, n)
	}
	return most
}

func (r flatRule) basis(e Estimate) string {
	return fmt.Sprintf("%d tokens whatever the size", e.Tokens)
}

// unitRule is the rule of Gemini up to 2.x: a small image is one tile, another is
// cut into squares of two thirds of its short side.
//
// Documents of the 1.5 era keep the unit between 256 and 768 px, newer ones do not
// bound it; the larger count of both is charged, which is a bound from above alone.
// Published as prose, computed in integers; the unit is at least 1 px.
type unitRule struct {
	// SmallSide is the longest side of an image that is one tile.
	SmallSide int64 `json:"smallSide"`
	// TileTokens is what a tile costs.
	TileTokens int64 `json:"tileTokens"`
	// MaxUnit is the largest unit in pixels.
	MaxUnit int64 `json:"maxUnit"`
	// UnknownTiles are charged when the size is unknown: nothing bounds the count.
	UnknownTiles int64 `json:"unknownTiles"`
	// Details are details of a flat price.
	Details map[string]int64 `json:"details,omitempty"`
}

func (r unitRule) check() string {
	if r.SmallSide <= 0 || r.TileTokens <= 0 || r.MaxUnit <= 0 || r.UnknownTiles <= 0 {
		return "numbers out of range"
	}
	return ""
}

func (r unitRule) sized(detail string) bool { return r.Details[detail] == 0 }

func (r unitRule) measure(s Size, detail string) (count, refusal) {
	if flat := r.Details[detail]; flat > 0 {
		return count{tokens: flat}, accepted
	}
	if s.long() <= r.SmallSide {
		return grid(s, 1, 1, r.TileTokens), accepted
	}
	unit := min(max(2*s.short()/3, 1), r.MaxUnit)
	return grid(s, ceilDiv(s.Width, unit), ceilDiv(s.Height, unit), r.TileTokens), accepted
}

func (r unitRule) most(detail string) int64 {
	if flat := r.Details[detail]; flat > 0 {
		return flat
	}
	return r.UnknownTiles * r.TileTokens
}

func (r unitRule) max() int64 { return 0 }

func (r unitRule) basis(e Estimate) string {
	if e.count.parts == 0 {
		return fmt.Sprintf("%d tokens whatever the size", e.Tokens)
	}
	return fmt.Sprintf("tiles of %s: %d x %d of %d tokens", e.Resized, e.count.cols, e.count.rows, r.TileTokens)
}
