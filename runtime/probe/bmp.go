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
func readBMP(b []byte, more bool) (Facts, error) {
	facts := Facts{MediaType: BMP, Animated: No}
	if binary.LittleEndian.Uint32(b[14:]) == 12 {
		if len(b) < 22 {
			return cut(facts, more)
		}
		return sized(facts, int64(binary.LittleEndian.Uint16(b[18:])), int64(binary.LittleEndian.Uint16(b[20:])))
	}
	if len(b) < 26 {
		return cut(facts, more)
	}
	width, height := int64(int32(binary.LittleEndian.Uint32(b[18:]))), int64(int32(binary.LittleEndian.Uint32(b[22:])))
	return sized(facts, width, max(height, -height))
}
