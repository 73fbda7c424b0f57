// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
)

func bmpOf(header uint32, width, height int32) []byte {
	b := append([]byte("BM"), make([]byte, 24)...)
	binary.LittleEndian.PutUint32(b[14:], header)
	if header == 12 {
		binary.LittleEndian.PutUint16(b[18:], uint16(width))
		binary.LittleEndian.PutUint16(b[20:], uint16(height))
		return b
	}
	binary.LittleEndian.PutUint32(b[18:], uint32(width))
	binary.LittleEndian.PutUint32(b[22:], uint32(height))
	return b
}

// tiffOf has its directory at an offset, with a width of type SHORT and a
// height of type LONG behind an entry that does not matter.
func tiffOf(order binary.AppendByteOrder, at int, width, height int) []byte {
	b := []byte("II*\x00")
	if order.String() == "BigEndian" {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, uint32(at))
	b = append(b, make([]byte, at-len(b))...)
	b = order.AppendUint16(b, 3)
	entry := func(tag, kind uint16, value []byte) {
		b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, tag), kind), 1)
		b = append(b, append(value, 0, 0, 0, 0)[:4]...)
	}
	entry(254, 4, order.AppendUint32(nil, 1))
	entry(256, 3, order.AppendUint16(nil, uint16(width)))
	entry(257, 4, order.AppendUint32(nil, uint32(height)))
	return b
}

func box(name string, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(body))), name...), body...)
}

func ispe(width, height uint32) []byte {
	return box("ispe", make([]byte, 4), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height))
}

// heifOf is an image of a major brand; with the general one, AV1 is compatible.
func heifOf(brand string, properties ...[]byte) []byte {
	ipco := box("ipco", append([][]byte{box("pixi", make([]byte, 8))}, properties...)...)
	meta := box("meta", make([]byte, 4), box("hdlr", make([]byte, 24)), box("iprp", ipco))
	return bytes.Join([][]byte{box("ftyp", []byte(brand), make([]byte, 4), []byte("miafavif")), meta, box("mdat", make([]byte, 16))}, nil)
}
