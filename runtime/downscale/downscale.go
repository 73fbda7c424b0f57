// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package downscale makes a smaller copy of an image that is over a limit:
// bytes in, bytes out. The copy is upright (EXIF's orientation is applied), has
// one frame (a GIF's first), eight bits a sample and no metadata; colour profiles
// are dropped, not applied. Transparency stays.
//
// The same bytes and limits give the same copy on every machine: all arithmetic
// on pixels is in integers, and the encoders are the standard library's.
//
// Memory is bounded before anything is decoded, by what the header tells, which
// decoders believe too. Rows are resampled one by one: nothing of the source's size
// is made beside what its decoder makes.
package downscale

import (
	"fmt"
	"image"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// Version names how copies are made. It changes with anything that makes another
// copy of the same bytes within the same limits.
const Version = "downscale.v1"

// Limits are what a copy keeps to; 0 or empty is no limit.
type Limits struct {
	// MaxPixels is width times height, MaxSide the longer of both.
	MaxPixels, MaxSide int64
	// MaxBytes is of the copy as a file.
	MaxBytes int64
	// MediaTypes are those that the copy may have.
	MediaTypes []string
}

// Copy is a smaller image.
type Copy struct {
	Data          []byte
	MediaType     string // image/png or image/jpeg
	Width, Height int    // in pixels, upright
}

// Reason says why no copy was made.
type Reason string

// The reasons.
const (
	// NotDecodable: the type is none of PNG, JPEG, GIF and WebP, or of a kind that
	// is not decoded, such as an animated WebP.
	NotDecodable Reason = "NotDecodable"
	// TooLarge: decoding would take more memory than is allowed.
	TooLarge Reason = "TooLargeToDecode"
	// Malformed: the image is broken or cut off.
	Malformed Reason = "Malformed"
	// NoFit: no copy that can be written keeps to the limits.
	NoFit Reason = "NoCopyFits"
)

// Error says why no copy was made.
type Error struct {
	Reason Reason
	// Memory and MaxMemory are in bytes, with TooLarge.
	Memory, MaxMemory int64
	Cause             error
}

// Error never holds anything of the image.
func (e *Error) Error() string {
	switch e.Reason {
	case NotDecodable:
		return "making a smaller copy: an image of this kind cannot be decoded"
	case TooLarge:
		return fmt.Sprintf("making a smaller copy: decoding would take %d bytes of memory, of %d", e.Memory, e.MaxMemory)
	case NoFit:
		return "making a smaller copy: none fits the limits"
	}
	return "making a smaller copy: the image is broken or cut off"
}

// Unwrap is the decoder's error.
func (e *Error) Unwrap() error { return e.Cause }

// Image makes the copy. At most about maxMemory bytes are taken for it, the
// source not counted; see Memory. The error is an *Error.
func Image(data []byte, limits Limits, maxMemory int64) (*Copy, error) {
	facts, err := probe.Content(data)
	if err != nil {
		return nil, &Error{Reason: Malformed, Cause: err}
	}
	if err := Check(data, facts, limits, maxMemory); err != nil {
		return nil, err
	}
	src, err := decode(data, facts.MediaType)
	if err != nil {
		return nil, undecodable(err)
	}
	canvas := image.Rect(0, 0, facts.Width, facts.Height)
	if whole := src.Bounds() == canvas; !whole && facts.MediaType != probe.GIF { // whose frames may be smaller
		return nil, &Error{Reason: Malformed}
	}
	width, height := Size(facts.Width, facts.Height, limits)
	return fit(src, canvas, facts, width, height, limits)
}

// Check says without decoding anything why no copy can be made of an image that
// was probed. The error is nil or an *Error; one that only decoding or encoding
// shows is not found.
func Check(data []byte, facts probe.Facts, limits Limits, maxMemory int64) error {
	if !Decodes(facts) {
		return &Error{Reason: NotDecodable}
	}
	if !slices.ContainsFunc(Types(), func(t string) bool { return allowed(t, limits.MediaTypes) }) {
		return &Error{Reason: NoFit}
	}
	if need := Memory(data, facts, limits); need > maxMemory {
		return &Error{Reason: TooLarge, Memory: need, MaxMemory: maxMemory}
	}
	return nil
}

// attempts bounds how often a copy is made smaller because its file is too large.
const attempts = 8

// fit encodes, and makes smaller what has too many bytes.
func fit(src image.Image, canvas image.Rectangle, facts probe.Facts, width, height int, limits Limits) (*Copy, error) {
	for range attempts {
		pixels := resample(src, canvas, width, height, facts.Orientation)
		least := int64(0) // bytes of the smallest file
		for _, kind := range kinds(pixels, facts.MediaType, limits.MediaTypes) {
			file := &boundedFile{max: limits.MaxBytes}
			if err := kind.encode(file, pixels); err != nil {
				return nil, &Error{Reason: NoFit, Cause: err} // no encoder refuses such an image
			}
			if file.fits() {
				return &Copy{Data: file.data, MediaType: kind.mediaType, Width: pixels.Rect.Dx(), Height: pixels.Rect.Dy()}, nil
			}
			if least == 0 || file.size < least {
				least = file.size
			}
		}
		if least == 0 || width == 1 && height == 1 {
			break
		}
		width, height = smaller(width, height, limits.MaxBytes, least)
	}
	return nil, &Error{Reason: NoFit}
}

// Types are the media types that a copy may have.
func Types() []string { return []string{probe.PNG, probe.JPEG} }

// Decodes reports whether an image is of a kind that can be decoded.
func Decodes(facts probe.Facts) bool {
	switch facts.MediaType {
	case probe.PNG, probe.JPEG, probe.GIF:
		return true
	case probe.WebP:
		return facts.Animated != probe.Yes
	}
	return false
}

// allowed are the types of ours that a list has; an empty list has all.
func allowed(mediaType string, list []string) bool {
	return len(list) == 0 || slices.Contains(list, mediaType)
}
