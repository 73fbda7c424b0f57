// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

// itemID is the content of a primary item box (ISO/IEC 14496-12, 8.11.4): 16
// bits of number in version 0, 32 after.
func (v boxes) itemID() (id uint32, ok bool) {
	switch b := v.data; {
	case len(b) >= 6 && b[0] == 0:
		return uint32(binary.BigEndian.Uint16(b[4:])), true
	case len(b) >= 8:
		return binary.BigEndian.Uint32(b[4:]), true
	}
	return 0, false
}

// extents is the content of an image spatial extents property (23008-12, 6.5.3).
func (v boxes) extents() (width, height uint32, ok bool) {
	if len(v.data) < 12 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(v.data[4:]), binary.BigEndian.Uint32(v.data[8:]), true
}

// properties is a list of numbers of properties, in the order in which they
// apply.
type properties struct {
	b    []byte
	wide bool // each has two bytes
}

// number is the i-th property's: 1 is the first in the list, 0 is none. The
// upper bit only says that a reader must know the property.
func (p properties) number(i int) int {
	if p.wide {
		return int(binary.BigEndian.Uint16(p.b[2*i:]) & 0x7fff)
	}
	return int(p.b[i] & 0x7f)
}

func (p properties) len() int {
	if p.wide {
		return len(p.b) / 2
	}
	return len(p.b)
}

// associations finds an item's properties in the item property association
// boxes (23008-12, 9.3.1), of which there may be several.
func associations(in boxes, item uint32) properties {
	for name, box, rest, ok := in.next(); ok; name, box, rest, ok = rest.next() {
		if b := box.data; string(name) == "ipma" && len(b) >= 8 {
			if found, ok := associationsIn(b[8:], b[0] > 0, b[3]&1 != 0, item); ok {
				return found
			}
		}
	}
	return properties{}
}

// associationsIn looks through the entries of one box: an item's number, how
// many properties it has, and their numbers.
func associationsIn(b []byte, longID, wide bool, item uint32) (properties, bool) {
	head, each := 3, 1
	if longID {
		head = 5
	}
	if wide {
		each = 2
	}
	for len(b) >= head {
		id := uint32(binary.BigEndian.Uint16(b))
		if longID {
			id = binary.BigEndian.Uint32(b)
		}
		end := head + each*int(b[head-1])
		if end > len(b) {
			break
		}
		if id == item {
			return properties{b[head:end], wide}, true
		}
		b = b[end:]
	}
	return properties{}, false
}

// maxProperties is how many properties of an item are looked at; items have
// about six. An item with more is not understood.
const maxProperties = 64

// heifItem is what an item's properties make of it.
type heifItem struct {
	width, height uint32
	orientation   int
}

// readItem applies an item's properties in their order: its size and its turns.
// It is not understood without a size. A clean aperture is passed over: what it
// crops is decoded all the same, and some decoders show it.
func readItem(list boxes, of properties) (item heifItem, ok bool) {
	if of.len() > maxProperties {
		return item, false
	}
	item.orientation = 1
	for i := range of.len() {
		name, box := list.nth(of.number(i))
		switch string(name) {
		case "ispe":
			if !ok {
				item.width, item.height, ok = box.extents()
			}
		case "irot": // quarter turns against the clock
			if len(box.data) > 0 {
				for range box.data[0] & 3 {
					item.orientation = quarterTurned[item.orientation]
				}
			}
		case "imir": // 0: top and bottom change places, 1: left and right
			if len(box.data) > 0 && box.data[0]&1 == 0 {
				item.orientation = upsideDown[item.orientation]
			} else if len(box.data) > 0 {
				item.orientation = sidesSwapped[item.orientation]
			}
		}
	}
	return item, ok
}

// What becomes of an EXIF orientation when what it shows is turned by a quarter
// against the clock, or mirrored.
var (
	quarterTurned = [9]int{1: 8, 2: 5, 3: 6, 4: 7, 5: 4, 6: 1, 7: 2, 8: 3}
	upsideDown    = [9]int{1: 4, 2: 3, 3: 2, 4: 1, 5: 8, 6: 7, 7: 6, 8: 5}
	sidesSwapped  = [9]int{1: 2, 2: 1, 3: 4, 4: 3, 5: 6, 6: 5, 7: 8, 8: 7}
)
