// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

func isWebP(b []byte) bool {
	return hasPrefix(b, "RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP"
}

// readWebP reads the first chunk: its type stands at 12, its length at 16 and
// its data at 20 (RFC 9649, 2.3 to 2.7).
func readWebP(b []byte) (Facts, error) {
	if len(b) < 16 {
		return refused(WebP, Truncated)
	}
	switch string(b[12:16]) {
	case "VP8 ":
		return readVP8(b)
	case "VP8L":
		return readVP8L(b)
	case "VP8X":
		return readVP8X(b)
	}
	return refused(WebP, Malformed)
}

// readVP8 reads a lossy key frame (RFC 6386, 9.1): the inverse key frame bit
// at 20, the start code at 23, then 14-bit sides whose upper two bits are a
// scale that does not change the stored size.
func readVP8(b []byte) (Facts, error) {
	if len(b) < 30 {
		return refused(WebP, Truncated)
	}
	if b[20]&1 != 0 || b[23] != 0x9d || b[24] != 0x01 || b[25] != 0x2a {
		return refused(WebP, Malformed)
	}
	width := binary.LittleEndian.Uint16(b[26:]) & 0x3fff
	height := binary.LittleEndian.Uint16(b[28:]) & 0x3fff
	return sized(WebP, int(width), int(height))
}

// readVP8L reads a lossless header (RFC 9649, 3.4): the signature byte 0x2f,
// then 14 bits of width-1, 14 of height-1, one alpha hint, three of version
// (always 0). A whole image can be shorter than the 30 bytes of its sisters.
func readVP8L(b []byte) (Facts, error) {
	if len(b) < 25 {
		return refused(WebP, Truncated)
	}
	bits := binary.LittleEndian.Uint32(b[21:])
	if b[20] != 0x2f || bits>>29 != 0 {
		return refused(WebP, Malformed)
	}
	return sized(WebP, int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1)
}

// readVP8X reads an extended header: flags at 20, then 24-bit width-1 at 24
// and height-1 at 27 of the canvas.
func readVP8X(b []byte) (Facts, error) {
	if len(b) < 30 {
		return refused(WebP, Truncated)
	}
	return sized(WebP, uint24(b[24:])+1, uint24(b[27:])+1)
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
