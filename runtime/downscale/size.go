// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import "math"

// Size is the largest size of an image's shape that keeps to the limits on pixels
// and side, and never larger than the image. Sides are rounded down, and are 1 at
// least, so that a line stays one.
func Size(width, height int, limits Limits) (w, h int) {
	scale := 1.0
	if long := int64(max(width, height)); limits.MaxSide > 0 && long > limits.MaxSide {
		scale = float64(limits.MaxSide) / float64(long)
	}
	if n := float64(width) * float64(height); limits.MaxPixels > 0 && n > float64(limits.MaxPixels) {
		scale = min(scale, math.Sqrt(float64(limits.MaxPixels)/n))
	}
	if scale == 1 {
		return width, height
	}
	w, h = scaled(width, scale), scaled(height, scale)
	// Rounding may leave a little too much, and so does a side that was raised to 1.
	if limits.MaxSide > 0 {
		w, h = min(w, int(limits.MaxSide)), min(h, int(limits.MaxSide))
	}
	if limits.MaxPixels > 0 && int64(w)*int64(h) > limits.MaxPixels {
		if w >= h {
			w = max(1, int(limits.MaxPixels/int64(h)))
		} else {
			h = max(1, int(limits.MaxPixels/int64(w)))
		}
	}
	return w, h
}

func scaled(side int, scale float64) int { return max(1, int(float64(side)*scale)) }

// smaller is the next size to try when a file of size bytes is over most: by the
// root of what it is too much, with a little to spare, and by a twentieth of each
// side at least.
func smaller(width, height int, most, size int64) (w, h int) {
	scale := min(0.95*math.Sqrt(float64(most)/float64(size)), 0.95)
	return scaled(width, scale), scaled(height, scale)
}
