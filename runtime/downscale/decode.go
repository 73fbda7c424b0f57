// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/webp"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// decode decodes the first frame.
func decode(data []byte, mediaType string) (image.Image, error) {
	r := bytes.NewReader(data)
	switch mediaType {
	case probe.PNG:
		return png.Decode(r)
	case probe.JPEG:
		return jpeg.Decode(r)
	case probe.GIF:
		return gif.Decode(r)
	case probe.WebP:
		return webp.Decode(r)
	}
	return nil, errors.New("decoding an image: unknown type")
}

// undecodable is the error of a decoder, told apart.
func undecodable(err error) *Error {
	_, isJPEG := errors.AsType[jpeg.UnsupportedError](err)
	_, isPNG := errors.AsType[png.UnsupportedError](err)
	if isJPEG || isPNG {
		return &Error{Reason: NotDecodable, Cause: err}
	}
	return &Error{Reason: Malformed, Cause: err}
}

// Memory is the most that making a copy takes, in bytes, as far as the header
// tells: what the decoder makes, the copy's pixels twice (once more when they are
// turned), and its file.
func Memory(data []byte, facts probe.Facts, limits Limits) int64 {
	w, h := Size(facts.Width, facts.Height, limits)
	file := limits.MaxBytes
	if file <= 0 {
		file = 4 * int64(w) * int64(h)
	}
	return times(facts.Pixels(), perPixel(data, facts)) + times(uint64(w)*uint64(h), 8) + file
}

// mostMemory stands for anything that is too much, far from overflows.
const mostMemory = 1 << 50

func times(pixels uint64, bytes int64) int64 {
	if pixels > mostMemory/16/64 {
		return mostMemory
	}
	return int64(pixels) * bytes
}

// perPixel is what the decoders make for each pixel, in bytes: the standard
// library's as of Go 1.26, and golang.org/x/image's.
func perPixel(data []byte, facts probe.Facts) int64 {
	switch facts.MediaType {
	case probe.PNG:
		n := int64(4) // RGBA; fewer for grey and palettes
		if facts.Bits == 16 {
			n = 8
		}
		if len(data) > pngInterlace && data[pngInterlace] != 0 { // interlaced: each pass is an image too
			n *= 2
		}
		return n
	case probe.JPEG:
		return jpegPerPixel(data, facts)
	case probe.GIF:
		return 1
	}
	return 8 // WebP: lossless NRGBA, and what it is transformed from
}

// jpegPerPixel is a byte for each component, and 4 more in a progressive one,
// whose coefficients are kept. Subsampled components count as whole ones.
func jpegPerPixel(data []byte, facts probe.Facts) int64 {
	n := int64(3)
	if facts.CMYK {
		n = 8 // planes, and the CMYK image that is made of them
	}
	if !baseline(data) {
		n *= 5
	}
	return n
}

// baseline reports whether a JPEG's first frame header is that of a sequential
// image. It walks the segments; anything unexpected counts as not.
func baseline(data []byte) bool {
	for at := 2; at+4 <= len(data); {
		if data[at] != 0xff {
			return false
		}
		switch m := data[at+1]; {
		case m == 0xff: // a fill byte
			at++
			continue
		case m == 0xc0 || m == 0xc1:
			return true
		case m == 0xc2 || m == 0xda || m == 0xd9:
			return false
		case m == 0x01 || m >= 0xd0 && m <= 0xd8: // without a length
			at += 2
			continue
		}
		at += 2 + int(data[at+2])<<8 + int(data[at+3])
	}
	return false
}

// pngInterlace is where a PNG says whether it is interlaced: the last byte of its
// header.
const pngInterlace = 28
