// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"errors"
	"strings"
	"testing"
)

func TestTheBasisSaysRuleSizeAndCounts(t *testing.T) {
	for _, c := range []struct {
		model string
		image Image
		want  string
	}{
		{"gpt-6-astra", Image{Width: 2048, Height: 2048, Detail: "high"}, `gpt-6-astra: 32 px patches of 1600x1600: 50 x 50, 2500 counted, x1.2 rounded up, detail "high"`},
		{"gpt-4o", Image{Width: 1024, Height: 1024}, "gpt-4o: 512 px tiles of 768x768: 85 + 4 x 170"},
		{"gpt-4o", Image{Detail: "low"}, `gpt-4o: 85 tokens whatever the size, detail "low"`},
		{"gpt-image-1", Image{Width: 1024, Height: 1024, Detail: "high"}, `gpt-image-1: 512 px tiles of 512x512: 65 + 1 x 129 + 4160 for high fidelity, detail "high"`},
		{"claude-opus-4-7", Image{Width: 3840, Height: 2160}, "claude-high: 28 px cells of 2576x1449: 92 x 52"},
		{"gemini-3-pro", Image{Width: 9, Height: 9}, "gemini-3: 1120 tokens whatever the size, an upper bound"},
		{"gemini-2.0-flash", Image{Width: 960, Height: 540}, "gemini-classic: tiles of 960x540: 3 x 2 of 258 tokens"},
		{"pixtral-12b", Image{Width: 200, Height: 150}, "pixtral: 16 px cells of 200x150: 10 rows of 13 and a row end"},
		{"qwen3-vl-8b", Image{}, "qwen3-vl: size unknown, charged the most it can cost, 16384 tokens"},
		{"command-a-vision", Image{Width: 10000, Height: 20000}, "cohere: 512 px tiles of 1024x2048: (2 x 4 + 1) x 256"},
		{"acme", Image{Width: 100, Height: 100}, "unknown: 28 px cells of 100x100, at least 1120 and at most 16384 tokens, an upper bound"},
	} {
		got, err := Find(c.model, "").Estimate(c.image)
		if err != nil || got.Basis() != c.want {
			t.Errorf("%s %+v: %q (%v), want %q", c.model, c.image, got.Basis(), err, c.want)
		}
	}
	for _, f := range Default().Families() {
		for _, image := range []Image{{}, {Width: 1000, Height: 700}, {Width: 1, Height: 1, Detail: "high"}} {
			if got, err := f.Estimate(image); err != nil || !strings.HasPrefix(got.Basis(), f.Name()+": ") || strings.Contains(got.Basis(), "%!") {
				t.Errorf("%s: the basis is %q (%v)", f.Name(), got.Basis(), err)
			}
		}
	}
	if got := (Estimate{}).Basis(); got != "nothing was estimated" {
		t.Errorf("the basis of nothing is %q", got)
	}
	long, _ := Find("acme", "").Estimate(Image{Width: 1, Height: 1, Detail: strings.Repeat("x\n", 1000)})
	if len(long.Basis()) > 250 || strings.Contains(long.Basis(), "\n") {
		t.Errorf("a caller's word makes the basis %d bytes long", len(long.Basis()))
	}
}

func TestWhatAVendorRefusesIsAnErrorWithNumbers(t *testing.T) {
	for _, c := range []struct {
		name, model string
		image       Image
		limit       string
		value, got  int64
	}{
		{"patches", "gpt-5.6-sol", Image{Width: 6000, Height: 6000, Detail: "original"}, "patches of 32 px after resizing", 30000, 35344},
		{"one patch too many", "gpt-6-astra", Image{Width: 32 * 30001, Height: 1}, "", 0, 0},
		{"exactly as many patches as allowed", "gpt-6-astra", Image{Width: 32 * 200, Height: 32 * 150}, "", 0, 0},
		{"a row more", "gpt-6-astra", Image{Width: 32 * 200, Height: 32*150 + 1}, "patches of 32 px after resizing", 30000, 30200},
		{"an aspect ratio", "qwen2.5-vl-7b", Image{Width: 1, Height: 201}, "aspect ratio", 200, 201},
		{"an aspect ratio by a fraction", "qwen2.5-vl-7b", Image{Width: 401, Height: 2}, "aspect ratio", 200, 201},
		{"an aspect ratio as allowed", "qwen2.5-vl-7b", Image{Width: 400, Height: 2}, "", 0, 0},
		{"a side", "mistral-small-2506", Image{Width: 10001, Height: 5}, "longest side", 10000, 10001},
		{"a side of a turned image", "mistral-small-2506", Image{Width: 10001, Height: 5, Orientation: 6}, "longest side", 10000, 10001},
		{"nothing at high detail", "gpt-5.6-sol", Image{Width: 6000, Height: 6000, Detail: "high"}, "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Find(c.model, "").Estimate(c.image)
			if c.limit == "" {
				if err != nil || got.Tokens <= 0 {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var no *RejectError
			if !errors.As(err, &no) {
				t.Fatalf("accepted with %d tokens", got.Tokens)
			}
			if no.Limit != c.limit || no.Value != c.value || no.Actual != c.got || no.Source == "" || got.Tokens != 0 {
				t.Errorf("refused with %+v and %d tokens", no, got.Tokens)
			}
		})
	}
	_, err := Find("gpt-5.6-sol", "").Estimate(Image{Width: 6000, Height: 6000})
	const want = "estimating an image's tokens for gpt-5.6: patches of 32 px after resizing is 35344 patches, above the vendor's limit of 30000 (https://developers.openai.com/api/docs/guides/images-vision)"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

func TestAQuarterTurnIsChargedTheLargerCount(t *testing.T) {
	for _, c := range []struct {
		model        string
		w, h         int
		upright, max int64
		bound        bool
	}{
		{"mistral-small-2506", 1920, 1080, 31 * 56, 55 * 32, true},
		{"mistral-small-2506", 1080, 1920, 55 * 32, 55 * 32, true},
		{"phi-3-vision", 1344, 1008, 1921, 1933, true},
		{"gpt-4o", 1920, 1080, 1105, 1105, false},
		{"claude-opus-4-7", 1920, 1080, 2691, 2691, false},
		{"mistral-small-2506", 500, 500, 18 * 19, 18 * 19, false},
	} {
		for orientation := range 10 {
			want, bound := c.upright, false
			if orientation >= 5 && orientation <= 8 {
				want, bound = c.max, c.bound
			}
			got, err := Find(c.model, "").Estimate(Image{Width: c.w, Height: c.h, Orientation: orientation})
			if err != nil || got.Tokens != want || got.UpperBound != bound {
				t.Errorf("%s %dx%d, orientation %d: %d, bound %v (%v), want %d, bound %v", c.model, c.w, c.h, orientation, got.Tokens, got.UpperBound, err, want, bound)
			}
		}
	}
}

func TestMarkersAreChargedBesideTheImage(t *testing.T) {
	got, err := Find("qwen2.5-vl-7b", "").Estimate(Image{Width: 100, Height: 100})
	if err != nil || got.Tokens != 16 || got.Markers != 2 || got.Total() != 18 {
		t.Errorf("%d tokens and %d markers (%v), want 16 and 2", got.Tokens, got.Markers, err)
	}
}

func TestTheResizedSizeIsWhatTheGridCovers(t *testing.T) {
	for _, c := range []struct {
		model string
		image Image
		want  string
	}{
		{"deepseek-flash", Image{Width: 65535, Height: 1}, "42882x42"},
		{"deepseek-flash", Image{Width: 1, Height: 65535}, "42x21462"},
		{"deepseek-flash", Image{Width: 2048, Height: 2048}, "1302x1302"},
		{"deepseek-flash", Image{Width: 100, Height: 100, Detail: "low"}, "544x544"},
		{"kimi-k2.5", Image{Width: 20000, Height: 10}, "7168x3"},
		{"mistral-small-2506", Image{Width: 3080, Height: 1}, "1540x1"},
		{"gpt-6-astra", Image{Width: 1 << 30, Height: 1}, "65535x1"},
		{"gemma-4", Image{Width: 65535, Height: 1}, "13440x48"},
		{"llama-4-scout", Image{Width: 1000, Height: 500}, "1008x672"},
		{"internvl3-8b", Image{Width: 1000, Height: 1000}, "1344x1344"},
		{"phi-3-vision", Image{Width: 1008, Height: 1344}, "1008x1344"},
		{"amazon.nova-pro-v1:0", Image{Width: 800, Height: 400}, "900x450"},
		{"glm-4.5v", Image{Width: 20000, Height: 20000}, "2492x2492"},
		{"gemini-3-pro", Image{Width: 10, Height: 10}, "unknown"},
		{"gpt-4o", Image{}, "unknown"},
	} {
		got, err := Find(c.model, "").Estimate(c.image)
		if err != nil || got.Resized.String() != c.want {
			t.Errorf("%s %dx%d: resized to %s (%v), want %s", c.model, c.image.Width, c.image.Height, got.Resized, err, c.want)
		}
	}
}
