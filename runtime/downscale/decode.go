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
// tells: what the decoder makes, the copy's pixels, and its file. Where a picture
// within the file is larger than the file says, which the probe sees, the larger one
// counts.
func Memory(data []byte, facts probe.Facts, limits Limits) int64 {
	w, h := Size(facts.Width, facts.Height, limits)
	pixels := 4 * int64(w) * int64(h)
	file := pixels // and not much more of what compresses worst
	if limits.MaxBytes > 0 {
		file = min(file, limits.MaxBytes)
	}
	return decodedBytes(data, facts) + pixels + file
}

// mostPixels is more than any decoder can take, and far from overflows.
const mostPixels = 1 << 40

// decodedBytes is what the decoders make, in bytes: the standard library's as of
// Go 1.26, and golang.org/x/image's.
func decodedBytes(data []byte, facts probe.Facts) int64 {
	pixels := int64(min(facts.Pixels(), mostPixels))
	switch facts.MediaType {
	case probe.PNG:
		n := int64(4) // RGBA; fewer for grey and palettes
		if facts.Bits == 16 {
			n = 8
		}
		if len(data) > pngInterlace && data[pngInterlace] != 0 { // each pass is an image too
			n *= 2
		}
		return n * pixels
	case probe.JPEG:
		return jpegBytes(data, pixels)
	case probe.GIF:
		return pixels
	}
	return 8 * pixels // WebP: lossless NRGBA, and what it is transformed from
}

// pngInterlace is where a PNG says whether it is interlaced: the last byte of its
// header.
const pngInterlace = 28
