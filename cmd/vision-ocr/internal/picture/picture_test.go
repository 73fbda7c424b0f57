// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"testing"
)

// encoded writes img in one of the formats that the standard library writes.
func encoded(t testing.TB, format string, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&out, img)
	case "jpeg":
		err = jpeg.Encode(&out, img, &jpeg.Options{Quality: 100})
	case "gif":
		err = gif.Encode(&out, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func filled(width, height int, c color.Color) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
	return img
}

// pngHeader is a PNG that has a header and nothing else.
func pngHeader(width, height uint32) []byte { return pngHeaderOf(8, 2, width, height) }

// pngHeaderOf has a bit depth and a colour type too.
func pngHeaderOf(depth, colour byte, width, height uint32) []byte {
	chunk := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	chunk = binary.BigEndian.AppendUint32(chunk, height)
	chunk = append(chunk, depth, colour, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, chunk...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
}

func TestDecodeGivesTheLuminanceOfEveryFormat(t *testing.T) {
	for _, format := range []string{"png", "jpeg", "gif"} {
		t.Run(format, func(t *testing.T) {
			img := filled(70, 131, color.White) // more rows than two strips
			draw.Draw(img, image.Rect(0, 100, 35, 131), image.NewUniform(color.Black), image.Point{}, draw.Src)
			got, err := Decode(encoded(t, format, img))
			if err != nil {
				t.Fatal(err)
			}
			if got.Width != 70 || got.Height != 131 || len(got.Pix) != 70*131 {
				t.Fatalf("got %dx%d with %d pixels", got.Width, got.Height, len(got.Pix))
			}
			for _, at := range []struct {
				x, y int
				dark bool
			}{{0, 0, false}, {69, 130, false}, {20, 120, true}, {5, 130, true}, {60, 110, false}} {
				if v := got.Pix[at.y*70+at.x]; (v < 40) != at.dark || (v > 215) == at.dark {
					t.Errorf("pixel %d,%d is %d, dark should be %v", at.x, at.y, v, at.dark)
				}
			}
		})
	}
}

func TestDecodeReadsWebP(t *testing.T) {
	data, err := os.ReadFile("../../testdata/notice.webp")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	dark := 0
	for _, p := range got.Pix {
		if p < 64 {
			dark++
		}
	}
	if got.Width != 640 || got.Height != 300 || dark < 500 || dark > 10000 {
		t.Errorf("got %dx%d with %d dark pixels", got.Width, got.Height, dark)
	}
}

func TestTransparentPixelsShowAWhitePage(t *testing.T) {
	got, err := Decode(encoded(t, "png", filled(3, 3, color.NRGBA{A: 0})))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Pix, bytes.Repeat([]byte{255}, 9)) {
		t.Errorf("got %v", got.Pix)
	}
}

func TestAFrameSmallerThanItsGIFKeepsItsPlace(t *testing.T) {
	frame := image.NewPaletted(image.Rect(4, 2, 6, 3), palette.WebSafe) // index 0 is black
	var out bytes.Buffer
	err := gif.EncodeAll(&out, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0}, Config: image.Config{Width: 8, Height: 4, ColorModel: color.Palette(palette.WebSafe)}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got.Width != 8 || got.Height != 4 || got.Pix[2*8+4] != 0 || got.Pix[2*8+5] != 0 || got.Pix[2*8+6] != 255 || got.Pix[0] != 255 {
		t.Errorf("got %dx%d %v", got.Width, got.Height, got.Pix)
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole := encoded(t, "png", filled(40, 40, color.Black))
	for _, test := range []struct {
		name string
		data []byte
		want Reason
	}{
		{"nothing", nil, Unsupported},
		{"text, which tesseract would take for a list of files", []byte("/etc/hostname\n"), Unsupported},
		{"a BMP", []byte("BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00"), Unsupported},
		{"a PNG of 100000x100000 by its header alone", pngHeader(100000, 100000), TooLarge},
		{"a PNG one row above the limit of pixels", pngHeader(10000, 5001), TooLarge},
		{"a PNG wider than the engine's coordinates", pngHeader(32768, 1), TooLarge},
		{"a PNG of 16-bit colours above half the limit", pngHeaderOf(16, 2, 5000, 5001), TooLarge},
		{"the same with transparency", pngHeaderOf(16, 6, 5000, 5001), TooLarge},
		{"a PNG of 16-bit colours of half the limit, without pixels", pngHeaderOf(16, 6, 5000, 5000), Broken},
		{"a PNG of the largest size without pixels", pngHeader(10000, 5000), Broken},
		{"a PNG that ends early", whole[:len(whole)-30], Broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Decode(test.data)
			got, ok := errors.AsType[*Error](err)
			if !ok || got.Reason != test.want {
				t.Fatalf("got %v, want reason %s", err, test.want)
			}
		})
	}
}

func TestEnlargedInterpolatesBetweenCentres(t *testing.T) {
	r := &Raster{Width: 2, Height: 1, Pix: []byte{0, 200}}
	got := r.Enlarged(2)
	want := []byte{0, 50, 150, 200, 0, 50, 150, 200}
	if got.Width != 4 || got.Height != 2 || !bytes.Equal(got.Pix, want) {
		t.Errorf("got %dx%d %v, want %v", got.Width, got.Height, got.Pix, want)
	}
	if same := r.Enlarged(1); same != r {
		t.Error("once as large is not the same picture")
	}
}

func TestPGM(t *testing.T) {
	r := &Raster{Width: 2, Height: 1, Pix: []byte{7, 8}}
	got, err := io.ReadAll(r.PGM())
	if err != nil || string(got) != "P5\n2 1\n255\n\x07\x08" {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	img := filled(9, 5, color.Gray{Y: 90})
	for _, format := range []string{"png", "jpeg", "gif"} {
		f.Add(encoded(f, format, img))
	}
	f.Add([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"))
	f.Add(pngHeader(100000, 100000))
	f.Fuzz(func(t *testing.T, data []byte) {
		if info, err := Probe(data); err == nil && info.Width*info.Height > 1<<20 {
			return // legal, but slow to try a million times
		}
		r, err := Decode(data)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("the error %v is of another type", err)
			}
			return
		}
		if len(r.Pix) != r.Width*r.Height || len(r.Pix) == 0 || r.Width*r.Height > MaxPixels {
			t.Fatalf("%dx%d with %d pixels", r.Width, r.Height, len(r.Pix))
		}
		if big := r.Enlarged(2); len(big.Pix) != 4*len(r.Pix) {
			t.Fatal("enlarged to another size")
		}
	})
}

func BenchmarkDecodeScreenshot(b *testing.B) {
	data, err := os.ReadFile("../../../../test/images/release-dashboard.png")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		r.Enlarged(2)
	}
}
