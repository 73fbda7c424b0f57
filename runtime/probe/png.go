// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"math"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

func isPNG(b []byte) bool { return hasPrefix(b, pngSignature) }

// readPNG reads IHDR, which must be the first chunk and 13 bytes long
// (W3C PNG, 11.2.1): length at 8, type at 12, width at 16, height at 20, all
// big-endian; a side has at most 31 bits. Depth and colour type follow.
func readPNG(b []byte, more bool) (Facts, error) {
	facts := Facts{MediaType: PNG}
	if len(b) < 24 {
		return cut(facts, more)
	}
	if binary.BigEndian.Uint32(b[8:]) != 13 || string(b[12:16]) != "IHDR" {
		return refused(PNG, Malformed)
	}
	width, height := binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
	if width > math.MaxInt32 || height > math.MaxInt32 {
		return refused(PNG, Malformed)
	}
	if len(b) >= 26 {
		facts.Bits = pngBits(b[24], b[25])
	}
	facts.readChunks(b)
	return sized(facts, int64(width), int64(height))
}

// pngBits is the depth of a sample (W3C PNG, 4.5): of a palette it is always 8.
func pngBits(depth, colour byte) int {
	const palette = 3
	switch {
	case colour == palette:
		return 8
	case depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16:
		return int(depth)
	}
	return 0
}

// readChunks walks the chunks behind IHDR by their lengths. An animation is
// announced by acTL, which counts its frames and must precede the pixels (W3C
// PNG, 11.3.7.1); the orientation in eXIf may follow them.
func (f *Facts) readChunks(b []byte) {
	const afterIHDR = 33
	for at := afterIHDR; at+8 <= len(b); {
		length := int64(binary.BigEndian.Uint32(b[at:]))
		name := string(b[at+4 : at+8])
		data := b[at+8 : min(int64(len(b)), int64(at)+8+length)]
		switch {
		case length > math.MaxInt32 || name == "IEND" || name[0] < 'A' || name[0] > 'z': // or no chunk at all
			return
		case name == "acTL" && f.Animated == Unknown && len(data) >= 4:
			f.Animated = No
			if binary.BigEndian.Uint32(data) > 1 {
				f.Animated = Yes
			}
		case name == "IDAT" && f.Animated == Unknown:
			f.Animated = No
		case name == "eXIf" && f.Orientation == 0:
			f.Orientation = exifOrientation(data)
		}
		at += 12 + int(length)
	}
}
