// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"math/big"
	"slices"
)

// sizing is a longest side and a budget of patches, 0 for none.
type sizing [2]int64

// openAIPatches computes the published formula with 300 bits and its guard.
func openAIPatches(multiplier string, sizings map[string]sizing, reject int64) oracle {
	times, _ := new(big.Rat).SetString(multiplier)
	return func(w, h int64, detail string) (int64, bool) {
		s, ok := sizings[detail]
		if !ok {
			s = sizings["auto"]
		}
		w, h = fitLongest(w, h, s[0])
		n := cover(w, 32) * cover(h, 32)
		if budget := s[1]; budget > 0 && n > budget {
			w, h = openAIShrink(w, h, budget)
			n = cover(w, 32) * cover(h, 32)
		}
		if reject > 0 && n > reject {
			return 0, true
		}
		if reject == 0 {
			n = min(n, 30000)
		}
		return ceilRat(new(big.Rat).Mul(times, big.NewRat(n, 1))), false
	}
}

func openAIShrink(w, h, budget int64) (int64, int64) {
	const bits = 300
	num := func(n int64) *big.Float { return new(big.Float).SetPrec(bits).SetInt64(n) }
	op := func() *big.Float { return new(big.Float).SetPrec(bits) }
	guard := op().Quo(num(1), num(1_000_000_000))
	floor := func(x *big.Float) int64 { n, _ := op().Add(x, guard).Int64(); return n }
	s := op().Sqrt(op().Quo(num(32*32*budget), num(w*h)))
	ratio := func(side int64) *big.Float {
		patches := op().Quo(op().Mul(num(side), s), num(32))
		return op().Quo(num(floor(patches)), patches)
	}
	if a, b := ratio(w), ratio(h); a.Cmp(b) < 0 {
		s.Mul(s, a)
	} else {
		s.Mul(s, b)
	}
	return max(1, floor(op().Mul(num(w), s))), max(1, floor(op().Mul(num(h), s)))
}

// double is IEEE double precision in software: each operation is rounded to 53
// bits, as in the vendors' code, without the processor's floating point.
type double struct{ *big.Float }

func d(n int64) double               { return double{new(big.Float).SetPrec(53).SetInt64(n)} }
func half(n int64) double            { return d(n).div(d(2)) }
func op() *big.Float                 { return new(big.Float).SetPrec(53) }
func (a double) add(b double) double { return double{op().Add(a.Float, b.Float)} }
func (a double) sub(b double) double { return double{op().Sub(a.Float, b.Float)} }
func (a double) mul(b double) double { return double{op().Mul(a.Float, b.Float)} }
func (a double) div(b double) double { return double{op().Quo(a.Float, b.Float)} }
func (a double) sqrt() double        { return double{op().Sqrt(a.Float)} }
func (a double) less(b double) bool  { return a.Cmp(b.Float) < 0 }
func (a double) floor() int64        { n, _ := a.Int64(); return n }
func (a double) ceil() int64 {
	n := a.floor()
	if d(n).less(a) {
		n++
	}
	return n
}

// even rounds half to even.
func (a double) even() int64 {
	n := a.floor()
	switch rest := a.sub(d(n)).Cmp(half(1).Float); {
	case rest > 0, rest == 0 && n%2 == 1:
		n++
	}
	return n
}

func least(of ...double) double {
	return slices.MinFunc(of, func(a, b double) int { return a.Cmp(b.Float) })
}

func mistralRows(cell, most, reject int64) oracle {
	return func(w, h int64, _ string) (int64, bool) {
		if max(w, h) > reject {
			return 0, true
		}
		ratio := d(max(w, h)).div(d(most))
		if d(1).less(ratio) {
			w, h = max(1, d(w).div(ratio).even()), max(1, d(h).div(ratio).even())
		}
		n := int64(0)
		for y := int64(0); y < h; y += cell {
			n += (w-1)/cell + 1 + 1
		}
		return n, false
	}
}

func qwenCells(f, least, most int64) oracle {
	return func(w, h int64, _ string) (int64, bool) {
		if big.NewRat(max(w, h), min(w, h)).Cmp(big.NewRat(200, 1)) > 0 {
			return 0, true
		}
		wb, hb := max(1, halfEven(w, f)), max(1, halfEven(h, f))
		switch area := wb * hb * f * f; {
		case area > most:
			beta := d(w * h).div(d(most)).sqrt()
			wb = max(1, d(w).div(beta).div(d(f)).floor())
			hb = max(1, d(h).div(beta).div(d(f)).floor())
		case area < least:
			beta := d(least).div(d(w * h)).sqrt()
			wb = d(w).mul(beta).div(d(f)).ceil()
			hb = d(h).mul(beta).div(d(f)).ceil()
		}
		return wb * hb, false
	}
}

func kimiCells(limit int64) oracle {
	return func(w, h int64, _ string) (int64, bool) {
		whole := max(1, w/14) * max(1, h/14)
		s := least(d(1), d(limit).div(d(whole)).sqrt(), d(512*14).div(d(w)), d(512*14).div(d(h)))
		return cover(max(1, d(w).mul(s).floor()), 28) * cover(max(1, d(h).mul(s).floor()), 28), false
	}
}

func deepseekCells(w, h int64, detail string) (int64, bool) {
	if detail == "low" {
		w, h = fitLongest(w, h, 512)
	}
	if w*h < 544*544 {
		s := d(544 * 544).div(d(w * h)).sqrt()
		w, h = max(1, d(w).mul(s).floor()), max(1, d(h).mul(s).floor())
	}
	counted := func(w, h int64) int64 { return cover(cover(h, 14), 3)*(cover(cover(w, 14), 3)+1) + 2 }
	n := counted(w, h)
	if n <= 1024 {
		return n, false
	}
	aspect := d(h).div(d(w))
	mw := d(1022).div(aspect).add(half(1).mul(half(1))).sqrt().sub(half(1))
	mh := mw.mul(aspect)
	if mw.less(d(1)) {
		return 511*2 + 2, false
	}
	if mh.less(d(1)) {
		return 1*1022 + 2, false
	}
	beta := least(d(mw.floor()*42).div(d(w)), d(mh.floor()*42).div(d(h)))
	down := func(side int64) int64 { return max(1, d(side).mul(beta).div(d(14)).floor()*14) }
	return counted(down(w), down(h)), false
}

func gemmaSoft(w, h int64, detail string) (int64, bool) {
	soft, ok := map[string]int64{"70": 70, "140": 140, "280": 280, "560": 560, "1120": 1120}[detail]
	if !ok {
		soft = 280
	}
	f := d(soft * 9 * 256).div(d(w * h)).sqrt()
	cols, rows := d(w).mul(f).div(d(48)).floor(), d(h).mul(f).div(d(48)).floor()
	if cols == 0 || rows == 0 {
		return min(soft, max(cols, rows)), false
	}
	return cols * rows, false
}

// internTiles goes through the ratios by their number of tiles.
func internTiles(w, h int64, _ string) (int64, bool) {
	aspect := d(w).div(d(h))
	var best double
	tiles := int64(0)
	for n := int64(1); n <= 12; n++ {
		for i := int64(1); i <= n; i++ {
			for j := int64(1); j <= n; j++ {
				if i*j != n {
					continue
				}
				off := double{op().Abs(aspect.sub(d(i).div(d(j))).Float)}
				if tiles == 0 || off.less(best) || !best.less(off) && half(448*448*n).less(d(w*h)) {
					best, tiles = off, n
				}
			}
		}
	}
	if tiles > 1 {
		tiles++
	}
	return tiles * 256, false
}
