// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package picture turns the bytes of an image file, which nobody vouches for,
// into plain grey pixels. The recognition engine is only ever shown pixels
// that this package decoded: never the file itself, whose parsers in C would
// then face the attacker, and whose text would be read as a list of files to
// open. It does no I/O.
package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif"  // decodes GIF (first frame)
	_ "image/jpeg" // decodes JPEG
	_ "image/png"  // decodes PNG
	"io"
	"strings"

	_ "golang.org/x/image/webp" // decodes WebP (stills)
)

// MaxPixels is the largest width*height that Decode accepts: the product's
// built-in limit on an image. Of pictures with 16 bits for each of several
// colours it accepts half as many, which take as much memory.
const MaxPixels = 50_000_000

// MaxSide is the largest width or height that Decode accepts, in pixels.
// Tesseract keeps coordinates in 16-bit signed integers.
const MaxSide = 32_767

// Reason says why an image was refused.
type Reason string

// The reasons of an *Error.
const (
	// Unsupported means that the bytes are none of PNG, JPEG, GIF and WebP.
	Unsupported Reason = "unsupported"
	// TooLarge means more than MaxPixels or MaxSide.
	TooLarge Reason = "too_large"
	// Broken means that the header promised an image that the rest does not hold.
	Broken Reason = "broken"
)

// Error is the error of this package.
type Error struct {
	Reason Reason
	// Width and Height are the header's, in pixels; 0 when not known.
	Width, Height int
	Err           error
}

func (e *Error) Error() string {
	switch e.Reason {
	case TooLarge:
		return fmt.Sprintf("decoding image: %dx%d pixels exceed the limit of %d pixels (half as many of 16-bit colours), or of %d on a side", e.Width, e.Height, MaxPixels, MaxSide)
	case Broken:
		return fmt.Sprintf("decoding image: the data are damaged or of an unsupported variant: %v", e.Err)
	default:
		return "decoding image: the data are not a PNG, JPEG, GIF or WebP image"
	}
}

func (e *Error) Unwrap() error { return e.Err }

// Info is what an image's header says.
type Info struct {
	// Format is "png", "jpeg", "gif" or "webp", found in the bytes.
	Format string
	// Width and Height are in pixels, within the limits.
	Width, Height int
}

// Probe reads the header alone and holds it against the limits. Its errors are *Error.
func Probe(data []byte) (Info, error) {
	cfg, format, err := decodeConfig(data)
	if err != nil {
		return Info{}, &Error{Reason: Unsupported, Err: err}
	}
	if cfg.Width <= 0 || cfg.Height <= 0 {
		return Info{}, &Error{Reason: Broken, Err: fmt.Errorf("the header says %dx%d pixels", cfg.Width, cfg.Height)}
	}
	pixels := int64(cfg.Width) * int64(cfg.Height)
	if cfg.ColorModel == color.RGBA64Model || cfg.ColorModel == color.NRGBA64Model {
		pixels *= 2
	}
	if cfg.Width > MaxSide || cfg.Height > MaxSide || pixels > MaxPixels {
		return Info{}, &Error{Reason: TooLarge, Width: cfg.Width, Height: cfg.Height}
	}
	return Info{Format: format, Width: cfg.Width, Height: cfg.Height}, nil
}

// Decode gives the pixels of an image within the limits: of an animation the
// first frame, of transparent pixels what a white page behind them shows.
// Stored pixels count: an EXIF orientation is not applied, so that positions
// are those of the file. Its errors are *Error.
func Decode(data []byte) (*Raster, error) {
	info, err := Probe(data)
	if err != nil {
		return nil, err
	}
	img, err := decode(data)
	if err != nil {
		return nil, &Error{Reason: Broken, Width: info.Width, Height: info.Height, Err: err}
	}
	if b := img.Bounds(); !b.In(image.Rect(0, 0, info.Width, info.Height)) {
		return nil, &Error{Reason: Broken, Width: info.Width, Height: info.Height, Err: fmt.Errorf("the pixels lie outside the %dx%d that the header says", info.Width, info.Height)}
	}
	return grey(img, info.Width, info.Height), nil
}

// decodeConfig is image.DecodeConfig with a decoder's panic as its error.
func decodeConfig(data []byte) (cfg image.Config, format string, err error) {
	defer contain(&err)
	return image.DecodeConfig(bytes.NewReader(data))
}

// decode is image.Decode with a decoder's panic as its error.
func decode(data []byte) (img image.Image, err error) {
	defer contain(&err)
	img, _, err = image.Decode(bytes.NewReader(data))
	return img, err
}

// contain turns a panic of a decoder (they have had such bugs) into an error,
// so that one hostile image costs one answer.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the decoder gave up: %v", r)
	}
}

// Raster is a picture of one byte per pixel, 0 black to 255 white, row after
// row from the top left, without padding: len(Pix) == Width*Height.
type Raster struct {
	Width, Height int
	Pix           []byte
}

// stripRows is how many rows are converted at a time, which bounds the memory
// that the conversion takes beside the two pictures.
const stripRows = 64

// grey lays img on a white page of the given size and keeps its luminance
// (ITU-R BT.601 weights, as image/color's grey model).
func grey(img image.Image, width, height int) *Raster {
	out := &Raster{Width: width, Height: height, Pix: make([]byte, width*height)}
	for top := 0; top < height; top += stripRows {
		area := image.Rect(0, top, width, min(top+stripRows, height))
		strip := image.NewRGBA(area)
		for i := range strip.Pix {
			strip.Pix[i] = 0xff
		}
		part := area.Intersect(img.Bounds())
		draw.Draw(strip, part, img, part.Min, draw.Over)
		to := out.Pix[top*width : area.Max.Y*width]
		for i := range to {
			p := strip.Pix[i*4 : i*4+4 : i*4+4]
			to[i] = byte((19595*uint32(p[0]) + 38470*uint32(p[1]) + 7471*uint32(p[2]) + 1<<15) >> 16)
		}
	}
	return out
}

// Enlarged is the picture n times as wide and as high, interpolated between
// the pixels' centres; n >= 1.
func (r *Raster) Enlarged(n int) *Raster {
	if n <= 1 {
		return r
	}
	out := &Raster{Width: r.Width * n, Height: r.Height * n, Pix: make([]byte, r.Width*n*r.Height*n)}
	columns := taps(r.Width, n)
	full := 2 * n
	for y, row := range taps(r.Height, n) {
		upper, lower := r.Pix[row.a*r.Width:], r.Pix[row.b*r.Width:]
		line := out.Pix[y*out.Width : (y+1)*out.Width]
		for x, c := range columns {
			top := int(upper[c.a])*(full-c.weight) + int(upper[c.b])*c.weight
			bottom := int(lower[c.a])*(full-c.weight) + int(lower[c.b])*c.weight
			line[x] = byte((top*(full-row.weight) + bottom*row.weight + full*full/2) / (full * full))
		}
	}
	return out
}

// tap says that a position lies between the source positions a and b, weight
// 2n-ths of the way.
type tap struct{ a, b, weight int }

// taps gives, for each of size*n positions, the two of size that it lies between.
func taps(size, n int) []tap {
	out := make([]tap, size*n)
	for i := range out {
		// The centre of position i is at (2i+1)/(2n) - 1/2 in the source.
		at := 2*i + 1 - n
		if at < 0 {
			out[i] = tap{}
			continue
		}
		a := at / (2 * n)
		out[i] = tap{a: a, b: min(a+1, size-1), weight: at % (2 * n)}
	}
	return out
}

// PGM is the picture as a binary "portable graymap" file, read off the pixels
// without a copy.
func (r *Raster) PGM() io.Reader {
	return io.MultiReader(strings.NewReader(fmt.Sprintf("P5\n%d %d\n255\n", r.Width, r.Height)), bytes.NewReader(r.Pix))
}
