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
	markerTEM  = 0x01
	markerDHT  = 0xc4 // in the SOF range, but not a frame header
	markerJPG  = 0xc8 // reserved, likewise
	markerDAC  = 0xcc // likewise
	markerRST  = 0xd0 // to 0xd7
	markerSOI  = 0xd8
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerDHP  = 0xde // of a hierarchy of frames: as SOF, with the size of the largest
	markerAPP1 = 0xe1
)

// readJPEG walks the segments by their lengths up to the pixels, for the first
// frame header and the first EXIF. It never searches for a frame header: an
// EXIF thumbnail carries one of its own. Like the common decoders it steps over
// stray bytes between segments.
// more says that the image continues past b, so that running off its end
// means an unknown size and not a truncated image.
func readJPEG(b []byte, more bool) (Facts, error) {
	facts := Facts{MediaType: JPEG, Animated: No}
	exifSeen := false
	for s := (jpegSegment{next: 2}); ; {
		state := s.step(b)
		switch {
		case facts.SizeKnown() && state != segmentRead:
			return facts, nil
		case state == segmentCut:
			return cut(facts, more)
		case state == segmentBroken:
			return refused(JPEG, Malformed) // pixels, or the end, before any frame header
		case isSOF(s.marker) && !facts.SizeKnown():
			if s.length < 8 {
				return refused(JPEG, Malformed)
			}
			if len(s.data) < 5 {
				return cut(facts, more)
			}
			var err error
			if facts, err = readSOF(facts, s.data); err != nil {
				return facts, err
			}
		case s.marker == markerAPP1 && !exifSeen && hasPrefix(s.data, "Exif\x00"):
			exifSeen = true // a second one continues the first
			facts.Orientation = exifOrientation(s.data)
		}
	}
}

// readSOF reads the data of a frame header (T.81, B.2.2): precision, height at
// 1, width at 3, number of components at 5.
func readSOF(facts Facts, data []byte) (Facts, error) {
	facts.Bits = int(data[0])
	facts.CMYK = len(data) > 5 && data[5] == 4
	return sized(facts, int64(binary.BigEndian.Uint16(data[3:])), int64(binary.BigEndian.Uint16(data[1:])))
}

// jpegSegment is where a walk stands: a marker with its length (which counts the
// two bytes that it takes) and as much of its data as can be seen.
type jpegSegment struct {
	marker byte
	length int
	data   []byte
	next   int
}

// segmentState is how a step ended.
type segmentState uint8

const (
	segmentRead   segmentState = iota
	segmentCut                 // the bytes end before the next segment's length
	segmentBroken              // pixels, the end of the image, or a length that does not cover itself
)

// step goes on to the next marker that has data.
func (s *jpegSegment) step(b []byte) segmentState {
	for {
		marker, at, ok := nextMarker(b, s.next)
		switch {
		case !ok:
			return segmentCut
		case marker == markerEOI || marker == markerSOS:
			return segmentBroken
		case standalone(marker):
			s.next = at
			continue
		case len(b) < at+2:
			return segmentCut
		}
		length := int(binary.BigEndian.Uint16(b[at:]))
		if length < 2 {
			return segmentBroken
		}
		*s = jpegSegment{marker: marker, length: length, data: b[at+2 : max(at+2, min(at+length, len(b)))], next: at + length}
		return segmentRead
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

// isSOF matches frame headers, and the one that stands before a hierarchy of
// frames and has their full size.
func isSOF(marker byte) bool {
	return marker == markerDHP || marker >= 0xc0 && marker <= 0xcf &&
		marker != markerDHT && marker != markerJPG && marker != markerDAC
}
