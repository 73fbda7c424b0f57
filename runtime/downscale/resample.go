// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import (
	"image"
	"image/draw"
	"math"
)

// one is a weight of 1, and fine what a sample between both passes has beside its
// eight bits: enough for errors below half a step of the result.
const (
	weightBits = 14
	one        = 1 << weightBits
	fineBits   = 6
)

// tap is what one pixel of the result takes of the source along a line: weights,
// which sum up to one, from the source's pixel first on.
type tap struct {
	first   int
	weights []int32
}

// taps are those of a whole line. The kernel is Catmull and Rom's cubic, widened
// by the scale, so that every pixel of the source counts.
func taps(from, to int) []tap {
	scale := float64(from) / float64(to)
	wide := max(scale, 1)
	list := make([]tap, to)
	for i := range list {
		center := (float64(i)+0.5)*scale - 0.5
		first := max(0, int(math.Ceil(center-2*wide)))
		last := min(from-1, int(math.Floor(center+2*wide)))
		list[i] = tap{first, weigh(first, last, center, wide)}
	}
	return list
}

// weigh computes weights in whole numbers; what rounding leaves goes to the
// heaviest.
func weigh(first, last int, center, wide float64) []int32 {
	exact := make([]float64, last-first+1)
	sum := 0.0
	for k := range exact {
		distance := float64(first+k) - center
		exact[k] = cubic(math.Abs(distance / wide))
		sum += exact[k]
	}
	weights := make([]int32, len(exact))
	left, heaviest := int32(one), 0
	for k, w := range exact {
		scaled := w / sum
		weights[k] = int32(math.Round(scaled * one))
		left -= weights[k]
		if w > exact[heaviest] {
			heaviest = k
		}
	}
	weights[heaviest] += left
	return weights
}

// cubic is Catmull and Rom's kernel at x >= 0. Products are rounded one by one, so
// that no machine fuses them with a sum.
func cubic(x float64) float64 {
	x2 := float64(x * x)
	x3 := float64(x2 * x)
	switch {
	case x < 1:
		return float64(1.5*x3) - float64(2.5*x2) + 1
	case x < 2:
		return float64(-0.5*x3) + float64(2.5*x2) - float64(4*x) + 2
	}
	return 0
}

// resample makes an image of width x height, before it is turned upright, of a
// source that stands somewhere on a canvas; the rest of the canvas is transparent.
// It holds one row of the source, and as many of the result's width as the kernel
// is high.
func resample(src image.Image, canvas image.Rectangle, width, height, orientation int) *image.RGBA {
	out, line := newUpright(width, height, orientation), make([]byte, 4*width)
	across, down := taps(canvas.Dx(), width), taps(canvas.Dy(), height)
	row := image.NewRGBA(image.Rect(0, 0, canvas.Dx(), 1))
	rows := newRing(down, width)
	next := 0 // the source's row that is read next
	for y, t := range down {
		for ; next < t.first+len(t.weights); next++ {
			clear(row.Pix)
			draw.Draw(row, row.Rect, src, image.Pt(canvas.Min.X, canvas.Min.Y+next), draw.Src)
			squeeze(rows.at(next), row.Pix, across)
		}
		rows.blend(line, t)
		out.put(y, line)
	}
	return out.RGBA
}

// squeeze resamples a row; samples are premultiplied.
func squeeze(into []int32, row []byte, across []tap) {
	const half = 1 << (weightBits - fineBits - 1)
	for x, t := range across {
		var r, g, b, a int32
		at := 4 * t.first
		for _, w := range t.weights {
			p := row[at : at+4 : at+4]
			r += w * int32(p[0])
			g += w * int32(p[1])
			b += w * int32(p[2])
			a += w * int32(p[3])
			at += 4
		}
		o := into[4*x : 4*x+4 : 4*x+4]
		o[0], o[1] = (r+half)>>(weightBits-fineBits), (g+half)>>(weightBits-fineBits)
		o[2], o[3] = (b+half)>>(weightBits-fineBits), (a+half)>>(weightBits-fineBits)
	}
}

// ring keeps the last rows that were squeezed.
type ring struct {
	rows [][]int32
	sums []int64
}

func newRing(down []tap, width int) *ring {
	most := 0
	for _, t := range down {
		most = max(most, len(t.weights))
	}
	r := &ring{rows: make([][]int32, most), sums: make([]int64, 4*width)}
	for i := range r.rows {
		r.rows[i] = make([]int32, 4*width)
	}
	return r
}

func (r *ring) at(row int) []int32 { return r.rows[row%len(r.rows)] }

// blend adds up rows by their weights, and brings the sums back into a byte each.
// No colour is above its alpha.
func (r *ring) blend(into []byte, t tap) {
	const bits = weightBits + fineBits
	clear(r.sums)
	for k, w := range t.weights {
		for i, v := range r.at(t.first + k) {
			r.sums[i] += int64(w) * int64(v)
		}
	}
	for i := 0; i < len(into); i += 4 {
		alpha := min(max((r.sums[i+3]+1<<(bits-1))>>bits, 0), 255)
		for c := range 3 {
			into[i+c] = byte(min(max((r.sums[i+c]+1<<(bits-1))>>bits, 0), alpha))
		}
		into[i+3] = byte(alpha)
	}
}
