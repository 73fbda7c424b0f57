// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"image"
	"testing"
)

// seeds are one whole header of each form and some that are refused.
func seeds() map[string][]byte {
	return map[string][]byte{
		"png": pngOf(640, 480), "gif": gifOf("89a", 320, 240), "vp8": vp8Of(640, 360), "vp8l": vp8lOf(3, 4),
		"vp8x": vp8xOf(0x12, 1000, 2000), "jpeg": jpegOf(exif(300), sof(0xc2, 640, 300)),
		"fill": jpegOf([]byte{0xff, 0xff, 0xff}, sof(0xc0, 1, 1)), "no frame": jpegOf([]byte{0xff, 0xd9}),
		"zero": pngOf(0, 0), "text": []byte("notes"), "length 0": jpegOf([]byte{0xff, 0xe0, 0, 0}),
		"bmp": bmpOf(40, 7, -9), "os/2": bmpOf(12, 7, 9), "tiff": tiffOf(binary.LittleEndian, 8, 640, 480),
		"big endian": tiffOf(binary.BigEndian, 8, 640, 480), "heic": heifOf("heic", ispe(640, 480)), "avif": heifOf("mif1", ispe(64, 64), ispe(640, 480)),
	}
}

func FuzzHeader(f *testing.F) {
	for _, data := range seeds() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		facts, err := Header(data)
		switch {
		case (facts.Width > 0) != (facts.Height > 0) || facts.Width < 0 || facts.Height < 0:
			t.Fatalf("half a size: %+v", facts)
		case err != nil && (reasonOf(err) == "foreign" || facts.SizeKnown()):
			t.Fatalf("%+v beside %v", facts, err)
		case err == nil && facts.MediaType == "":
			t.Fatal("no error and no media type")
		case err == nil && !facts.SizeKnown() && !mayHideItsSize(facts.MediaType) && (facts.MediaType != JPEG || len(data) < MaxHeader):
			t.Fatalf("unknown size of %d bytes of %s", len(data), facts.MediaType)
		}
		if again, _ := Header(bytes.Clone(data)); again != facts {
			t.Fatalf("%+v, then %+v", facts, again)
		}
		if err != nil || !facts.SizeKnown() {
			return
		}
		if whole, err := Content(data); err != nil || whole != facts {
			t.Fatalf("Content = %+v, %v; Header = %+v", whole, err, facts)
		}
		config, format, err := image.DecodeConfig(bytes.NewReader(data))
		if err == nil && facts != (Facts{"image/" + format, config.Width, config.Height}) {
			t.Fatalf("%+v, decoder says %s %dx%d", facts, format, config.Width, config.Height)
		}
	})
}

func mayHideItsSize(mediaType string) bool {
	return mediaType == TIFF || mediaType == AVIF || mediaType == HEIC || mediaType == HEIF
}
