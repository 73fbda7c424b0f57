// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

func isTIFF(b []byte) bool { return hasPrefix(b, "II*\x00") || hasPrefix(b, "MM\x00*") }

// readTIFF reads width and height (tags 256 and 257) from the first directory.
// It may stand anywhere in the file: past what can be seen, the size is
// unknown (TIFF 6.0, section 2).
func readTIFF(b []byte) (Facts, error) {
	unknown := Facts{MediaType: TIFF}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	if len(b) < 8 {
		return refused(TIFF, Truncated)
	}
	at := int64(order.Uint32(b[4:]))
	if at < 8 {
		return refused(TIFF, Malformed)
	}
	if at+2 > int64(len(b)) {
		return unknown, nil
	}
	entries := b[at+2:]
	sides := map[uint16]uint32{}
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			return unknown, nil
		}
		if tag := order.Uint16(entries); tag == 256 || tag == 257 {
			sides[tag] = tiffNumber(order, entries)
		}
		entries = entries[12:]
	}
	if len(sides) < 2 {
		return refused(TIFF, Malformed)
	}
	return sized(TIFF, int(sides[256]), int(sides[257]))
}

// tiffNumber reads the one value of a directory entry: a SHORT or a LONG.
func tiffNumber(order binary.ByteOrder, entry []byte) uint32 {
	if order.Uint16(entry[2:]) == 3 {
		return uint32(order.Uint16(entry[8:]))
	}
	return order.Uint32(entry[8:])
}
