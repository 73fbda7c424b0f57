// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

func isWebP(b []byte) bool {
	return hasPrefix(b, "RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP"
}

// readWebP reads the first chunk: its type stands at 12, its length at 16 and
// its data at 20 (RFC 9649, 2.3 to 2.7).
func readWebP(b []byte, more bool) (Facts, error) {
	facts := Facts{MediaType: WebP}
	if len(b) < 16 {
		return cut(facts, more)
	}
	var read func([]byte) (int, int, chunkState)
	switch string(b[12:16]) {
	case "VP8 ":
		read, facts.Animated = readVP8, No
	case "VP8L":
		read, facts.Animated = readVP8L, No
	case "VP8X":
		read = readVP8X
	default:
		return refused(WebP, Malformed)
	}
	if len(b) < 20 {
		return cut(facts, more)
	}
	width, height, state := read(b[20:])
	switch state {
	case chunkCut:
		return cut(facts, more)
	case chunkBroken:
		return refused(WebP, Malformed)
	}
	facts, err := sized(facts, int64(width), int64(height))
	if err == nil && b[15] == 'X' {
		facts.readExtended(b)
	}
	return facts, err
}

// chunkState is whether a chunk told its size.
type chunkState uint8

const (
	chunkRead chunkState = iota
	chunkCut
	chunkBroken
)

// readVP8 reads a lossy key frame (RFC 6386, 9.1): the inverse key frame bit
// at 0, the start code at 3, then 14-bit sides whose upper two bits are a
// scale that does not change the stored size.
func readVP8(data []byte) (width, height int, state chunkState) {
	if len(data) < 10 {
		return 0, 0, chunkCut
	}
	if data[0]&1 != 0 || data[3] != 0x9d || data[4] != 0x01 || data[5] != 0x2a {
		return 0, 0, chunkBroken
	}
	w, h := binary.LittleEndian.Uint16(data[6:])&0x3fff, binary.LittleEndian.Uint16(data[8:])&0x3fff
	return int(w), int(h), chunkRead
}

// readVP8L reads a lossless header (RFC 9649, 3.4): the signature byte 0x2f,
// then 14 bits of width-1, 14 of height-1, one alpha hint, three of version
// (always 0). A whole image can be shorter than the 30 bytes of its sisters.
func readVP8L(data []byte) (width, height int, state chunkState) {
	if len(data) < 5 {
		return 0, 0, chunkCut
	}
	bits := binary.LittleEndian.Uint32(data[1:])
	if data[0] != 0x2f || bits>>29 != 0 {
		return 0, 0, chunkBroken
	}
	return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, chunkRead
}

// readVP8X reads an extended header: flags at 0, then 24-bit width-1 at 4
// and height-1 at 7 of the canvas.
func readVP8X(data []byte) (width, height int, state chunkState) {
	if len(data) < 10 {
		return 0, 0, chunkCut
	}
	return uint24(data[4:]) + 1, uint24(data[7:]) + 1, chunkRead
}

// readExtended reads the animation flag, and walks the chunks of an extended
// image by their lengths to the end of the RIFF: for the orientation, which
// usually stands behind the pixels, and for frames that reach past the canvas.
func (f *Facts) readExtended(b []byte) {
	const animation = 0x02
	f.Animated = No
	if b[20]&animation != 0 {
		f.Animated = Yes
	}
	end := min(int64(len(b)), 8+int64(binary.LittleEndian.Uint32(b[4:])))
	for at := int64(12); at+8 <= end; {
		length := int64(binary.LittleEndian.Uint32(b[at+4:]))
		data := b[at+8 : min(end, at+8+length)]
		switch string(b[at : at+4]) {
		case "EXIF":
			if f.Orientation == 0 {
				f.Orientation = exifOrientation(data)
			}
		case "ANMF": // x/2 and y/2, then width-1 and height-1 of the frame (RFC 9649, 2.7.1.1)
			if len(data) >= 12 {
				f.reach(2*uint24(data)+uint24(data[6:])+1, 2*uint24(data[3:])+uint24(data[9:])+1)
			}
		case "VP8 ":
			f.reachIf(readVP8(data))
		case "VP8L":
			f.reachIf(readVP8L(data))
		}
		at += 8 + length + length&1
	}
}

// reachIf notes the picture of an extended image, which should be as large as
// the canvas.
func (f *Facts) reachIf(width, height int, state chunkState) {
	if state == chunkRead {
		f.reach(width, height)
	}
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
