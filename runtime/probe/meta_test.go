// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"
)

// deep puts the depth and colour type into a built PNG.
func deep(depth, colour byte) []byte { return edit(edit(pngOf(6, 4), 24, depth), 25, colour) }

func TestFactsBesideTheSize(t *testing.T) {
	idat := chunk("IDAT", make([]byte, 20))
	icc := chunk("iCCP", make([]byte, 30000))
	xmp := segment(0xe1, []byte("http://ns.adobe.com/xap/1.0/\x00<x tiff:Orientation='3'/>"))
	loop := []byte("\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
	comment := []byte("\x21\xfe\x03\x2c\x2c\x2c\x00")
	trailer := []byte{0x3b}
	frame := gifFrame(0, 0, 60, 40, 0)
	still := Facts{MediaType: WebP, Width: 640, Height: 360, Animated: No}
	moving := Facts{MediaType: WebP, Width: 60, Height: 40, Animated: Yes}
	png := func(animated Answer, orientation int) Facts {
		return Facts{MediaType: PNG, Width: 6, Height: 4, Animated: animated, Orientation: orientation, Bits: 8}
	}
	gif := func(animated Answer) Facts { return Facts{MediaType: GIF, Width: 60, Height: 40, Animated: animated} }
	jpeg := func(orientation, bits int, cmyk bool) Facts {
		return Facts{MediaType: JPEG, Width: 31, Height: 17, Animated: No, Orientation: orientation, Bits: bits, CMYK: cmyk}
	}
	with := func(f Facts, change func(*Facts)) Facts { change(&f); return f }
	tests := map[string]struct {
		in   []byte
		want Facts
	}{
		"a PNG of pixels is still":                            {pngWith(idat), png(No, 0)},
		"an APNG of two frames moves":                         {pngWith(actl(2), idat), png(Yes, 0)},
		"an APNG may announce itself behind a large chunk":    {pngWith(icc, actl(2), idat), png(Yes, 0)},
		"an APNG of one frame is still":                       {pngWith(actl(1), idat), png(No, 0)},
		"an APNG of no frames is still":                       {pngWith(actl(0), idat), png(No, 0)},
		"frames announced behind the pixels do not count":     {pngWith(idat, actl(2)), png(No, 0)},
		"a PNG that ends before its pixels says nothing":      {pngOf(6, 4), png(Unknown, 0)},
		"a PNG's orientation may precede the pixels":          {pngWith(chunk("eXIf", exifData("II", 6)), idat), png(No, 6)},
		"a PNG's orientation may follow the pixels":           {pngWith(idat, idat, chunk("eXIf", exifData("MM", 8))), png(No, 8)},
		"a PNG's EXIF may have the name that JPEG needs":      {pngWith(chunk("eXIf", append([]byte("Exif\x00\x00"), exifData("MM", 3)...)), idat), png(No, 3)},
		"an orientation of 9 does not exist":                  {pngWith(chunk("eXIf", exifData("MM", 9)), idat), png(No, 0)},
		"what follows a PNG's end is not looked at":           {append(pngWith(idat), chunk("eXIf", exifData("MM", 8))...), png(No, 0)},
		"a PNG of 16 bits says so":                            {deep(16, 6), with(png(Unknown, 0), func(f *Facts) { f.Bits = 16 })},
		"a palette of one bit has samples of eight":           {deep(1, 3), png(Unknown, 0)},
		"a depth that does not exist is not told":             {deep(5, 0), with(png(Unknown, 0), func(f *Facts) { f.Bits = 0 })},
		"a GIF of one frame is still":                         {gifWith(frame, trailer), gif(No)},
		"a GIF of one frame that loops is still":              {gifWith(loop, comment, frame, trailer), gif(No)},
		"a GIF of one frame without a trailer is still":       {gifWith(frame), gif(No)},
		"a GIF of two frames moves":                           {gifWith(frame, comment, frame, trailer), gif(Yes)},
		"a GIF's frames may have colours of their own":        {gifWith(gifFrame(0, 0, 9, 9, 0x87), gifFrame(0, 0, 9, 9, 0x80), trailer), gif(Yes)},
		"what follows a GIF's trailer is not looked at":       {gifWith(frame, trailer, frame), gif(No)},
		"a GIF of bytes that are no block says nothing":       {gifWith(frame, []byte{7}, frame), gif(Unknown)},
		"a GIF's frame past the canvas reaches":               {gifWith(gifFrame(50, 0, 65535, 9, 0), trailer), with(gif(No), func(f *Facts) { f.ReachWidth, f.ReachHeight = 65585, 40 })},
		"every frame of a GIF reaches":                        {gifWith(frame, gifFrame(0, 0, 61, 1, 0), gifFrame(0, 41, 1, 1, 0), trailer), with(gif(Yes), func(f *Facts) { f.ReachWidth, f.ReachHeight = 61, 42 })},
		"a plain WebP is still":                               {vp8Of(640, 360), still},
		"a lossless WebP is still":                            {vp8lOf(640, 360), still},
		"an extended WebP may be still":                       {riff(bare(vp8xOf(0x10, 640, 360)), bare(vp8Of(640, 360))), still},
		"a WebP's orientation stands behind the pixels":       {riff(bare(vp8xOf(0x08, 640, 360)), bare(vp8lOf(640, 360)), webpChunk("EXIF", exifData("II", 5))), with(still, func(f *Facts) { f.Orientation = 5 })},
		"what follows a WebP's end is not looked at":          {append(riff(bare(vp8xOf(0x08, 640, 360))), webpChunk("EXIF", exifData("II", 5))...), still},
		"a WebP that says so moves":                           {riff(bare(vp8xOf(0x02, 60, 40)), anmf(0, 0, 60, 40)), moving},
		"a WebP's frame past the canvas reaches":              {riff(bare(vp8xOf(0x02, 60, 40)), anmf(4, 2, 60, 40)), with(moving, func(f *Facts) { f.ReachWidth, f.ReachHeight = 64, 42 })},
		"a WebP's picture larger than its canvas reaches":     {riff(bare(vp8xOf(0, 640, 360)), bare(vp8Of(1000, 360))), with(still, func(f *Facts) { f.ReachWidth, f.ReachHeight = 1000, 360 })},
		"a JPEG of 12 bits says so":                           {jpegOf(edit(sof(0xc1, 31, 17), 4, 12)), jpeg(0, 12, false)},
		"a JPEG of three components is not CMYK":              {jpegOf(edit(sof(0xc0, 31, 17), 9, 3)), jpeg(0, 8, false)},
		"a JPEG of four components is CMYK":                   {jpegOf(edit(sof(0xc0, 31, 17), 9, 4)), jpeg(0, 8, true)},
		"a JPEG's orientation may follow its frame":           {jpegOf(sof(0xc0, 31, 17), app1(exifData("MM", 8)), segment(0xda, nil)), jpeg(8, 8, false)},
		"an orientation behind the pixels is no header":       {jpegOf(sof(0xc0, 31, 17), segment(0xda, nil), app1(exifData("MM", 8))), jpeg(0, 8, false)},
		"the first EXIF of a JPEG counts":                     {jpegOf(app1(exifData("MM", 8)), app1(exifData("MM", 3)), sof(0xc0, 31, 17)), jpeg(8, 8, false)},
		"an XMP packet is no EXIF":                            {jpegOf(xmp, app1(exifData("II", 6)), sof(0xc0, 31, 17)), jpeg(6, 8, false)},
		"an EXIF that is cut says nothing":                    {jpegOf(app1(exifData("II", 6)[:30]), sof(0xc0, 31, 17)), jpeg(0, 8, false)},
		"an EXIF that points out of itself says nothing":      {jpegOf(app1(edit(exifData("II", 6), 7, 0x7f)), sof(0xc0, 31, 17)), jpeg(0, 8, false)},
		"a hierarchy's size precedes that of its first frame": {jpegOf(sof(0xde, 31, 17), sof(0xc0, 16, 9)), jpeg(0, 8, false)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Header(tc.in); got != tc.want || err != nil {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tc.want)
			}
		})
	}
}

func TestOrientationsOfEXIFInBothByteOrders(t *testing.T) {
	for mark := range orders {
		for o := uint16(0); o < 10; o++ {
			want := int(o)
			if o > 8 {
				want = 0
			}
			data := exifData(mark, o)
			forms := map[string][]byte{
				JPEG: jpegOf(app1(data), sof(0xc0, 31, 17)),
				PNG:  bytes.Join([][]byte{pngOf(31, 17), chunk("eXIf", data), chunk("IDAT", nil)}, nil),
				WebP: riff(bare(vp8xOf(8, 31, 17)), webpChunk("EXIF", data)),
				TIFF: bigTIFFOf(mark, 31, 17, o),
			}
			for mediaType, in := range forms {
				got, err := Header(in)
				if err != nil || sizeOf(got) != size(mediaType, 31, 17) || got.Orientation != want {
					t.Errorf("%s %s: %+v, %v, want orientation %d", mediaType, mark, got, err, want)
				}
				width, height := got.DisplaySize()
				if shown := [2]int{width, height}; want < 5 && shown != [2]int{31, 17} || want >= 5 && shown != [2]int{17, 31} {
					t.Errorf("orientation %d shows %v", want, shown)
				}
			}
		}
	}
}

func TestDirectoriesOfTIFF(t *testing.T) {
	deep := Facts{MediaType: TIFF, Width: 640, Height: 480, Orientation: 5, Animated: No, Bits: 16}
	few := tiffOf(binary.BigEndian, 8, 7, 7)
	binary.BigEndian.PutUint16(few[10:], 262) // photometric interpretation
	binary.BigEndian.PutUint32(few[18:], 5)
	tests := map[string]struct {
		in     []byte
		want   Facts
		reason Reason
	}{
		"a BigTIFF tells its size and more":                       {bigTIFFOf("II", 640, 480, 5), deep, ""},
		"a BigTIFF may begin with the upper bytes":                {bigTIFFOf("MM", 640, 480, 5), deep, ""},
		"a BigTIFF of absurd width is malformed":                  {bigTIFFOf("MM", 1<<63, 480, 5), Facts{MediaType: TIFF}, Malformed},
		"a BigTIFF of other offsets is malformed":                 {edit(bigTIFFOf("II", 640, 480, 5), 4, 4), Facts{MediaType: TIFF}, Malformed},
		"a BigTIFF whose directory is far away is truncated":      {edit(bigTIFFOf("II", 640, 480, 5), 15, 0xff), Facts{MediaType: TIFF}, Truncated},
		"a thumbnail above the picture of a raw file is no size":  {rawTIFF(1, 330), Facts{MediaType: TIFF, Animated: No}, ""},
		"a thumbnail without directories below it is the picture": {rawTIFF(1, 331), Facts{MediaType: TIFF, Width: 160, Height: 120, Animated: No}, ""},
		"a picture with directories below it is the picture":      {rawTIFF(0, 330), Facts{MediaType: TIFF, Width: 160, Height: 120, Animated: No}, ""},
		"a TIFF of inks is CMYK":                                  {edit(few, 13, 4), Facts{MediaType: TIFF, Width: 7, Height: 7, Animated: No, CMYK: true}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Header(tc.in)
			if got != tc.want || reasonOf(err) != tc.reason {
				t.Errorf("got %+v, %v\nwant %+v, %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestTypesAgreeWithWhatIsDeclared(t *testing.T) {
	tests := map[string]struct {
		mediaType, declared string
		want                bool
	}{
		"a type is itself":                    {PNG, "image/png", true},
		"case and parameters do not matter":   {JPEG, " Image/JPEG; charset=binary", true},
		"image/jpg is image/jpeg":             {JPEG, "image/jpg", true},
		"a PNG is not a JPEG":                 {PNG, "image/jpeg", false},
		"a JPEG is not a PNG":                 {JPEG, "image/png", false},
		"an APNG is a PNG":                    {PNG, "image/apng", true},
		"HEIC and HEIF are one container":     {HEIC, "image/heif", true},
		"HEIF and HEIC are one container":     {HEIF, "image/heic", true},
		"an AVIF is not declared as a HEIF":   {AVIF, "image/heif", false},
		"an icon has two names":               {ICO, "image/vnd.microsoft.icon", true},
		"bytes of no type are not an image":   {PNG, "application/octet-stream", false},
		"a type is not part of another":       {JPEG, "image/jp", false},
		"nothing declared contradicts no-one": {GIF, "", true},
		"parameters alone are a wrong type":   {GIF, ";base64", false},
		"what is no image agrees with none":   {"", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (Facts{MediaType: tc.mediaType}).Agrees(tc.declared); got != tc.want {
				t.Errorf("%s agrees with %q: %t, want %t", tc.mediaType, tc.declared, got, tc.want)
			}
		})
	}
	for _, mediaType := range MediaTypes() {
		for _, other := range MediaTypes() {
			family := strings.HasPrefix(mediaType, "image/hei") && strings.HasPrefix(other, "image/hei")
			if got := (Facts{MediaType: mediaType}).Agrees(other); got != (mediaType == other || family) {
				t.Errorf("%s agrees with %s: %t", mediaType, other, got)
			}
		}
	}
}

func TestAbsurdFramesCountAsPixels(t *testing.T) {
	got, err := Header(gifWith(gifFrame(65535, 65535, 65535, 65535, 0)))
	if want := uint64(131070) * 131070; got.Pixels() != want || err != nil {
		t.Errorf("%d pixels (%v), want %d", got.Pixels(), err, want)
	}
	for answer, want := range map[Answer]string{Unknown: "unknown", No: "no", Yes: "yes"} {
		if answer.String() != want {
			t.Errorf("answer %s is %q", strconv.Itoa(int(answer)), answer.String())
		}
	}
}
