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
// big-endian; a side has at most 31 bits.
func readPNG(b []byte) (Facts, error) {
	if len(b) < 24 {
		return refused(PNG, Truncated)
	}
	if binary.BigEndian.Uint32(b[8:]) != 13 || string(b[12:16]) != "IHDR" {
		return refused(PNG, Malformed)
	}
	width, height := binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
	if width > math.MaxInt32 || height > math.MaxInt32 {
		return refused(PNG, Malformed)
	}
	return sized(PNG, int(width), int(height))
}
