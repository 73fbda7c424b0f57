// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe reads facts about an image from the first bytes of its
// content: which format it is, how large, which way up, and whether it moves.
// It never decodes a pixel, never looks at a file name or a declared type, and
// needs at most [MaxHeader] bytes, so a hostile image is refused before the
// rest of it is read.
//
// The package is pure: bytes (or an io.Reader) in, facts out. Each format has
// its own file with one match function and one read function; read is the
// only place that knows their order.
//
// A size is told, refused, or unknown, and never guessed. Bytes that end before
// the size are a refusal where they are the whole image, and an unknown size
// where it goes on behind them. A side of zero pixels is a refusal; an absurdly
// large one is told, for the caller to hold against its limits, up to what the
// format can say (2^31-1 for all but BMP's height, which can be one more).
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

// Header reads the facts from prefix: the first MaxHeader bytes of an image,
// or all of it when it is shorter. Bytes past MaxHeader are not looked at.
//
// A prefix shorter than MaxHeader is taken as the whole image. That decides
// what a missing size means: an image that ends before its size is an *Error
// with reason Truncated, while a JPEG that goes on past MaxHeader has an
// unknown size and no error. Head is for shorter prefixes of longer images.
//
// When the format was recognised, Facts.MediaType is set even beside an error,
// and nothing else is.
func Header(prefix []byte) (Facts, error) {
	if len(prefix) > MaxHeader {
		prefix = prefix[:MaxHeader]
	}
	return read(prefix, len(prefix) == MaxHeader)
}

// Head is Header for an image of size bytes of which the caller holds the first
// ones only, however few: what they do not tell is unknown, and not refused.
func Head(head []byte, size int64) (Facts, error) {
	if len(head) > MaxHeader {
		head = head[:MaxHeader]
	}
	return read(head, size > int64(len(head)))
}

// Content reads the facts from the whole image, however far in they stand. It
// is for callers that hold the content anyway and want to apply their pixel
// limit to an image whose size Header could not tell; here the size of a PNG,
// JPEG, GIF or WebP is never unknown without an error.
func Content(data []byte) (Facts, error) { return read(data, false) }

// read dispatches on the signature. more says that the image continues past b.
func read(b []byte, more bool) (Facts, error) {
	switch {
	case isPNG(b):
		return readPNG(b, more)
	case isGIF(b):
		return readGIF(b, more)
	case isWebP(b):
		return readWebP(b, more)
	case isJPEG(b):
		return readJPEG(b, more)
	case isBMP(b):
		return readBMP(b, more)
	case isTIFF(b):
		return readTIFF(b, more)
	case isICO(b):
		return readICO(b, more)
	case isJXL(b):
		return Facts{MediaType: JXL}, nil
	case isJP2(b):
		return Facts{MediaType: JP2, Animated: No}, nil
	}
	if kind := heifType(b); kind != "" {
		return readHEIF(b, kind, more)
	}
	if tag, ok := svgTag(b); ok {
		return readSVG(tag), nil
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

// sized finishes a read: a size with a zero side is refused, and so is one that
// no decoder could have written (a side over 2^31-1).
func sized(facts Facts, width, height int64) (Facts, error) {
	switch {
	case width == 0 || height == 0:
		return refused(facts.MediaType, ZeroSize)
	case width < 0 || height < 0 || width > maxSide || height > maxSide:
		return refused(facts.MediaType, Malformed)
	}
	facts.Width, facts.Height = int(width), int(height)
	return facts, nil
}

// refused finishes a read that failed: the type is known, the size is not.
func refused(mediaType string, reason Reason) (Facts, error) {
	return Facts{MediaType: mediaType}, &Error{Reason: reason, MediaType: mediaType}
}

// cut finishes a read that came to the end of the bytes before the size.
func cut(facts Facts, more bool) (Facts, error) {
	if more {
		return facts, nil
	}
	return refused(facts.MediaType, Truncated)
}

// maxSide is 2^31: the lowest height of a BMP, turned round.
const maxSide = 1 << 31

// hasPrefix compares without allocating.
func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}
