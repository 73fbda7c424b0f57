// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

func isGIF(b []byte) bool { return hasPrefix(b, "GIF87a") || hasPrefix(b, "GIF89a") }

// readGIF reads the logical screen (GIF89a, section 18): little-endian width
// at 6 and height at 8.
func readGIF(b []byte, more bool) (Facts, error) {
	facts := Facts{MediaType: GIF}
	if len(b) < 10 {
		return cut(facts, more)
	}
	width, height := binary.LittleEndian.Uint16(b[6:]), binary.LittleEndian.Uint16(b[8:])
	facts, err := sized(facts, int64(width), int64(height))
	if err == nil {
		facts.readBlocks(b, more)
	}
	return facts, err
}

// Blocks of GIF89a, appendix A.
const (
	gifExtension = 0x21
	gifImage     = 0x2c
	gifTrailer   = 0x3b
)

// readBlocks walks the blocks by their lengths: a second image descriptor
// proves an animation, and only the end of the image refutes one. A NETSCAPE
// extension is no proof. Bytes that are no block end the walk without an answer.
func (f *Facts) readBlocks(b []byte, more bool) {
	const screenEnd = 13
	if len(b) < screenEnd {
		return
	}
	frames := 0
	for at := screenEnd + colourTable(b[10]); ; {
		if at >= len(b) {
			if !more && f.Animated == Unknown && frames == 1 {
				f.Animated = No
			}
			return
		}
		switch b[at] {
		case gifExtension:
			at = subBlocks(b, at+2)
		case gifImage:
			if frames++; frames > 1 {
				f.Animated = Yes
			}
			if len(b) < at+10 {
				at = len(b)
				continue
			}
			le := binary.LittleEndian
			f.reach(int(le.Uint16(b[at+1:]))+int(le.Uint16(b[at+5:])), int(le.Uint16(b[at+3:]))+int(le.Uint16(b[at+7:])))
			at = subBlocks(b, at+10+colourTable(b[at+9])+1) // 1: the code size
		case gifTrailer:
			if f.Animated == Unknown {
				f.Animated = No
			}
			return
		default:
			return
		}
	}
}

// colourTable is the length in bytes of the table that packed fields announce.
func colourTable(packed byte) int {
	if packed&0x80 == 0 {
		return 0
	}
	return 3 << (packed&7 + 1)
}

// subBlocks is the index behind the sub-blocks that begin at at.
func subBlocks(b []byte, at int) int {
	for at < len(b) && b[at] != 0 {
		at += int(b[at]) + 1
	}
	return at + 1
}

// reach notes a frame whose far corner is at x, y.
func (f *Facts) reach(x, y int) {
	if x > max(f.Width, f.ReachWidth) || y > max(f.Height, f.ReachHeight) {
		f.ReachWidth = max(x, f.Width, f.ReachWidth)
		f.ReachHeight = max(y, f.Height, f.ReachHeight)
	}
}
