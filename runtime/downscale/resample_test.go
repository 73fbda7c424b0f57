// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import (
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color"
	"math/rand/v2"
	"testing"

	"golang.org/x/image/draw"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// TestResamplingIsThatOfXImage holds the integers against x/image's floats.
func TestResamplingIsThatOfXImage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		w, h := 1+random.IntN(200), 1+random.IntN(200)
		dw, dh := 1+random.IntN(w), 1+random.IntN(h)
		src := noise(w, h, 255)
		want := image.NewRGBA(image.Rect(0, 0, dw, dh))
		draw.CatmullRom.Scale(want, want.Rect, src, src.Rect, draw.Src, nil)
		got := resample(src, src.Rect, dw, dh, 1)
		for i := range got.Pix {
			if d := int(got.Pix[i]) - int(want.Pix[i]); d < -2 || d > 2 {
				t.Fatalf("%dx%d to %dx%d: sample %d is %d, x/image has %d", w, h, dw, dh, i, got.Pix[i], want.Pix[i])
			}
		}
	}
}

func TestAPictureOfItsOwnSizeStaysAsItIs(t *testing.T) {
	src := noise(37, 23, 255)
	got := resample(src, src.Rect, 37, 23, 1)
	for y := range 23 {
		for x := range 37 {
			if color.NRGBAModel.Convert(got.At(x, y)) != src.At(x, y) {
				t.Fatalf("at %d, %d: %v became %v", x, y, src.At(x, y), got.At(x, y))
			}
		}
	}
}

func TestAFlatColourStaysThatColour(t *testing.T) {
	src := image.NewUniform(color.RGBA{R: 200, G: 7, B: 255, A: 255})
	for _, size := range [][4]int{{1000, 3, 7, 2}, {64, 64, 63, 1}, {3000, 2000, 1, 1}, {5, 5, 4, 4}} {
		got := resample(src, image.Rect(0, 0, size[0], size[1]), size[2], size[3], 1)
		for i := 0; i < len(got.Pix); i += 4 {
			if got.Pix[i] != 200 || got.Pix[i+1] != 7 || got.Pix[i+2] != 255 || got.Pix[i+3] != 255 {
				t.Fatalf("%v: %v", size, got.Pix[i:i+4])
			}
		}
	}
}

// TestPixelsAreTheSameOnEveryMachine pins what Version promises.
func TestPixelsAreTheSameOnEveryMachine(t *testing.T) {
	src := noise(301, 203, 200)
	sum := sha256.Sum256(resample(src, src.Rect, 97, 65, 1).Pix)
	const want = "9718a4664c3dca2a"
	if got := hex.EncodeToString(sum[:8]); got != want {
		t.Errorf("the pixels are %s, not %s: with other ones, change Version", got, want)
	}
}

func TestSizeIsTheLargestWithinTheLimits(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		w, h := 1+random.IntN(1<<(1+random.IntN(20))), 1+random.IntN(1<<(1+random.IntN(20)))
		l := Limits{MaxPixels: random.Int64N(1 << (1 + random.IntN(30))), MaxSide: random.Int64N(1 << (1 + random.IntN(15)))}
		gw, gh := Size(w, h, l)
		pixels := int64(gw) * int64(gh)
		if gw < 1 || gh < 1 || gw > w || gh > h || l.MaxSide > 0 && int64(max(gw, gh)) > l.MaxSide || l.MaxPixels > 0 && pixels > l.MaxPixels {
			t.Fatalf("%dx%d within %+v became %dx%d", w, h, l, gw, gh)
		}
		// One pixel more on both sides is over a limit, unless a side was raised to 1.
		more := int64(gw+1) * int64(gh+1)
		tight := gw == w || l.MaxSide > 0 && int64(max(gw, gh)) >= l.MaxSide-1 || l.MaxPixels > 0 && more+int64(gw+gh) > l.MaxPixels
		if min(gw, gh) > 1 && !tight {
			t.Fatalf("%dx%d within %+v became only %dx%d", w, h, l, gw, gh)
		}
	}
}

func FuzzImage(f *testing.F) {
	for _, kind := range []string{probe.PNG, probe.JPEG, probe.GIF} {
		f.Add(asFile(f, kind, noise(20, 10, 255)), int64(100), int64(5), int64(1000))
	}
	f.Add(lyingWebP(), int64(0), int64(5), int64(0))
	f.Add(oriented(asFile(f, probe.JPEG, noise(9, 5, 255)), 6), int64(10), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, pixels, side, bytes int64) {
		limits := Limits{MaxPixels: max(pixels, 0), MaxSide: max(side, 0), MaxBytes: max(bytes, 0)}
		got, err := Image(data, limits, 8<<20)
		if err != nil {
			return
		}
		open(t, got)
		if limits.MaxPixels > 0 && int64(got.Width)*int64(got.Height) > limits.MaxPixels || limits.MaxSide > 0 && int64(max(got.Width, got.Height)) > limits.MaxSide ||
			limits.MaxBytes > 0 && int64(len(got.Data)) > limits.MaxBytes {
			t.Errorf("%dx%d, %d bytes within %+v", got.Width, got.Height, len(got.Data), limits)
		}
	})
}

// BenchmarkImage makes a copy of 1568 pixels of a photograph's size.
func BenchmarkImage(b *testing.B) {
	data := asFile(b, probe.JPEG, noise(4000, 3000, 255))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Image(data, Limits{MaxSide: 1568}, plenty); err != nil {
			b.Fatal(err)
		}
	}
}
