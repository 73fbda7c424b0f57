// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

// An ICO begins with 6 bytes, the last two of which count the entries of 16
// bytes that follow.
const (
	icoHead  = 6
	icoEntry = 16
)

// isICO wants a first entry that can be one: it has bytes, and they stand
// behind the directory. Four bytes alone begin other files too.
func isICO(b []byte) bool {
	if !hasPrefix(b, "\x00\x00\x01\x00") || len(b) < icoHead+icoEntry {
		return false
	}
	count := uint32(binary.LittleEndian.Uint16(b[4:]))
	size, at := binary.LittleEndian.Uint32(b[14:]), binary.LittleEndian.Uint32(b[18:])
	return count > 0 && b[9] == 0 && size > 0 && at >= icoHead+icoEntry*count
}

// readICO reads the directory's largest picture. A side has one byte, where 0
// stands for 256.
func readICO(b []byte, more bool) (Facts, error) {
	facts := Facts{MediaType: ICO, Animated: No}
	count := int(binary.LittleEndian.Uint16(b[4:]))
	if len(b) < icoHead+icoEntry*count {
		return cut(facts, more)
	}
	for i := range count {
		entry := b[icoHead+icoEntry*i:]
		if w, h := icoSide(entry[0]), icoSide(entry[1]); w*h > facts.Width*facts.Height {
			facts.Width, facts.Height = w, h
		}
	}
	return facts, nil
}

func icoSide(b byte) int {
	if b == 0 {
		return 256
	}
	return int(b)
}
