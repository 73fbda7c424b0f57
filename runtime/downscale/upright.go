// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import "image"

// upright applies an EXIF orientation, 1 to 8: where the stored image's rows and
// columns stand in the picture.
func upright(src *image.RGBA, orientation int) *image.RGBA {
	w, h := src.Rect.Dx(), src.Rect.Dy()
	var from func(x, y int) (int, int) // the stored pixel of one of the picture
	switch orientation {
	case 2: // mirrored
		from = func(x, y int) (int, int) { return w - 1 - x, y }
	case 3: // turned by a half
		from = func(x, y int) (int, int) { return w - 1 - x, h - 1 - y }
	case 4: // mirrored upside down
		from = func(x, y int) (int, int) { return x, h - 1 - y }
	case 5: // transposed
		from = func(x, y int) (int, int) { return y, x }
	case 6: // to be turned clockwise
		from = func(x, y int) (int, int) { return y, h - 1 - x }
	case 7: // transposed over the other diagonal
		from = func(x, y int) (int, int) { return w - 1 - y, h - 1 - x }
	case 8: // to be turned counterclockwise
		from = func(x, y int) (int, int) { return w - 1 - y, x }
	default:
		return src
	}
	size := image.Rect(0, 0, w, h)
	if orientation >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	out := image.NewRGBA(size)
	for y := range size.Max.Y {
		for x := range size.Max.X {
			sx, sy := from(x, y)
			copy(out.Pix[out.PixOffset(x, y):][:4], src.Pix[src.PixOffset(sx, sy):][:4])
		}
	}
	return out
}
