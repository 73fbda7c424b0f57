// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe reads facts about an image from the first bytes of its
// content: which format it is, and how large. It never decodes a pixel, never
// looks at a file name or a declared type, and needs at most [MaxHeader]
// bytes, so a hostile image is refused before the rest of it is read.
//
// The package is pure: bytes (or an io.Reader) in, facts out. Each format has
// its own file with one match function and one read function; Header is the
// only place that knows their order.
package probe

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxHeader is the most that is ever looked at, in bytes. PNG, GIF and WebP
// keep their size within the first 30 bytes. A JPEG may put any number of
// 65,535-byte segments (EXIF, ICC, XMP) before it; past this bound its size
// is reported as unknown.
const MaxHeader = 64 << 10

// The media types that every vision model takes.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
)

// The media types that some models take besides. The size of TIFF, AVIF, HEIC
// and HEIF may be unknown even when the whole image is at hand.
const (
	BMP  = "image/bmp"
	TIFF = "image/tiff"
	AVIF = "image/avif"
	HEIC = "image/heic"
	HEIF = "image/heif"
)

// MediaTypes returns the media types that Header recognises, in a fixed order
// that suits a message to the reader. Which of them are accepted is the
// caller's to say.
func MediaTypes() []string { return []string{PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF, HEIC, HEIF} }

// Facts is what the header of an image says.
type Facts struct {
	// MediaType is one of the constants above, taken from the content alone.
	MediaType string
	// Width and Height are in pixels, as stored (before any orientation that
	// metadata may ask for). Both are 0 when the size is unknown.
	Width, Height int
}

// SizeKnown reports whether the header told the size.
func (f Facts) SizeKnown() bool { return f.Width > 0 && f.Height > 0 }

// Pixels is width times height, computed in 64 bits: the largest PNG
// (2^31-1 on both sides) does not overflow. It is 0 when the size is unknown.
func (f Facts) Pixels() uint64 {
	if !f.SizeKnown() {
		return 0
	}
	return uint64(f.Width) * uint64(f.Height)
}

// Header reads the facts from prefix: the first MaxHeader bytes of an image,
// or all of it when it is shorter. Bytes past MaxHeader are not looked at.
//
// A prefix shorter than MaxHeader is taken as the whole image. That decides
// what a missing size means: an image that ends before its size is an *Error
// with reason Truncated, while a JPEG that goes on past MaxHeader has an
// unknown size and no error.
//
// When the format was recognised, Facts.MediaType is set even beside an error.
func Header(prefix []byte) (Facts, error) {
	if len(prefix) > MaxHeader {
		prefix = prefix[:MaxHeader]
	}
	return read(prefix, len(prefix) == MaxHeader)
}

// Content reads the facts from the whole image, however far in the size
// stands. It is for callers that hold the content anyway and want to apply
// their pixel limit to an image whose size Header could not tell; here the
// size of a PNG, JPEG, GIF or WebP is never unknown without an error.
func Content(data []byte) (Facts, error) { return read(data, false) }

// read dispatches on the signature. more says that the image continues past b.
func read(b []byte, more bool) (Facts, error) {
	switch {
	case isPNG(b):
		return readPNG(b)
	case isGIF(b):
		return readGIF(b)
	case isWebP(b):
		return readWebP(b)
	case isJPEG(b):
		return readJPEG(b, more)
	case isBMP(b):
		return readBMP(b)
	case isTIFF(b):
		return readTIFF(b)
	}
	if kind := heifType(b); kind != "" {
		return readHEIF(b, kind)
	}
	return Facts{}, &Error{Reason: NotAnImage}
}

var headers = sync.Pool{New: func() any { return new([MaxHeader]byte) }}

// Reader reads at most MaxHeader bytes from r and returns what Header says
// about them. A failure of r itself is returned wrapped and is not an *Error.
func Reader(r io.Reader) (Facts, error) {
	buf, _ := headers.Get().(*[MaxHeader]byte)
	defer headers.Put(buf)
	n, err := io.ReadFull(r, buf[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Facts{}, fmt.Errorf("reading image header: %w", err)
	}
	return Header(buf[:n])
}

// sized finishes a read: a size with a zero side is refused.
func sized(mediaType string, width, height int) (Facts, error) {
	if width == 0 || height == 0 {
		return Facts{MediaType: mediaType}, &Error{Reason: ZeroSize, MediaType: mediaType}
	}
	return Facts{MediaType: mediaType, Width: width, Height: height}, nil
}

// refused finishes a read that failed: the type is known, the size is not.
func refused(mediaType string, reason Reason) (Facts, error) {
	return Facts{MediaType: mediaType}, &Error{Reason: reason, MediaType: mediaType}
}

// hasPrefix compares without allocating.
func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}
