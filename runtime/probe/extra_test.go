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

func TestTypesThatOnlySomeModelsTake(t *testing.T) {
	late := bytes.Replace(heifOf("heic", ispe(9, 9)), []byte("meta"), []byte("free"), 1)
	long := heifOf("avif", ispe(640, 480))
	wide := append([]byte{0, 0, 0, 1, 'f', 'r', 'e', 'e', 0, 0, 0, 0, 0, 0, 0, 20}, 1, 2, 3, 4)
	tests := map[string]struct {
		in     []byte
		want   Facts
		reason Reason
	}{
		"a BMP tells its size":                               {in: bmpOf(40, 640, 480), want: size(BMP, 640, 480)},
		"a BMP from top to bottom has a negative height":     {in: bmpOf(124, 640, -480), want: size(BMP, 640, 480)},
		"a BMP's lowest height does not overflow":            {in: bmpOf(40, 1, math.MinInt32), want: size(BMP, 1, 1<<31)},
		"a BMP of OS/2 tells its size":                       {in: bmpOf(12, 640, 480), want: size(BMP, 640, 480)},
		"a BMP of negative width is malformed":               {in: bmpOf(40, -640, 480), want: Facts{MediaType: BMP}, reason: Malformed},
		"a BMP of height 0 is refused":                       {in: bmpOf(40, 640, 0), want: Facts{MediaType: BMP}, reason: ZeroSize},
		"a BMP cut in its height is truncated":               {in: bmpOf(40, 640, 480)[:25], want: Facts{MediaType: BMP}, reason: Truncated},
		"a little-endian TIFF tells its size":                {in: tiffOf(binary.LittleEndian, 8, 640, 480), want: size(TIFF, 640, 480)},
		"a big-endian TIFF tells its size":                   {in: tiffOf(binary.BigEndian, 100, 640, 70000), want: size(TIFF, 640, 70000)},
		"a TIFF that ends before its directory is truncated": {in: tiffOf(binary.LittleEndian, 2000, 640, 480)[:1000], want: Facts{MediaType: TIFF}, reason: Truncated},
		"a TIFF whose directory is out of sight is unknown":  {in: tiffOf(binary.LittleEndian, 70000, 640, 480), want: Facts{MediaType: TIFF}},
		"a TIFF of width over 2^31-1 is malformed":           {in: tiffOf(binary.BigEndian, 8, 1, 0xfffffff0), want: Facts{MediaType: TIFF}, reason: Malformed},
		"a TIFF of two widths is malformed":                  {in: edit(tiffOf(binary.BigEndian, 8, 7, 7), 29, 2), want: Facts{MediaType: TIFF}, reason: Malformed},
		"a TIFF whose side is text is malformed":             {in: edit(tiffOf(binary.BigEndian, 8, 7, 7), 25, 2), want: Facts{MediaType: TIFF}, reason: Malformed},
		"a TIFF whose directory is cut is truncated":         {in: tiffOf(binary.LittleEndian, 8, 640, 480)[:30], want: Facts{MediaType: TIFF}, reason: Truncated},
		"a TIFF whose directory is in its header is refused": {in: []byte("II*\x00\x04\x00\x00\x00\x00"), want: Facts{MediaType: TIFF}, reason: Malformed},
		"a TIFF of width 0 is refused":                       {in: tiffOf(binary.LittleEndian, 8, 0, 480), want: Facts{MediaType: TIFF}, reason: ZeroSize},
		"a TIFF signature alone is truncated":                {in: []byte("MM\x00*"), want: Facts{MediaType: TIFF}, reason: Truncated},
		"an HEIC tells its size":                             {in: heifOf("heic", ispe(4032, 3024)), want: size(HEIC, 4032, 3024)},
		"an HEIC of tiles is as large as the whole":          {in: heifOf("heix", ispe(512, 512), ispe(4032, 3024), ispe(320, 240)), want: size(HEIC, 4032, 3024)},
		"an AVIF of the general brand is an AVIF":            {in: heifOf("mif1", ispe(640, 480)), want: size(AVIF, 640, 480)},
		"an AVIF that ends before its size is truncated":     {in: long[:60], want: Facts{MediaType: AVIF}, reason: Truncated},
		"an HEIC whose tiles alone are whole is truncated":   {in: heifOf("heic", ispe(512, 512), ispe(4032, 3024))[:120], want: Facts{MediaType: HEIC}, reason: Truncated},
		"an HEIC without properties is unknown":              {in: late, want: Facts{MediaType: HEIC}},
		"a side over 2^31-1 is not believed":                 {in: heifOf("heic", ispe(math.MaxUint32, 1)), want: Facts{MediaType: HEIC}},
		"a believable side beside it is":                     {in: heifOf("heic", ispe(math.MaxUint32, 9), ispe(4, 3)), want: size(HEIC, 4, 3)},
		"a long box is stepped over":                         {in: append(heifOf("heic")[:24:24], append(wide, heifOf("heic", ispe(3, 4))[24:]...)...), want: size(HEIC, 3, 4)},
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
	check(t, b.Bytes(), size(BMP, 37, 11), "")
	check(t, f.Bytes(), size(TIFF, 37, 11), "")
}
