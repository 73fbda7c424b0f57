// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"image"
	"os"
	"path/filepath"
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

func addSeeds(add func([]byte)) {
	for _, data := range seeds() {
		add(data)
	}
	for _, data := range named() {
		add(data)
	}
	for _, data := range encodedImages() {
		add(data)
	}
}

// encodedImages are the images of other encoders.
func encodedImages() (all [][]byte) {
	files, _ := filepath.Glob(filepath.Join(encoded, "*"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		all = append(all, data)
	}
	return all
}

func FuzzHeader(f *testing.F) {
	addSeeds(func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		facts, err := Header(data)
		switch {
		case (facts.Width > 0) != (facts.Height > 0) || facts.Width < 0 || facts.Height < 0:
			t.Fatalf("half a size: %+v", facts)
		case facts.Orientation < 0 || facts.Orientation > 8 || facts.Animated > Yes || facts.Bits < 0:
			t.Fatalf("impossible facts: %+v", facts)
		case err != nil && (reasonOf(err) == "foreign" || facts != Facts{MediaType: facts.MediaType}):
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
		if whole, err := Content(data); err != nil || sizeOf(whole) != sizeOf(facts) {
			t.Fatalf("Content = %+v, %v; Header = %+v", whole, err, facts)
		}
		config, format, err := image.DecodeConfig(bytes.NewReader(data))
		if err == nil && sizeOf(facts) != size("image/"+format, config.Width, config.Height) {
			t.Fatalf("%+v, decoder says %s %dx%d", facts, format, config.Width, config.Height)
		}
	})
}

// FuzzHead holds heads of any length against the whole image.
func FuzzHead(f *testing.F) {
	addSeeds(func(data []byte) {
		f.Add(data, uint16(len(data)/2))
		f.Add(data, uint16(len(data)-1))
	})
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		whole, err := Content(data)
		if err != nil || int(n) > len(data) {
			return
		}
		agreeAsFarAsTold(t, data[:n], int64(len(data)), whole)
	})
}

// FuzzAgrees wants a type to agree with itself and its variants in spelling.
func FuzzAgrees(f *testing.F) {
	f.Add("image/jpg; charset=x")
	f.Add(" IMAGE/JPEG ")
	f.Add(";")
	f.Fuzz(func(t *testing.T, declared string) {
		agreed := 0
		for _, mediaType := range MediaTypes() {
			if (Facts{MediaType: mediaType}).Agrees(declared) {
				agreed++
			}
		}
		if (Facts{}).Agrees(declared) {
			t.Error("what is no image agrees")
		}
		if agreed > 2 && agreed < len(MediaTypes()) {
			t.Errorf("%q agrees with %d types", declared, agreed)
		}
	})
}

func mayHideItsSize(mediaType string) bool {
	switch mediaType {
	case TIFF, AVIF, HEIC, HEIF, SVG, JXL, JP2:
		return true
	}
	return false
}
