// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import "image"

// uprightImage is an image that takes the stored image's rows and puts them where
// an EXIF orientation, 1 to 8, has them in the picture.
type uprightImage struct {
	*image.RGBA
	// to is where a stored pixel goes; nil where it stays.
	to func(x, y int) (int, int)
}

// newUpright makes room for a stored image of w x h.
func newUpright(w, h, orientation int) uprightImage {
	var to func(x, y int) (int, int)
	switch orientation {
	case 2: // mirrored
		to = func(x, y int) (int, int) { return w - 1 - x, y }
	case 3: // turned by a half
		to = func(x, y int) (int, int) { return w - 1 - x, h - 1 - y }
	case 4: // mirrored upside down
		to = func(x, y int) (int, int) { return x, h - 1 - y }
	case 5: // transposed
		to = func(x, y int) (int, int) { return y, x }
	case 6: // to be turned clockwise
		to = func(x, y int) (int, int) { return h - 1 - y, x }
	case 7: // transposed over the other diagonal
		to = func(x, y int) (int, int) { return h - 1 - y, w - 1 - x }
	case 8: // to be turned counterclockwise
		to = func(x, y int) (int, int) { return y, w - 1 - x }
	}
	if orientation >= 5 && orientation <= 8 {
		return uprightImage{image.NewRGBA(image.Rect(0, 0, h, w)), to}
	}
	return uprightImage{image.NewRGBA(image.Rect(0, 0, w, h)), to}
}

// put puts a stored row in its place.
func (u uprightImage) put(y int, row []byte) {
	if u.to == nil {
		copy(u.Pix[y*u.Stride:], row)
		return
	}
	for x := range len(row) / 4 {
		tx, ty := u.to(x, y)
		copy(u.Pix[u.PixOffset(tx, ty):][:4], row[4*x:])
	}
}
