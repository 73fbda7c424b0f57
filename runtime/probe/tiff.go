// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"encoding/binary"
)

// isTIFF also matches BigTIFF, and the raw formats of cameras that are TIFFs
// with other tags (DNG, NEF, CR2).
func isTIFF(b []byte) bool {
	return hasPrefix(b, "II*\x00") || hasPrefix(b, "MM\x00*") || hasPrefix(b, "II+\x00") || hasPrefix(b, "MM\x00+")
}

// Tags of TIFF 6.0, section 8, and of its Technical Note 1 (sub-directories).
const (
	tagSubfile     = 254
	tagWidth       = 256
	tagHeight      = 257
	tagBits        = 258
	tagPhotometric = 262
	tagOrientation = 274
	tagSubIFDs     = 330
)

// readTIFF reads the first directory, which is the first page. It may stand
// anywhere in the file: past what can be seen, the size is unknown (TIFF 6.0,
// section 2). A raw file's first directory is often a thumbnail, with the
// picture in a directory below it: then the size is unknown too.
func readTIFF(b []byte, more bool) (Facts, error) {
	facts := Facts{MediaType: TIFF, Animated: No}
	dir, state := openTIFF(b)
	switch state {
	case tiffCut:
		return cut(facts, more)
	case tiffBroken:
		return refused(TIFF, Malformed)
	}
	// Of a tag that stands there twice, which breaks the format's rules, the first
	// counts: the other may be out of sight.
	const unseen = -2
	var subfile, width, height, photometric int64 = unseen, unseen, unseen, unseen
	below := false
	for dir.next() {
		switch dir.tag {
		case tagSubfile:
			first(&subfile, dir.number())
		case tagWidth:
			first(&width, dir.number())
		case tagHeight:
			first(&height, dir.number())
		case tagBits:
			facts.Bits = cmp.Or(facts.Bits, dir.firstShort())
		case tagPhotometric:
			first(&photometric, dir.number())
		case tagOrientation:
			facts.Orientation = cmp.Or(facts.Orientation, orientation(dir.number()))
		case tagSubIFDs:
			below = true
		}
	}
	const separated = 5
	facts.CMYK = photometric == separated
	reduced := subfile > 0 && subfile&1 != 0
	switch {
	case dir.left > 0 && (reduced || width == unseen || height == unseen):
		return cut(facts, more)
	case reduced && below:
		return facts, nil
	case width < 0 || height < 0:
		return refused(TIFF, Malformed)
	}
	return sized(facts, width, height)
}

// first keeps the value that came first.
func first(kept *int64, value int64) {
	if *kept < -1 {
		*kept = value
	}
}

// tiffState is how far a TIFF could be opened.
type tiffState uint8

const (
	tiffOpen   tiffState = iota
	tiffCut              // the bytes end before the directory
	tiffBroken           // the header contradicts itself
)

// tiffDir walks the entries of a directory. Between calls of next, the fields
// from tag on are those of the entry.
type tiffDir struct {
	all   []byte // the whole structure, which offsets count from
	rest  []byte // the entries that are not yet read
	left  uint64 // their number; above 0 after the last next, the bytes ended
	order binary.ByteOrder
	wide  bool // BigTIFF: numbers of 8 bytes where TIFF has 4

	tag, kind uint16
	count     uint64
	value     []byte // 4 or 8 bytes: the value if it fits, else its offset
}

// openTIFF finds the first directory of what isTIFF matched.
func openTIFF(b []byte) (tiffDir, tiffState) {
	d := tiffDir{all: b, order: binary.LittleEndian}
	if b[0] == 'M' {
		d.order = binary.BigEndian
	}
	d.wide = b[2] == '+' || b[3] == '+'
	head, counter := 8, 2
	if d.wide {
		head, counter = 16, 8
	}
	if len(b) < head {
		return d, tiffCut
	}
	at := uint64(d.order.Uint32(b[4:]))
	if d.wide {
		if d.order.Uint16(b[4:]) != 8 || d.order.Uint16(b[6:]) != 0 { // the size of offsets, and a constant
			return d, tiffBroken
		}
		at = d.order.Uint64(b[8:])
	}
	switch {
	case at < uint64(head):
		return d, tiffBroken
	case at > uint64(len(b)) || uint64(len(b))-at < uint64(counter):
		return d, tiffCut
	}
	d.left = uint64(d.order.Uint16(b[at:]))
	if d.wide {
		d.left = d.order.Uint64(b[at:])
	}
	d.rest = b[at+uint64(counter):]
	return d, tiffOpen
}

// next steps to the next entry; false behind the last, or where the bytes end.
func (d *tiffDir) next() bool {
	size := 12
	if d.wide {
		size = 20
	}
	if d.left == 0 || len(d.rest) < size {
		return false
	}
	entry := d.rest[:size]
	d.tag, d.kind = d.order.Uint16(entry), d.order.Uint16(entry[2:])
	if d.wide {
		d.count, d.value = d.order.Uint64(entry[4:]), entry[12:]
	} else {
		d.count, d.value = uint64(d.order.Uint32(entry[4:])), entry[8:]
	}
	d.rest, d.left = d.rest[size:], d.left-1
	return true
}

// Types of a value (TIFF 6.0, section 2, and BigTIFF).
const (
	tiffByte  = 1
	tiffShort = 3
	tiffLong  = 4
	tiffLong8 = 16
)

// number is the entry's value if it is a single whole number, as all that are
// asked for must be; -1 if not. One past 2^63 is -1 as well.
func (d *tiffDir) number() int64 {
	switch {
	case d.count != 1:
		return -1
	case d.kind == tiffByte:
		return int64(d.value[0])
	case d.kind == tiffShort:
		return int64(d.order.Uint16(d.value))
	case d.kind == tiffLong:
		return int64(d.order.Uint32(d.value))
	case d.kind == tiffLong8 && d.wide:
		return max(int64(d.order.Uint64(d.value)), -1)
	}
	return -1
}

// firstShort is the first of the entry's values of type SHORT, which stand
// elsewhere when they are many; 0 where they cannot be seen.
func (d *tiffDir) firstShort() int {
	if d.kind != tiffShort {
		return 0
	}
	if d.count <= uint64(len(d.value))/2 {
		return int(d.order.Uint16(d.value))
	}
	at := uint64(d.order.Uint32(d.value))
	if d.wide {
		at = d.order.Uint64(d.value)
	}
	if at > uint64(len(d.all)) || uint64(len(d.all))-at < 2 {
		return 0
	}
	return int(d.order.Uint16(d.all[at:]))
}
