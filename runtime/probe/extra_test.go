// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"image"
	"math"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
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

func TestTypesThatOnlySomeModelsTake(t *testing.T) {
	late := bytes.Replace(heifOf("heic", ispe(9, 9)), []byte("meta"), []byte("free"), 1)
	long := heifOf("avif", ispe(640, 480))
	wide := append([]byte{0, 0, 0, 1, 'f', 'r', 'e', 'e', 0, 0, 0, 0, 0, 0, 0, 20}, 1, 2, 3, 4)
	tests := map[string]struct {
		in     []byte
		want   Facts
		reason Reason
	}{
		"a BMP tells its size":                               {in: bmpOf(40, 640, 480), want: Facts{BMP, 640, 480}},
		"a BMP from top to bottom has a negative height":     {in: bmpOf(124, 640, -480), want: Facts{BMP, 640, 480}},
		"a BMP's lowest height does not overflow":            {in: bmpOf(40, 1, math.MinInt32), want: Facts{BMP, 1, 1 << 31}},
		"a BMP of OS/2 tells its size":                       {in: bmpOf(12, 640, 480), want: Facts{BMP, 640, 480}},
		"a BMP of negative width is malformed":               {in: bmpOf(40, -640, 480), want: Facts{MediaType: BMP}, reason: Malformed},
		"a BMP of height 0 is refused":                       {in: bmpOf(40, 640, 0), want: Facts{MediaType: BMP}, reason: ZeroSize},
		"a BMP cut in its height is truncated":               {in: bmpOf(40, 640, 480)[:25], want: Facts{MediaType: BMP}, reason: Truncated},
		"a little-endian TIFF tells its size":                {in: tiffOf(binary.LittleEndian, 8, 640, 480), want: Facts{TIFF, 640, 480}},
		"a big-endian TIFF tells its size":                   {in: tiffOf(binary.BigEndian, 100, 640, 70000), want: Facts{TIFF, 640, 70000}},
		"a TIFF whose directory is out of sight is unknown":  {in: tiffOf(binary.LittleEndian, 2000, 640, 480)[:1000], want: Facts{MediaType: TIFF}},
		"a TIFF whose directory is cut is unknown":           {in: tiffOf(binary.LittleEndian, 8, 640, 480)[:30], want: Facts{MediaType: TIFF}},
		"a TIFF whose directory is in its header is refused": {in: []byte("II*\x00\x04\x00\x00\x00\x00"), want: Facts{MediaType: TIFF}, reason: Malformed},
		"a TIFF of width 0 is refused":                       {in: tiffOf(binary.LittleEndian, 8, 0, 480), want: Facts{MediaType: TIFF}, reason: ZeroSize},
		"a TIFF signature alone is truncated":                {in: []byte("MM\x00*"), want: Facts{MediaType: TIFF}, reason: Truncated},
		"an HEIC tells its size":                             {in: heifOf("heic", ispe(4032, 3024)), want: Facts{HEIC, 4032, 3024}},
		"an HEIC of tiles is as large as the whole":          {in: heifOf("heix", ispe(512, 512), ispe(4032, 3024), ispe(320, 240)), want: Facts{HEIC, 4032, 3024}},
		"an AVIF of the general brand is an AVIF":            {in: heifOf("mif1", ispe(640, 480)), want: Facts{AVIF, 640, 480}},
		"an AVIF whose size is out of sight is unknown":      {in: long[:60], want: Facts{MediaType: AVIF}},
		"an HEIC whose tiles alone are in sight is unknown":  {in: heifOf("heic", ispe(512, 512), ispe(4032, 3024))[:120], want: Facts{MediaType: HEIC}},
		"an HEIC without properties is unknown":              {in: late, want: Facts{MediaType: HEIC}},
		"a side over 2^31-1 is not believed":                 {in: heifOf("heic", ispe(math.MaxUint32, 1)), want: Facts{MediaType: HEIC}},
		"a long box is stepped over":                         {in: append(heifOf("heic")[:24:24], append(wide, heifOf("heic", ispe(3, 4))[24:]...)...), want: Facts{HEIC, 3, 4}},
		"a video in the same container is not an image":      {in: box("ftyp", []byte("isom"), make([]byte, 4), []byte("mp41")), reason: NotAnImage},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { check(t, tc.in, tc.want, tc.reason) })
	}
}

func TestBMPAndTIFFAgreeWithDecoders(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 37, 11))
	var b, f bytes.Buffer
	if err := bmp.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	if err := tiff.Encode(&f, img, nil); err != nil {
		t.Fatal(err)
	}
	check(t, b.Bytes(), Facts{BMP, 37, 11}, "")
	check(t, f.Bytes(), Facts{TIFF, 37, 11}, "")
}
