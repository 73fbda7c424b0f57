// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

// isBMP wants a known header length too: "BM" alone begins many a text.
func isBMP(b []byte) bool {
	if !hasPrefix(b, "BM") || len(b) < 18 {
		return false
	}
	switch binary.LittleEndian.Uint32(b[14:]) {
	case 12, 16, 40, 52, 56, 64, 108, 124:
		return true
	}
	return false
}

// readBMP reads the header behind the file's own 14 bytes: OS/2's has sides of
// 16 bits at 18 and 20, Windows' of 32 bits at 18 and 22, where a negative
// height only says that rows go from top to bottom.
func readBMP(b []byte) (Facts, error) {
	if binary.LittleEndian.Uint32(b[14:]) == 12 {
		if len(b) < 22 {
			return refused(BMP, Truncated)
		}
		return sized(BMP, int(binary.LittleEndian.Uint16(b[18:])), int(binary.LittleEndian.Uint16(b[20:])))
	}
	if len(b) < 26 {
		return refused(BMP, Truncated)
	}
	width, height := int64(int32(binary.LittleEndian.Uint32(b[18:]))), int64(int32(binary.LittleEndian.Uint32(b[22:])))
	if width < 0 {
		return refused(BMP, Malformed)
	}
	return sized(BMP, int(width), int(max(height, -height)))
}
