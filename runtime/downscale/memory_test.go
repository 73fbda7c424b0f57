// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import (
	"image"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// held is how many bytes of pixels an image has.
func held(m image.Image) int64 {
	switch m := m.(type) {
	case *image.YCbCr:
		return int64(len(m.Y) + len(m.Cb) + len(m.Cr))
	case *image.NYCbCrA:
		return int64(len(m.Y) + len(m.Cb) + len(m.Cr) + len(m.A))
	case *image.Gray:
		return int64(len(m.Pix))
	case *image.Gray16:
		return int64(len(m.Pix))
	case *image.RGBA:
		return int64(len(m.Pix))
	case *image.NRGBA:
		return int64(len(m.Pix))
	case *image.RGBA64:
		return int64(len(m.Pix))
	case *image.NRGBA64:
		return int64(len(m.Pix))
	case *image.CMYK:
		return int64(len(m.Pix))
	case *image.Paletted:
		return int64(len(m.Pix))
	}
	return 1 << 50
}

// TestWhatIsDecodedTakesNoMoreThanIsCounted measures what decoding the test images
// of Go and x/image allocates, beside a part that does not grow with the image.
func TestWhatIsDecodedTakesNoMoreThanIsCounted(t *testing.T) {
	for _, dir := range corpusDirs(t) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(filepath.Join(dir, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			facts, err := probe.Content(data)
			if err != nil || !Decodes(facts) {
				continue
			}
			m, err := decode(data, facts.MediaType)
			if err != nil {
				continue
			}
			counted := decodedBytes(data, facts)
			const rounded = 16 // pixels that a decoder may add to each side
			slack := 3 * rounded * int64(facts.Width+facts.Height+rounded)
			if got := held(m); got > counted+slack {
				t.Errorf("%s: %T of %d bytes, counted as %d", file.Name(), m, got, counted)
			}
			const fixed = 600 << 10
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = decode(data, facts.MediaType)
			runtime.ReadMemStats(&after)
			allocated := int64(after.TotalAlloc - before.TotalAlloc)
			if allocated > 2*counted+fixed {
				t.Errorf("%s: decoding allocates %d bytes, counted as %d", file.Name(), allocated, counted)
			}
		}
	}
}

func TestMemoryOfHeaders(t *testing.T) {
	jpeg := func(marker byte, sampling ...byte) []byte {
		out := []byte{0xff, 0xd8, 0xff, marker, 0, byte(8 + 3*len(sampling)), 8, 0, 100, 0, 100, byte(len(sampling))}
		for i, s := range sampling {
			out = append(out, byte(i+1), s, 0)
		}
		return append(out, 0xff, 0xda, 0, 2)
	}
	adobe := func(data []byte, transform byte) []byte {
		segment := append([]byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"), transform)
		return append(append([]byte("\xff\xd8"), segment...), data[2:]...)
	}
	rgb := jpeg(0xc0, 0x11, 0x11, 0x11)
	rgb[12], rgb[15], rgb[18] = 'R', 'G', 'B'
	interlaced := pngHeader(100, 100)
	interlaced[28] = 1
	deep := pngHeader(100, 100)
	deep[24] = 16
	for name, tc := range map[string]struct {
		data []byte
		want int64 // per 100 pixels
	}{
		"a PNG":                           {pngHeader(100, 100), 400},
		"an interlaced PNG":               {interlaced, 800},
		"a deep PNG":                      {deep, 800},
		"a GIF":                           {[]byte("GIF89a\x64\x00\x64\x00\x00\x00\x00"), 100},
		"a grey JPEG":                     {jpeg(0xc0, 0x11), 100},
		"a JPEG":                          {jpeg(0xc0, 0x11, 0x11, 0x11), 300},
		"a JPEG with 4:2:0":               {jpeg(0xc1, 0x22, 0x11, 0x11), 150},
		"a JPEG with 4:2:2":               {jpeg(0xc0, 0x21, 0x11, 0x11), 200},
		"a JPEG with odd factors":         {jpeg(0xc0, 0x22, 0x21, 0x11), 300},
		"a progressive JPEG":              {jpeg(0xc2, 0x22, 0x11, 0x11), 750},
		"a JPEG with four components":     {jpeg(0xc0, 0x11, 0x11, 0x11, 0x11), 800},
		"a JPEG whose components are RGB": {rgb, 700},
		"a JPEG that Adobe calls RGB":     {adobe(jpeg(0xc0, 0x11, 0x11, 0x11), 0), 700},
		"a JPEG that Adobe calls YCbCr":   {adobe(jpeg(0xc0, 0x11, 0x11, 0x11), 1), 300},
	} {
		facts, err := probe.Head(tc.data, 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if facts.Width != 100 {
			t.Fatalf("%s: %+v", name, facts)
		}
		if got := decodedBytes(tc.data, facts) / 100; got != tc.want {
			t.Errorf("%s: %d bytes for 100 pixels, want %d", name, got, tc.want)
		}
	}
}
