// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"math/big"
	"sort"
)

// ceilRat and floorRat round a fraction that is not negative.
func floorRat(x *big.Rat) int64 { return new(big.Int).Quo(x.Num(), x.Denom()).Int64() }
func ceilRat(x *big.Rat) int64 {
	n := floorRat(x)
	if x.IsInt() {
		return n
	}
	return n + 1
}

// nearest rounds a fraction to the nearest integer, halves up.
func nearest(x *big.Rat) int64 { return floorRat(new(big.Rat).Add(x, big.NewRat(1, 2))) }

// cover is how many cells of that side cover a length.
func cover(length, cell int64) int64 {
	n := length / cell
	if n*cell < length {
		n++
	}
	return n
}

// table is a price by detail.
func table(prices map[string]int64) oracle {
	return func(_, _ int64, detail string) (int64, bool) {
		if n, ok := prices[detail]; ok {
			return n, false
		}
		return prices["auto"], false
	}
}

// flatOr is a price for some details and another count for the rest.
func flatOr(prices map[string]int64, rest oracle) oracle {
	return func(w, h int64, detail string) (int64, bool) {
		if n, ok := prices[detail]; ok {
			return n, false
		}
		return rest(w, h, detail)
	}
}

func byDetail(rest oracle, some map[string]oracle) oracle {
	return func(w, h int64, detail string) (int64, bool) {
		if o, ok := some[detail]; ok {
			return o(w, h, detail)
		}
		return rest(w, h, detail)
	}
}

// fitLongest scales the long side to most, the other to the nearest pixel.
func fitLongest(w, h, most int64) (int64, int64) {
	long := max(w, h)
	if long <= most {
		return w, h
	}
	f := big.NewRat(most, long)
	scaled := func(side int64) int64 { return max(1, nearest(new(big.Rat).Mul(f, big.NewRat(side, 1)))) }
	return scaled(w), scaled(h)
}

func openAITiles(base, tile, short int64, lowIsBase bool, square, other int64) oracle {
	return func(w, h int64, detail string) (int64, bool) {
		if lowIsBase && detail == "low" {
			return base, false
		}
		n := base
		if other > 0 && (detail == "high" || detail == "high_fidelity") {
			if n += other; w == h {
				n += square - other
			}
		}
		w, h = fitLongest(w, h, 2048)
		if s := min(w, h); s > short {
			w, h = floorRat(big.NewRat(w*short, s)), floorRat(big.NewRat(h*short, s))
		}
		for x := int64(0); x < w; x += 512 {
			for y := int64(0); y < h; y += 512 {
				n += tile
			}
		}
		return n, false
	}
}

// anthropicCells tries every long side from the largest that could fit.
func anthropicCells(edge, most int64) oracle {
	return func(w, h int64, _ string) (int64, bool) {
		long, short := max(w, h), min(w, h)
		for l := min(long, edge); l >= 1; l-- {
			s := short
			if l < long {
				s = max(1, halfEven(l*short, long))
			}
			across, down := (l+27)/28, (s+27)/28
			if across*28 <= edge && down*28 <= edge && across*down <= most {
				return across * down, false
			}
		}
		return 1, false
	}
}

// halfEven is a/b to the nearest integer, halves to the even one.
func halfEven(a, b int64) int64 {
	q, r := a/b, a%b
	if 2*r > b || 2*r == b && q%2 == 1 {
		q++
	}
	return q
}

// geminiTiles is the larger of the counts with and without a bounded unit.
func geminiTiles(w, h int64, _ string) (int64, bool) {
	if w <= 384 && h <= 384 {
		return 258, false
	}
	unit := floorRat(new(big.Rat).Quo(big.NewRat(min(w, h), 1), big.NewRat(3, 2)))
	tiles := func(u int64) int64 { return cover(w, u) * cover(h, u) }
	return 258 * max(tiles(max(unit, 1)), tiles(min(max(unit, 256), 768))), false
}

func cohereTiles(w, h int64, detail string) (int64, bool) {
	high := detail == "high" || detail != "low" && (w > 768 || h > 768)
	if !high {
		return 256, false
	}
	f := big.NewRat(1, 1)
	for _, limit := range []*big.Rat{big.NewRat(1536, w), big.NewRat(2048, h)} {
		if limit.Cmp(f) < 0 {
			f = limit
		}
	}
	w = max(1, nearest(new(big.Rat).Mul(f, big.NewRat(w, 1))))
	h = max(1, nearest(new(big.Rat).Mul(f, big.NewRat(h, 1))))
	return 256 + 256*cover(w, 512)*cover(h, 512), false
}

func gemmaCrops(w, h int64, detail string) (int64, bool) {
	long, short := max(w, h), min(w, h)
	if detail != "pan_and_scan" || big.NewRat(long, short).Cmp(big.NewRat(6, 5)) < 0 {
		return 256, false
	}
	crops := min(nearest(big.NewRat(long, short)), floorRat(big.NewRat(long, 256)))
	crops = min(4, max(2, crops))
	if cover(long, crops) < 256 || short < 256 {
		return 256, false
	}
	return 256 * (1 + crops), false
}

func togetherTiles(w, h int64, _ string) (int64, bool) {
	n := int64(1)
	if w > 560 {
		n *= 2
	}
	if h > 560 {
		n *= 2
	}
	return n * 1601, false
}

func grokTiles(w, h int64, _ string) (int64, bool) {
	return min(1792, 256+256*cover(w, 448)*cover(h, 448)), false
}

func plainCells(w, h int64, _ string) (int64, bool) {
	return min(16384, max(1120, cover(w, 28)*cover(h, 28))), false
}

// llamaCanvas sorts all canvases by how well they take the image. Factors are
// numerators over the common denominator w*h.
func llamaCanvas(w, h int64, _ string) (int64, bool) {
	type canvas struct{ tiles, factor int64 }
	var all []canvas
	for tiles := int64(1); tiles <= 16; tiles++ {
		for c := int64(1); c <= tiles; c++ {
			if tiles%c == 0 {
				all = append(all, canvas{tiles, min(336*c*h, 336*(tiles/c)*w)})
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		switch up := a.factor >= w*h; {
		case up != (b.factor >= w*h):
			return up
		case a.factor != b.factor:
			return up == (a.factor < b.factor)
		}
		return a.tiles < b.tiles
	})
	const whole = 1 + 1 + 144 + 1
	if n := all[0].tiles; n > 1 {
		return whole + n*(144+1), false
	}
	return whole, false
}

// deepseekViews scores every grid of at most nine views.
func deepseekViews(w, h int64, _ string) (int64, bool) {
	bestKept, bestWaste, tokens := int64(-1), int64(0), int64(0)
	for cols := int64(1); cols <= 9; cols++ {
		for rows := int64(1); rows <= 9/cols; rows++ {
			f := min(384*cols*h, 384*rows*w) // over w*h
			inside := func(side int64) int64 { return side * f / (w * h) }
			kept := min(inside(w)*inside(h), w*h)
			waste := 384*384*cols*rows - kept
			if kept > bestKept || kept == bestKept && waste < bestWaste {
				bestKept, bestWaste = kept, waste
				tokens = 210 + 1 + (14*rows)*(14*cols+1)
			}
		}
	}
	return tokens, false
}

func novaTable(prices ...int64) oracle {
	areas := []int64{900 * 450, 900 * 900, 1400 * 900, 1800 * 900, 1300 * 1300}
	return func(w, h int64, _ string) (int64, bool) {
		if long := max(w, h); long < 900 {
			f := big.NewRat(900, long)
			w = max(1, floorRat(new(big.Rat).Mul(f, big.NewRat(w, 1))))
			h = max(1, floorRat(new(big.Rat).Mul(f, big.NewRat(h, 1))))
		}
		i := sort.Search(len(areas), func(i int) bool { return w*h <= areas[i] })
		return prices[min(i, len(prices)-1)], false
	}
}

func phiCrops(w, h int64, _ string) (int64, bool) {
	ratio := big.NewRat(max(w, h), min(w, h))
	n := int64(1)
	for n*ceilRat(new(big.Rat).Quo(big.NewRat(n, 1), ratio)) <= 16 {
		n++
	}
	n--
	across := cover(max(1, floorRat(new(big.Rat).Quo(big.NewRat(n*336, 1), ratio))), 336)
	cols, rows := n, across
	if w < h {
		cols, rows = rows, cols
	}
	return (rows*cols+1)*144 + 1 + (rows+1)*12, false
}

// glmHeight tries heights from the largest that could fit.
func glmHeight(w, h int64, _ string) (int64, bool) {
	cells := func(w, h int64) int64 { return cover(w, 28) * cover(h, 28) }
	if n := cells(w, h); n <= 8000 {
		return max(16, n), false
	}
	area := new(big.Int).Sqrt(floorInt(big.NewRat(8000*28*28*h, w))).Int64()
	for height := min(h, area+h/w+2); height >= 1; height-- {
		if n := cells(max(1, floorRat(big.NewRat(w*height, h))), height); n <= 8000 {
			return max(16, n), false
		}
	}
	return 8000, false
}

func floorInt(x *big.Rat) *big.Int { return new(big.Int).Quo(x.Num(), x.Denom()) }
