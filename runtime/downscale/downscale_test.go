// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

const plenty = 1 << 30

func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// noise is a picture that compresses badly; alpha is every pixel's.
func noise(width, height int, alpha uint8) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	state := uint32(1)
	for i := range m.Pix {
		state = state*1664525 + 1013904223
		if m.Pix[i] = byte(state >> 24); i%4 == 3 {
			m.Pix[i] = alpha
		}
	}
	return m
}

func asFile(t testing.TB, mediaType string, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch mediaType {
	case probe.PNG:
		err = png.Encode(&out, m)
	case probe.JPEG:
		err = jpeg.Encode(&out, m, nil)
	case probe.GIF:
		err = gif.Encode(&out, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// open decodes a copy, and holds it against what is said of it.
func open(t testing.TB, c *Copy) image.Image {
	t.Helper()
	facts, err := probe.Content(c.Data)
	if err != nil || facts.MediaType != c.MediaType || facts.Width != c.Width || facts.Height != c.Height {
		t.Fatalf("the copy is %+v, %v; it is said to be %s of %d x %d", facts, err, c.MediaType, c.Width, c.Height)
	}
	m, _, err := image.Decode(bytes.NewReader(c.Data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestACopyKeepsToEveryLimit(t *testing.T) {
	opaque, clear := noise(400, 200, 255), noise(400, 200, 100)
	for name, tc := range map[string]struct {
		data   []byte
		limits Limits
		want   string // type and size
	}{
		"a side":                               {asFile(t, probe.PNG, opaque), Limits{MaxSide: 100}, "image/png 100x50"},
		"pixels":                               {asFile(t, probe.PNG, opaque), Limits{MaxPixels: 20_000}, "image/png 200x100"},
		"the stricter of both":                 {asFile(t, probe.PNG, opaque), Limits{MaxPixels: 20_000, MaxSide: 50}, "image/png 50x25"},
		"a JPEG stays one":                     {asFile(t, probe.JPEG, opaque), Limits{MaxSide: 100}, "image/jpeg 100x50"},
		"a JPEG where only PNG is taken":       {asFile(t, probe.JPEG, opaque), Limits{MaxSide: 100, MediaTypes: []string{"image/png"}}, "image/png 100x50"},
		"a GIF becomes a PNG":                  {asFile(t, probe.GIF, opaque), Limits{MaxSide: 100}, "image/png 100x50"},
		"a PNG where only JPEG is taken":       {asFile(t, probe.PNG, opaque), Limits{MaxSide: 100, MediaTypes: []string{"image/jpeg", "image/webp"}}, "image/jpeg 100x50"},
		"bytes, by another type":               {asFile(t, probe.PNG, opaque), Limits{MaxBytes: 100_000}, "image/jpeg 400x200"},
		"bytes, by a smaller size":             {asFile(t, probe.PNG, opaque), Limits{MaxBytes: 20_000}, ""},
		"bytes of what is to stay transparent": {asFile(t, probe.PNG, clear), Limits{MaxBytes: 20_000}, ""},
		"a line":                               {asFile(t, probe.PNG, noise(1000, 1, 255)), Limits{MaxSide: 100}, "image/png 100x1"},
		"a line of few pixels":                 {asFile(t, probe.PNG, noise(1000, 2, 255)), Limits{MaxPixels: 10}, "image/png 10x1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := must[*Copy](t)(Image(tc.data, tc.limits, plenty))
			open(t, got)
			told := fmt.Sprintf("%s %dx%d", got.MediaType, got.Width, got.Height)
			if tc.want != "" && told != tc.want {
				t.Errorf("the copy is %s, want %s", told, tc.want)
			}
			l := tc.limits
			if l.MaxBytes > 0 && (int64(len(got.Data)) > l.MaxBytes || int64(len(got.Data)) < l.MaxBytes/4) {
				t.Errorf("the copy has %d bytes, of %d", len(got.Data), l.MaxBytes)
			}
			again := must[*Copy](t)(Image(tc.data, tc.limits, plenty))
			if !bytes.Equal(got.Data, again.Data) {
				t.Error("a second copy is another")
			}
		})
	}
}

func TestWhatCannotBeCopied(t *testing.T) {
	whole := asFile(t, probe.PNG, noise(40, 40, 255))
	bmp := append([]byte("BM"), make([]byte, 60)...)
	bmp[14], bmp[18], bmp[22] = 40, 8, 8
	for name, tc := range map[string]struct {
		data   []byte
		limits Limits
		want   Reason
	}{
		"no image":                      {[]byte("just text"), Limits{}, Malformed},
		"a type that is not decoded":    {bmp, Limits{}, NotDecodable},
		"an animated WebP":              {animatedWebP(), Limits{}, NotDecodable},
		"a file that is cut off":        {whole[:len(whole)/2], Limits{MaxSide: 10}, Malformed},
		"a header that is a bomb":       {pngHeader(100_000, 100_000), Limits{MaxSide: 10}, TooLarge},
		"sides that would overflow":     {pngHeader(1<<31-1, 1<<31-1), Limits{MaxSide: 10}, TooLarge},
		"a large WebP in a small one":   {lyingWebP(), Limits{MaxSide: 10}, TooLarge},
		"a WebP without a picture":      {tinyWebP(0, 16), Limits{MaxSide: 10}, Malformed},
		"no type that may be written":   {whole, Limits{MaxSide: 10, MediaTypes: []string{"image/webp"}}, NoFit},
		"transparency where JPEG alone": {asFile(t, probe.PNG, noise(40, 40, 9)), Limits{MaxSide: 10, MediaTypes: []string{"image/jpeg"}}, NoFit},
		"fewer bytes than any file has": {whole, Limits{MaxBytes: 20}, NoFit},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Image(tc.data, tc.limits, 64<<20)
			if e, ok := errors.AsType[*Error](err); !ok || e.Reason != tc.want || e.Error() == "" {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// pngHeader is a PNG that says how large it is and holds no picture.
func pngHeader(width, height uint32) []byte {
	be := func(n uint32) []byte { return []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), be(width)...)
	return append(append(out, be(height)...), 8, 0, 0, 0, 0, 0, 0, 0, 0)
}

// tinyWebP is a WebP with an extended header of 16 x 16, with flags, and a picture
// whose own header says side x side.
func tinyWebP(flags byte, side int) []byte {
	vp8x := []byte{'V', 'P', '8', 'X', 10, 0, 0, 0, flags, 0, 0, 0, 15, 0, 0, 15, 0, 0}
	vp8 := []byte{'V', 'P', '8', ' ', 10, 0, 0, 0, 0x10, 0, 0, 0x9d, 0x01, 0x2a, byte(side), byte(side >> 8), byte(side), byte(side >> 8)}
	body := append(append([]byte("WEBP"), vp8x...), vp8...)
	return append([]byte{'R', 'I', 'F', 'F', byte(len(body)), 0, 0, 0}, body...)
}

func animatedWebP() []byte { return tinyWebP(0x02, 16) }
func lyingWebP() []byte    { return tinyWebP(0, 16383) }

// TestOrientationsAreApplied makes a picture with a dark corner of each of the
// eight, and looks for it in the copy.
func TestOrientationsAreApplied(t *testing.T) {
	for o, corner := range map[int]image.Point{ // where the stored top left corner goes
		0: {0, 0}, 1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1},
	} {
		stored := image.NewGray(image.Rect(0, 0, 120, 60))
		for i := range stored.Pix {
			stored.Pix[i] = 255
		}
		for y := range 20 { // dark, and longer along the stored x
			for x := range 60 {
				stored.SetGray(x, y, color.Gray{})
			}
		}
		got := must[*Copy](t)(Image(oriented(asFile(t, probe.JPEG, stored), o), Limits{MaxSide: 60}, plenty))
		m := open(t, got)
		w, h := 60, 30
		along, beside := 20, 4 // in the dark, along the stored x
		if o >= 5 {
			w, h = 30, 60
			along, beside = 4, 20
		}
		if got.Width != w || got.Height != h {
			t.Fatalf("orientation %d: %d x %d", o, got.Width, got.Height)
		}
		place := func(dx, dy int) image.Point {
			p := image.Pt(dx, dy)
			if corner.X == 1 {
				p.X = w - 1 - p.X
			}
			if corner.Y == 1 {
				p.Y = h - 1 - p.Y
			}
			return p
		}
		dark := func(p image.Point) bool { y := color.GrayModel.Convert(m.At(p.X, p.Y)).(color.Gray).Y; return y < 64 }
		if !dark(place(along, beside)) || dark(place(beside+20, along+20-4*b(o < 5))) || dark(place(w-3, h-3)) {
			t.Errorf("orientation %d: the dark corner is not where it belongs", o)
		}
	}
}

func b(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// oriented adds an EXIF orientation to a JPEG.
func oriented(data []byte, o int) []byte {
	if o == 0 {
		return data
	}
	exif := append([]byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"), byte(o), 0, 0, 0, 0, 0, 0)
	return append(append([]byte("\xff\xd8"), exif...), data[2:]...)
}

func TestTheFirstFrameStandsOnItsCanvas(t *testing.T) {
	palette := color.Palette{color.Transparent, color.Black, color.White}
	frame := func(at image.Rectangle, index uint8) *image.Paletted {
		m := image.NewPaletted(at, palette)
		for i := range m.Pix {
			m.Pix[i] = index
		}
		return m
	}
	var out bytes.Buffer
	err := gif.EncodeAll(&out, &gif.GIF{
		Image: []*image.Paletted{frame(image.Rect(40, 0, 80, 80), 1), frame(image.Rect(0, 0, 80, 80), 2)},
		Delay: []int{10, 10}, Config: image.Config{ColorModel: palette, Width: 80, Height: 80},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, must[*Copy](t)(Image(out.Bytes(), Limits{MaxSide: 40}, plenty)))
	if _, _, _, a := m.At(5, 20).RGBA(); a != 0 {
		t.Errorf("beside the frame: %v", m.At(5, 20))
	}
	if r, _, _, a := m.At(35, 20).RGBA(); a != 0xffff || r != 0 {
		t.Errorf("in the frame: %v", m.At(35, 20))
	}
}

func TestTransparencyStays(t *testing.T) {
	src := image.NewNRGBA(image.Rect(0, 0, 100, 100))
	for y := range 100 {
		for x := range 100 {
			src.SetNRGBA(x, y, color.NRGBA{R: 255, A: uint8(x / 50 * 128)})
		}
	}
	m := open(t, must[*Copy](t)(Image(asFile(t, probe.PNG, src), Limits{MaxSide: 50}, plenty)))
	if _, _, _, a := m.At(10, 10).RGBA(); a != 0 {
		t.Errorf("clear: %v", m.At(10, 10))
	}
	got, _ := color.NRGBAModel.Convert(m.At(40, 10)).(color.NRGBA)
	if got.A != 128 || got.R < 253 || got.G != 0 {
		t.Errorf("half clear: %v", got)
	}
}
