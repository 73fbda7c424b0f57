// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
)

// Builders of what stands around a header: orientations, frames, and the boxes
// and directories of the rarer formats.

var orders = map[string]binary.AppendByteOrder{"II": binary.LittleEndian, "MM": binary.BigEndian}

// exifData is the EXIF of an orientation, behind an entry that does not matter.
func exifData(mark string, orientation uint16) []byte {
	order := orders[mark]
	b := order.AppendUint16([]byte(mark), 42)
	b = order.AppendUint16(order.AppendUint32(b, 8), 2)
	b = order.AppendUint16(order.AppendUint16(b, 271), 2) // maker, four letters
	b = append(order.AppendUint32(b, 4), "abc\x00"...)
	b = order.AppendUint16(order.AppendUint16(b, 274), 3)
	b = order.AppendUint16(order.AppendUint32(b, 1), orientation)
	return append(b, 0, 0, 0, 0, 0, 0)
}

// app1 is the segment of EXIF data in a JPEG.
func app1(data []byte) []byte { return segment(0xe1, append([]byte("Exif\x00\x00"), data...)) }

// chunk is one chunk of a PNG, with its checksum.
func chunk(name string, data []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), name...)
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// actl announces frames.
func actl(frames uint32) []byte {
	return chunk("acTL", binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, frames), 0))
}

// pngWith is a PNG of chunks behind its header, and an end.
func pngWith(chunks ...[]byte) []byte {
	return bytes.Join([][]byte{pngOf(6, 4), bytes.Join(chunks, nil), chunk("IEND", nil)}, nil)
}

// gifFrame is an image descriptor with a little data.
func gifFrame(left, top, width, height uint16, packed byte) []byte {
	b := []byte{0x2c}
	for _, v := range []uint16{left, top, width, height} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = append(b, packed)
	if packed&0x80 != 0 {
		b = append(b, make([]byte, 3<<(packed&7+1))...)
	}
	return append(b, 2, 3, 0x2c, 0x2c, 0x3b, 1, 0x2c, 0)
}

// gifWith is a GIF of blocks behind its screen, which has a table of 256 colours.
func gifWith(blocks ...[]byte) []byte {
	return bytes.Join([][]byte{gifOf("89a", 60, 40), make([]byte, 768), bytes.Join(blocks, nil)}, nil)
}

// riff is a WebP of chunks, padded to even lengths.
func riff(chunks ...[]byte) []byte {
	body := bytes.Join(chunks, nil)
	b := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(body)))
	return append(append(b, "WEBP"...), body...)
}

func webpChunk(name string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(data)))
	b = append(b, data...)
	return append(b, make([]byte, len(data)%2)...)
}

// bare is the first chunk of a built WebP.
func bare(webp []byte) []byte { return webpChunk(string(webp[12:16]), webp[20:]) }

// anmf is a frame of an animated WebP at an even place.
func anmf(x, y, width, height int) []byte {
	var data []byte
	for _, v := range []int{x / 2, y / 2, width - 1, height - 1, 100} {
		data = append(data, byte(v), byte(v>>8), byte(v>>16))
	}
	return webpChunk("ANMF", append(append(data, 0), bare(vp8lOf(uint32(width), uint32(height)))...))
}

// bigTIFFOf is a TIFF with offsets of 64 bits and an orientation.
func bigTIFFOf(mark string, width, height uint64, orientation uint16) []byte {
	order := orders[mark]
	b := order.AppendUint16([]byte(mark), 43)
	b = order.AppendUint64(order.AppendUint16(order.AppendUint16(b, 8), 0), 16)
	b = order.AppendUint64(b, 4)
	entry := func(tag, kind uint16, count uint64, value []byte) {
		b = order.AppendUint64(order.AppendUint16(order.AppendUint16(b, tag), kind), count)
		b = append(b, append(value, make([]byte, 8)...)[:8]...)
	}
	entry(256, 16, 1, order.AppendUint64(nil, width))
	entry(257, 4, 1, order.AppendUint32(nil, uint32(height)))
	entry(258, 3, 3, bytes.Repeat(order.AppendUint16(nil, 16), 3))
	entry(274, 3, 1, order.AppendUint16(nil, orientation))
	return b
}

// rawTIFF is a directory of a small picture, which is a thumbnail or not by its
// subfile type, and has another entry.
func rawTIFF(subfile uint32, tag uint16) []byte {
	le := binary.LittleEndian
	b := []byte("II*\x00\x08\x00\x00\x00\x04\x00")
	for _, e := range [][2]uint32{{254, subfile}, {256, 160}, {257, 120}, {uint32(tag), 999}} {
		b = le.AppendUint32(le.AppendUint32(le.AppendUint16(le.AppendUint16(b, uint16(e[0])), 4), 1), e[1])
	}
	return b
}

// icoOf is an icon of pictures by their sides, each of ten bytes.
func icoOf(sides ...[2]byte) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{0, 0, 1, 0}, uint16(len(sides)))
	for i, side := range sides {
		b = append(b, side[0], side[1], 0, 0, 1, 0, 32, 0)
		b = binary.LittleEndian.AppendUint32(b, 10)
		b = binary.LittleEndian.AppendUint32(b, uint32(6+16*len(sides)+10*i))
	}
	return append(b, make([]byte, 10*len(sides))...)
}

// heifForm is how a file of tiles is written.
type heifForm struct {
	brand, brands string
	longID, wide  bool // widths of the primary item's number and of associations
	primary       uint32
	turns         [][]byte // properties of the primary item behind its size
	before        [][]byte // boxes between the file type and the rest
	reversed      bool     // whose properties are precedes their list
	late          bool     // who is primary comes last
	endless       bool     // the box around all of them goes to the end of the file
}

// tiles is a file whose primary image is 1000 x 600 of tiles of 512 x 512, with
// a thumbnail, and an unrelated picture that is larger than all of them.
func (f heifForm) tiles() []byte {
	list := [][]byte{ispe(512, 512), ispe(5000, 4000), ispe(1000, 600), ispe(160, 96)}
	number := func(n int, essential bool) []byte {
		switch {
		case f.wide && essential:
			return []byte{0x80, byte(n)}
		case f.wide:
			return []byte{0, byte(n)}
		case essential:
			return []byte{0x80 | byte(n)}
		}
		return []byte{byte(n)}
	}
	id := func(n uint32) []byte {
		if f.longID {
			return binary.BigEndian.AppendUint32(nil, n)
		}
		return binary.BigEndian.AppendUint16(nil, uint16(n))
	}
	own := number(3, false)
	for i := range f.turns {
		own = append(own, number(5+i, true)...)
	}
	entries := [][]byte{id(1), {1}, number(1, false), id(2), {1}, number(1, false), id(7), {1}, number(2, false),
		id(f.primary), {byte(1 + len(f.turns))}, own, id(90), {1}, number(4, false)}
	version := byte(0)
	if f.longID {
		version = 1
	}
	flags := byte(0)
	if f.wide {
		flags = 1
	}
	ipma := box("ipma", []byte{version, 0, 0, flags, 0, 0, 0, 5}, bytes.Join(entries, nil))
	properties := [][]byte{box("ipco", append(list, f.turns...)...), ipma}
	pitm := box("pitm", append([]byte{version, 0, 0, 0}, id(f.primary)...))
	parts := [][]byte{make([]byte, 4), pitm, box("hdlr", make([]byte, 24)), box("iinf", make([]byte, 20)), nil}
	if f.reversed {
		slices.Reverse(properties)
	}
	if f.late {
		parts[1], parts[4] = nil, pitm
	}
	parts[3] = append(parts[3], box("iprp", properties...)...)
	meta := box("meta", parts...)
	if f.endless {
		binary.BigEndian.PutUint32(meta, 0)
	}
	ftyp := box("ftyp", []byte(f.brand), make([]byte, 4), []byte(f.brands))
	return slices.Concat(ftyp, bytes.Join(f.before, nil), meta, box("mdat", make([]byte, 16)))
}

func irot(quarters byte) []byte { return box("irot", []byte{quarters}) }
func imir(axis byte) []byte     { return box("imir", []byte{axis}) }

// clap is a clean aperture of fractions.
func clap(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return box("clap", append(b, make([]byte, 16)...))
}

// svgOf is a drawing behind all that may stand before its tag.
func svgOf(attributes string) []byte {
	return []byte("\ufeff<?xml version=\"1.0\"?>\n<!-- <svg width='1' height='1'> -->\n" +
		"<!DOCTYPE svg [ <!ENTITY w \"]>7\"> <!-- ' --> ]>\n<svg " + attributes + "><rect width='3'/></svg>")
}

// lateJPEG has its frame header behind at least kib KiB of segments.
func lateJPEG(kib int) []byte {
	var parts [][]byte
	for n := 0; n < kib<<10; n += 65535 {
		parts = append(parts, segment(0xe2, append([]byte("ICC_PROFILE\x00"), make([]byte, 65521)...)))
	}
	return jpegOf(append(parts, sof(0xc2, 4000, 3000))...)
}

// named are headers of every form, those that tell no size among them.
func named() map[string][]byte {
	all := map[string][]byte{
		"apng": pngWith(actl(3), chunk("IDAT", make([]byte, 9))), "one frame": pngWith(actl(1), chunk("IDAT", nil)),
		"exif behind pixels": pngWith(chunk("IDAT", make([]byte, 9)), chunk("eXIf", exifData("MM", 6))),
		"gif of two":         gifWith(gifFrame(0, 0, 60, 40, 0), gifFrame(1, 1, 2, 2, 0x81), []byte{0x3b}),
		"gif of one":         gifWith([]byte("\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"), gifFrame(0, 0, 60, 400, 0), []byte{0x3b}),
		"moving webp":        riff(bare(vp8xOf(0x0a, 60, 40)), webpChunk("ANIM", make([]byte, 6)), anmf(0, 0, 60, 40), anmf(2, 2, 80, 3), webpChunk("EXIF", exifData("II", 7))),
		"still webp":         riff(bare(vp8xOf(0x08, 640, 360)), bare(vp8Of(640, 360)), webpChunk("EXIF", exifData("MM", 8))),
		"bigtiff":            bigTIFFOf("II", 640, 480, 5), "bigtiff MM": bigTIFFOf("MM", 1<<40, 480, 9),
		"ico": icoOf([2]byte{16, 16}, [2]byte{0, 0}, [2]byte{48, 48}), "cmyk": jpegOf(segment(0xc0, []byte{8, 0, 9, 0, 7, 4, 1, 0x11, 0})),
		"tiles":     heifForm{brand: "heic", brands: "mif1heic", primary: 49, turns: [][]byte{irot(3)}}.tiles(),
		"long tile": heifForm{brand: "avis", brands: "avifmsf1", primary: 49, longID: true, wide: true, turns: [][]byte{clap(900, 1, 500, 1), irot(1), imir(1)}}.tiles(),
		"reversed":  heifForm{brand: "heic", primary: 49, reversed: true, turns: [][]byte{irot(3)}}.tiles(),
		"late":      heifForm{brand: "heic", brands: "mif1msf1", primary: 49, late: true}.tiles(),
		"endless":   heifForm{brand: "heic", primary: 49, late: true, endless: true}.tiles(),
		"raw":       rawTIFF(1, 330),
		"svg":       svgOf(`width="12.5px" height='7'`), "svg box": svgOf(`width="100%" viewBox="0 0 300,200"`), "svg entity": svgOf(`width="&w;" height="1"`),
		"jxl": []byte("\xff\x0a\x00"), "jxl box": []byte("\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a"), "jp2": []byte("\x00\x00\x00\x0cjP  \x0d\x0a\x87\x0a"),
	}
	for mark := range orders {
		for o := range uint16(10) {
			all["exif "+strings.Join([]string{mark, strconv.Itoa(int(o))}, " ")] = jpegOf(app1(exifData(mark, o)), sof(0xc0, 31, 17), segment(0xda, make([]byte, 9)))
		}
	}
	return all
}
