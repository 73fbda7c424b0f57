// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import "fmt"

// coverRule counts the tiles that cover the image as it is, up to a bound along
// each side and in all: the Llama 3.2 rule of hosts that publish one, and xAI's,
// of which only the range is published.
type coverRule struct {
	// Tile is the side of a tile in pixels, Tokens what it costs.
	Tile   int64 `json:"tile"`
	Tokens int64 `json:"tokens"`
	// MaxPerSide and MaxTiles bound the grid; 0 is no bound along a side.
	MaxPerSide int64 `json:"maxPerSide,omitempty"`
	MaxTiles   int64 `json:"maxTiles"`
	// Extra is added to the tiles, such as a view of the whole.
	Extra int64 `json:"extra,omitempty"`
}

func (r coverRule) check() string {
	if r.Tile <= 0 || r.Tokens <= 0 || r.MaxTiles <= 0 || r.MaxPerSide < 0 || r.Extra < 0 {
		return "numbers out of range"
	}
	return ""
}

func (r coverRule) sized(string) bool { return true }

func (r coverRule) measure(s Size, _ string) (count, refusal) {
	cols, rows := ceilDiv(s.Width, r.Tile), ceilDiv(s.Height, r.Tile)
	if r.MaxPerSide > 0 {
		cols, rows = min(cols, r.MaxPerSide), min(rows, r.MaxPerSide)
	}
	c := count{cols: cols, rows: rows, parts: min(cols*rows, r.MaxTiles)}
	c.tokens = (c.parts + r.Extra) * r.Tokens
	return c, accepted
}

func (r coverRule) most(string) int64 { return (r.MaxTiles + r.Extra) * r.Tokens }
func (r coverRule) max() int64        { return r.most(auto) }

func (r coverRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px tiles of %s: (%d + %d) x %d", r.Tile, e.image.size(), e.count.parts, r.Extra, r.Tokens)
}

// stepRule looks an area up in a vendor's table of examples, where nothing else is
// published: the first row that is at least as large, or the last. An image whose
// long side is shorter than MinLong is enlarged to it before.
type stepRule struct {
	MinLong int64  `json:"minLong"`
	Steps   []step `json:"steps"`
}

// step is a row of the table.
type step struct {
	Width  int64 `json:"width"`
	Height int64 `json:"height"`
	Tokens int64 `json:"tokens"`
}

func (r stepRule) check() string {
	if r.MinLong <= 0 || r.MinLong > 1<<16 || len(r.Steps) == 0 {
		return "numbers out of range"
	}
	for i, s := range r.Steps {
		if s.Width <= 0 || s.Height <= 0 || s.Tokens <= 0 || s.Width > 1<<16 || s.Height > 1<<16 {
			return "a step is out of range"
		}
		if i > 0 && (s.Width*s.Height <= r.Steps[i-1].Width*r.Steps[i-1].Height || s.Tokens < r.Steps[i-1].Tokens) {
			return "steps must grow"
		}
	}
	return ""
}

func (r stepRule) sized(string) bool { return true }

func (r stepRule) measure(s Size, _ string) (count, refusal) {
	resized := s
	if long := s.long(); long < r.MinLong {
		resized = Size{Width: max(s.Width*r.MinLong/long, 1), Height: max(s.Height*r.MinLong/long, 1)}
	}
	area := resized.Width * resized.Height
	for _, row := range r.Steps {
		if area <= row.Width*row.Height {
			return count{tokens: row.Tokens, resized: resized, cols: row.Width, rows: row.Height}, accepted
		}
	}
	last := r.Steps[len(r.Steps)-1]
	return count{tokens: last.Tokens, resized: resized, cols: last.Width, rows: last.Height}, accepted
}

func (r stepRule) most(string) int64 { return r.Steps[len(r.Steps)-1].Tokens }
func (r stepRule) max() int64        { return r.most(auto) }

func (r stepRule) basis(e Estimate) string {
	return fmt.Sprintf("the vendor's approximate table, %s counted as %dx%d", e.Resized, e.count.cols, e.count.rows)
}

// cropRule is the rule of Phi-3 vision: the largest grid of at most MaxCrops crops
// in the image's aspect, enlarging where needed, and the whole image.
//
// Known from the released processor: crops grow along the long side while
// crops*ceil(crops/aspect) <= MaxCrops; computed in integers.
type cropRule struct {
	// Crop is the side of a crop in pixels; a crop is Cells x Cells tokens.
	Crop     int64 `json:"crop"`
	Cells    int64 `json:"cells"`
	MaxCrops int64 `json:"maxCrops"`
}

func (r cropRule) check() string {
	if r.Crop <= 0 || r.Cells <= 0 || r.MaxCrops <= 0 || r.MaxCrops > 64 {
		return "numbers out of range"
	}
	return ""
}

func (r cropRule) sized(string) bool { return true }

func (r cropRule) tokens(cols, rows int64) int64 {
	return (cols*rows+1)*r.Cells*r.Cells + 1 + (rows+1)*r.Cells
}

func (r cropRule) measure(s Size, _ string) (count, refusal) {
	along := int64(1)
	across := func(n int64) int64 { return ceilDiv(n*s.short(), s.long()) }
	for (along+1)*across(along+1) <= r.MaxCrops {
		along++
	}
	// The short side is cut to whole pixels before it is padded to whole crops.
	short := max(along*r.Crop*s.short()/s.long(), 1)
	cols, rows := along, ceilDiv(short, r.Crop)
	resized := Size{Width: along * r.Crop, Height: short}
	if s.Width < s.Height {
		cols, rows, resized = rows, cols, resized.turned()
	}
	return count{tokens: r.tokens(cols, rows), resized: resized, cols: cols, rows: rows, parts: cols * rows}, accepted
}

func (r cropRule) most(string) int64 { return r.tokens(1, r.MaxCrops) }
func (r cropRule) max() int64        { return r.most(auto) }

func (r cropRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px crops of %s: %d x %d and the whole", r.Crop, e.Resized, e.count.cols, e.count.rows)
}

// cellRule covers the image as it is with cells, between a least and a most number
// of tokens: what an unknown model is charged.
type cellRule struct {
	Cell      int64 `json:"cell"`
	MinTokens int64 `json:"minTokens"`
	MaxTokens int64 `json:"maxTokens"`
}

func (r cellRule) check() string {
	if r.Cell <= 0 || r.MinTokens <= 0 || r.MaxTokens < r.MinTokens {
		return "numbers out of range"
	}
	return ""
}

func (r cellRule) sized(string) bool { return true }

func (r cellRule) measure(s Size, _ string) (count, refusal) {
	c := grid(s, ceilDiv(s.Width, r.Cell), ceilDiv(s.Height, r.Cell), 1)
	c.tokens = min(max(c.tokens, r.MinTokens), r.MaxTokens)
	return c, accepted
}

func (r cellRule) most(string) int64 { return r.MaxTokens }
func (r cellRule) max() int64        { return r.MaxTokens }

func (r cellRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px cells of %s, at least %d and at most %d tokens", r.Cell, e.image.size(), r.MinTokens, r.MaxTokens)
}
