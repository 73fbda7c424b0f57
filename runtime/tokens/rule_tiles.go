// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"math"
)

// boxRule is Cohere's rule: at high detail, fit the image into a box, count tiles
// of 512 px and a preview; at low, one tile. Auto is high for an image with a side
// above AutoSide. Published as prose, computed in integers, sides rounded to the
// nearest pixel.
type boxRule struct {
	// Width and Height are the box, which does not turn with the image.
	Width  int64 `json:"width"`
	Height int64 `json:"height"`
	// Tile is the side of a tile in pixels, Tokens what it and the preview cost.
	Tile     int64 `json:"tile"`
	Tokens   int64 `json:"tokens"`
	AutoSide int64 `json:"autoSide"`
}

func (r boxRule) check() string {
	if r.Tile <= 0 || r.Width < r.Tile || r.Height < r.Tile || r.Tokens <= 0 || r.AutoSide <= 0 {
		return "numbers out of range"
	}
	return ""
}

func (r boxRule) sized(detail string) bool { return detail != "low" }

func (r boxRule) measure(s Size, detail string) (count, refusal) {
	if detail == "low" || detail != "high" && s.long() <= r.AutoSide {
		return count{tokens: r.Tokens}, accepted
	}
	if s.Width > r.Width || s.Height > r.Height {
		s = fitBox(s, Size{Width: r.Width, Height: r.Height})
	}
	c := grid(s, ceilDiv(s.Width, r.Tile), ceilDiv(s.Height, r.Tile), r.Tokens)
	c.tokens += r.Tokens
	return c, accepted
}

// fitBox scales s to touch box from within, its sides rounded to the nearest
// pixel, halves up.
func fitBox(s, box Size) Size {
	if box.Width*s.Height <= box.Height*s.Width {
		return Size{Width: box.Width, Height: max((2*s.Height*box.Width+s.Width)/(2*s.Width), 1)}
	}
	return Size{Width: max((2*s.Width*box.Height+s.Height)/(2*s.Height), 1), Height: box.Height}
}

func (r boxRule) most(detail string) int64 {
	if detail == "low" {
		return r.Tokens
	}
	return r.Tokens * (ceilDiv(r.Width, r.Tile)*ceilDiv(r.Height, r.Tile) + 1)
}

func (r boxRule) max() int64 { return r.most("high") }

func (r boxRule) basis(e Estimate) string {
	if e.count.parts == 0 {
		return fmt.Sprintf("%d tokens, one tile", e.Tokens)
	}
	return fmt.Sprintf("%d px tiles of %s: (%d x %d + 1) x %d", r.Tile, e.Resized, e.count.cols, e.count.rows, r.Tokens)
}

// ratioRule is InternVL's rule: the grid of at most MaxTiles tiles whose aspect is
// nearest to the image's, and a thumbnail when it has more than one.
//
// Of grids equally near, the one with more tiles wins where the image has more
// than half of its pixels. Known from the released dynamic_preprocess, which
// compares aspects in float64; so does this.
type ratioRule struct {
	// Tile is the side of a tile in pixels, Tokens what it costs.
	Tile     int64 `json:"tile"`
	Tokens   int64 `json:"tokens"`
	MaxTiles int64 `json:"maxTiles"`

	// grids are the grids of at most MaxTiles, by their number of tiles.
	grids []ratioGrid
}

// ratioGrid is a grid and its aspect.
type ratioGrid struct {
	cols, rows, tiles int64
	aspect            float64
}

func (r ratioRule) prepared() rule {
	for tiles := int64(1); tiles <= r.MaxTiles; tiles++ {
		for c := int64(1); c <= tiles; c++ {
			if tiles%c == 0 {
				r.grids = append(r.grids, ratioGrid{cols: c, rows: tiles / c, tiles: tiles, aspect: float64(c) / float64(tiles/c)})
			}
		}
	}
	return r
}

func (r ratioRule) check() string {
	if r.Tile <= 0 || r.Tokens <= 0 || r.MaxTiles <= 0 || r.MaxTiles > 64 {
		return "numbers out of range"
	}
	return ""
}

func (r ratioRule) sized(string) bool { return true }

func (r ratioRule) measure(s Size, _ string) (count, refusal) {
	aspect := float64(s.Width) / float64(s.Height)
	area := 2 * s.Width * s.Height
	best, off := r.grids[0], math.Inf(1)
	for _, g := range r.grids {
		switch o := math.Abs(aspect - g.aspect); {
		case o < off, o == off && area > r.Tile*r.Tile*g.tiles:
			best, off = g, o
		}
	}
	out := grid(Size{Width: best.cols * r.Tile, Height: best.rows * r.Tile}, best.cols, best.rows, r.Tokens)
	if out.parts > 1 {
		out.tokens += r.Tokens
	}
	return out, accepted
}

func (r ratioRule) most(string) int64 {
	if r.MaxTiles == 1 {
		return r.Tokens
	}
	return (r.MaxTiles + 1) * r.Tokens
}

func (r ratioRule) max() int64 { return r.most(auto) }

func (r ratioRule) basis(e Estimate) string {
	thumbnail := ""
	if e.count.parts > 1 {
		thumbnail = " and a thumbnail"
	}
	return fmt.Sprintf("%d px tiles: %d x %d%s of %d tokens", r.Tile, e.count.cols, e.count.rows, thumbnail, r.Tokens)
}

// canvasRule is Llama 4's rule: the canvas of at most MaxTiles tiles that enlarges
// the image least, or else shrinks it least (of equals, the smallest), each tile
// with its separator, then the whole image and its frame.
//
// Known from the released image processor; the factors are compared as exact
// fractions.
type canvasRule struct {
	// Tile is the side of a tile in pixels, Tokens what it costs without separator.
	Tile     int64 `json:"tile"`
	Tokens   int64 `json:"tokens"`
	MaxTiles int64 `json:"maxTiles"`
	// Frame are the tokens around the image.
	Frame int64 `json:"frame"`
}

func (r canvasRule) check() string {
	if r.Tile <= 0 || r.Tokens <= 0 || r.MaxTiles <= 0 || r.MaxTiles > 64 || r.Frame < 0 {
		return "numbers out of range"
	}
	return ""
}

func (r canvasRule) sized(string) bool { return true }

// measure compares the factors by which an image grows to touch its canvas as
// numerators over the common denominator w*h, which is a factor of 1.
func (r canvasRule) measure(s Size, _ string) (count, refusal) {
	one := s.Width * s.Height
	cols, rows, best := int64(0), int64(0), int64(0)
	for c := int64(1); c <= r.MaxTiles; c++ {
		for n := int64(1); c*n <= r.MaxTiles; n++ {
			wide, high := c*r.Tile*s.Height, n*r.Tile*s.Width
			f := min(wide, high)
			if cols == 0 || better(f, best, one) { // Of equals the first is the smallest.
				cols, rows, best = c, n, f
			}
			if high >= wide {
				break // More rows would add nothing but area.
			}
		}
	}
	out := grid(Size{Width: cols * r.Tile, Height: rows * r.Tile}, cols, rows, r.Tokens+1)
	if out.parts == 1 {
		out.tokens = 0
	}
	out.tokens += r.Tokens + r.Frame
	return out, accepted
}

// better reports whether a is the better factor: of those that enlarge (one or
// more) the smallest, before those that shrink, of which the largest.
func better(a, b, one int64) bool {
	if a >= one {
		return b < one || a < b
	}
	return b < one && a > b
}

func (r canvasRule) most(string) int64 {
	most := r.Tokens + r.Frame
	if r.MaxTiles > 1 {
		most += r.MaxTiles * (r.Tokens + 1)
	}
	return most
}

func (r canvasRule) max() int64 { return r.most(auto) }

func (r canvasRule) basis(e Estimate) string {
	if e.count.parts == 1 {
		return fmt.Sprintf("one tile of %d px", r.Tile)
	}
	return fmt.Sprintf("%d px tiles: %d x %d with separators, and the whole", r.Tile, e.count.cols, e.count.rows)
}
