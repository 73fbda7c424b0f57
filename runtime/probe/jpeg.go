// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
)

func isJPEG(b []byte) bool { return hasPrefix(b, "\xff\xd8\xff") }

// Markers of ITU-T T.81, table B.1, that the walk treats apart.
const (
	markerTEM = 0x01
	markerDHT = 0xc4 // in the SOF range, but not a frame header
	markerJPG = 0xc8 // reserved, likewise
	markerDAC = 0xcc // likewise
	markerRST = 0xd0 // to 0xd7
	markerSOI = 0xd8
	markerEOI = 0xd9
	markerSOS = 0xda
)

// readJPEG walks the segments by their lengths up to the frame header. It
// never searches for one: an EXIF thumbnail carries a frame header of its own.
// Like the common decoders it steps over stray bytes between segments.
// more says that the image continues past b, so that running off its end
// means an unknown size and not a truncated image.
func readJPEG(b []byte, more bool) (Facts, error) {
	for at := 2; ; {
		marker, next, ok := nextMarker(b, at)
		if !ok {
			return jpegCut(more)
		}
		switch {
		case marker == markerEOI || marker == markerSOS:
			return refused(JPEG, Malformed) // pixels, or the end, before any frame header
		case standalone(marker):
			at = next
			continue
		}
		if len(b) < next+2 {
			return jpegCut(more)
		}
		length := int(binary.BigEndian.Uint16(b[next:])) // counts itself
		if length < 2 {
			return refused(JPEG, Malformed)
		}
		if isSOF(marker) {
			return readSOF(b[next:], length, more)
		}
		at = next + length
	}
}

// nextMarker finds the marker code at or after at, past stray bytes and any
// number of 0xff fill bytes, and the index just behind it.
func nextMarker(b []byte, at int) (marker byte, next int, ok bool) {
	for at < len(b) {
		skip := bytes.IndexByte(b[at:], 0xff)
		if skip < 0 {
			return 0, 0, false
		}
		at += skip
		for at < len(b) && b[at] == 0xff {
			at++
		}
		if at == len(b) {
			return 0, 0, false
		}
		if b[at] != 0 { // ff 00 is a stuffed byte of data, not a marker
			return b[at], at + 1, true
		}
	}
	return 0, 0, false
}

// standalone markers have no length and no data.
func standalone(marker byte) bool {
	return marker == markerTEM || marker >= markerRST && marker <= markerSOI
}

func isSOF(marker byte) bool {
	return marker >= 0xc0 && marker <= 0xcf &&
		marker != markerDHT && marker != markerJPG && marker != markerDAC
}

// readSOF reads a frame header from its length field on (T.81, B.2.2):
// length, precision, height at 3, width at 5, number of components at 7.
func readSOF(b []byte, length int, more bool) (Facts, error) {
	if length < 8 {
		return refused(JPEG, Malformed)
	}
	if len(b) < 7 {
		return jpegCut(more)
	}
	return sized(JPEG, int(binary.BigEndian.Uint16(b[5:])), int(binary.BigEndian.Uint16(b[3:])))
}

func jpegCut(more bool) (Facts, error) {
	if more {
		return Facts{MediaType: JPEG}, nil
	}
	return refused(JPEG, Truncated)
}
