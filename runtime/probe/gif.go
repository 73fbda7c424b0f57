// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

func isGIF(b []byte) bool { return hasPrefix(b, "GIF87a") || hasPrefix(b, "GIF89a") }

// readGIF reads the logical screen (GIF89a, section 18): little-endian width
// at 6 and height at 8.
func readGIF(b []byte) (Facts, error) {
	if len(b) < 10 {
		return refused(GIF, Truncated)
	}
	return sized(GIF, int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:])))
}
