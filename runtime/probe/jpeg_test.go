// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"testing"
)

func TestJPEGHeader(t *testing.T) {
	unknown := Facts{MediaType: JPEG}
	jfif := segment(0xe0, []byte("JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"))
	tests := map[string]struct {
		in     []byte
		want   Facts
		reason Reason
	}{
		"H02: width and height are not swapped":    {in: jpegOf(jfif, sof(0xc0, 640, 300)), want: size(JPEG, 640, 300)},
		"a progressive frame counts":               {in: jpegOf(sof(0xc2, 65535, 1)), want: size(JPEG, 65535, 1)},
		"a frame header cut behind its width does": {in: jpegOf(sof(0xc0, 640, 300))[:11], want: size(JPEG, 640, 300)},
		"a thumbnail in EXIF is stepped over":      {in: jpegOf(exif(10<<10), sof(0xc0, 4032, 3024)), want: size(JPEG, 4032, 3024)},
		"DHT, JPG and DAC are not frames": {
			in:   jpegOf(sof(0xc4, 1, 1), sof(0xc8, 2, 2), sof(0xcc, 3, 3), sof(0xc1, 8, 9)),
			want: size(JPEG, 8, 9),
		},
		"any number of fill bytes may precede a marker": {
			in:   jpegOf(bytes.Repeat([]byte{0xff}, 1000), jfif, []byte{0xff, 0xff}, sof(0xc0, 8, 9)),
			want: size(JPEG, 8, 9),
		},
		"markers without length are stepped over":       {in: jpegOf([]byte{0xff, 0x01, 0xff, 0xd0, 0xff, 0xd7, 0xff, 0xd8}, sof(0xc0, 8, 9)), want: size(JPEG, 8, 9)},
		"stray bytes between segments are stepped over": {in: jpegOf(jfif, []byte{0, 0xff, 0, 0x12}, sof(0xc0, 8, 9)), want: size(JPEG, 8, 9)},

		"width 0 is refused":                               {in: jpegOf(sof(0xc0, 0, 9)), want: unknown, reason: ZeroSize},
		"height 0, left to DNL, is refused":                {in: jpegOf(sof(0xc0, 9, 0)), want: unknown, reason: ZeroSize},
		"pixels before any frame are malformed":            {in: jpegOf(jfif, segment(0xda, make([]byte, 10)), sof(0xc0, 8, 9)), want: unknown, reason: Malformed},
		"H08: an end before any frame is malformed":        {in: jpegOf(jfif, []byte{0xff, 0xd9}), want: unknown, reason: Malformed},
		"a length that does not cover itself is malformed": {in: jpegOf([]byte{0xff, 0xe0, 0, 1}, sof(0xc0, 8, 9)), want: unknown, reason: Malformed},
		"a frame header too short for a size is malformed": {in: jpegOf(segment(0xc0, []byte{8, 0, 1})), want: unknown, reason: Malformed},
		"a file that ends in its EXIF is truncated":        {in: jpegOf(exif(10 << 10))[:5000], want: unknown, reason: Truncated},
		"a file that ends behind its EXIF is truncated":    {in: jpegOf(exif(10 << 10)), want: unknown, reason: Truncated},
		"a file of fill bytes is truncated":                {in: jpegOf(bytes.Repeat([]byte{0xff}, 50)), want: unknown, reason: Truncated},
	}
	for code := byte(0xc0); code <= 0xcf; code++ {
		if code == 0xc4 || code == 0xc8 || code == 0xcc {
			continue
		}
		check(t, jpegOf(sof(code, 31, 17)), size(JPEG, 31, 17), "")
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { check(t, tc.in, tc.want, tc.reason) })
	}
}

// bigICC puts the frame header behind n full-size APP2 segments.
func bigICC(n int) []byte {
	icc := segment(0xe2, append([]byte("ICC_PROFILE\x00\x01\x02"), make([]byte, 65533-14)...))
	return jpegOf(bytes.Repeat(icc, n), sof(0xc0, 4000, 3000))
}

func TestJPEGWhoseFrameLiesPastTheHeaderHasUnknownSize(t *testing.T) {
	for n := 1; n <= 4; n++ {
		check(t, bigICC(n), Facts{MediaType: JPEG}, "")
	}
	if facts, _ := Header(bigICC(2)); facts.SizeKnown() || facts.Pixels() != 0 {
		t.Errorf("an unknown size says %d pixels", facts.Pixels())
	}
}

func TestJPEGAtTheEdgeOfTheHeader(t *testing.T) {
	// The width's last byte is at 2+4+pad+9-1; move it over the edge.
	for _, tc := range []struct {
		pad  int
		want Facts
	}{
		{MaxHeader - 15, size(JPEG, 40, 30)},
		{MaxHeader - 14, Facts{MediaType: JPEG}},
		{MaxHeader - 8, Facts{MediaType: JPEG}},
	} {
		check(t, jpegOf(segment(0xe2, make([]byte, tc.pad)), sof(0xc0, 40, 30)), tc.want, "")
	}
}

func TestContentFindsASizePastTheHeader(t *testing.T) {
	got, err := Content(bigICC(3))
	if want := size(JPEG, 4000, 3000); sizeOf(got) != want || err != nil {
		t.Errorf("Content = %+v, %v, want %+v", got, err, want)
	}
	whole := bigICC(3)
	got, err = Content(whole[:len(whole)-15])
	if got != (Facts{MediaType: JPEG}) || reasonOf(err) != Truncated {
		t.Errorf("Content of a cut file = %+v, %v, want a truncation", got, err)
	}
}
