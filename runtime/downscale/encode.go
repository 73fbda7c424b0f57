// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import (
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// jpegQuality is high enough for text to stay readable, and less than half the
// bytes of 100.
const jpegQuality = 90

// kind is a way of writing a copy.
type kind struct {
	mediaType string
	encode    func(io.Writer, image.Image) error
}

var (
	asPNG  = kind{probe.PNG, png.Encode}
	asJPEG = kind{probe.JPEG, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, &jpeg.Options{Quality: jpegQuality}) }}
)

// kinds are the ways of writing that may be tried, the best first: a photograph
// stays one; what has transparency is a PNG; anything else is a PNG as long as
// that is small enough.
func kinds(pixels *image.RGBA, sourceType string, accepted []string) []kind {
	list := []kind{asPNG, asJPEG}
	switch {
	case !pixels.Opaque():
		list = []kind{asPNG}
	case sourceType == probe.JPEG:
		list = []kind{asJPEG, asPNG}
	}
	kept := list[:0]
	for _, k := range list {
		if allowed(k.mediaType, accepted) {
			kept = append(kept, k)
		}
	}
	return kept
}

// boundedFile keeps what is written as long as it is within max, and counts all of it.
type boundedFile struct {
	data      []byte
	size, max int64 // max 0 is no bound
}

// Write never fails.
func (f *boundedFile) Write(p []byte) (int, error) {
	f.size += int64(len(p))
	if f.fits() {
		f.data = append(f.data, p...)
	} else {
		f.data = nil
	}
	return len(p), nil
}

func (f *boundedFile) fits() bool { return f.max <= 0 || f.size <= f.max }
