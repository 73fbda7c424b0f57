// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func FuzzFind(f *testing.F) {
	for _, name := range []string{"gpt-5.10", "us.anthropic.claude-opus-4-7-v1:0", "models/gemini-2.0-flash", "qwen2p5-vl", "a.b.c", "ft:", "/", "..", "4-5-6p7", "\xff\x00", "ſK-İ"} {
		f.Add(name, "")
		f.Add("", name)
	}
	f.Fuzz(func(t *testing.T, model, declared string) {
		family := Find(model, declared)
		if family.Name() == "" || family.entry == nil {
			t.Fatal("no family was found")
		}
		if again := Find(model, declared); again.entry != family.entry || again.Match() != family.Match() {
			t.Fatal("the same name found two families")
		}
		got, err := family.Estimate(Image{Width: 640, Height: 480})
		if err != nil || got.Tokens <= 0 {
			t.Fatalf("%s: %d tokens: %v", family.Name(), got.Tokens, err)
		}
		if declared == "" && family.Match().How == ByPrefix && !strings.HasPrefix(normal(model), strings.TrimSuffix(family.Match().Pattern, "*")) {
			t.Fatalf("%q does not begin with %q", normal(model), family.Match().Pattern)
		}
	})
}

func FuzzEstimate(f *testing.F) {
	for i, d := range details {
		f.Add(uint8(i), 1920, 1080, d, 6)
	}
	f.Add(uint8(3), 1, 65535, "high", 0)
	f.Add(uint8(9), math.MaxInt, math.MaxInt, "", 8)
	f.Add(uint8(20), math.MaxInt32, 1, "low", 5)
	f.Add(uint8(30), -1, 5, "original", -1)
	families := Default().Families()
	f.Fuzz(func(t *testing.T, which uint8, w, h int, detail string, orientation int) {
		family := families[int(which)%len(families)]
		image := Image{Width: w, Height: h, Detail: detail, Orientation: orientation}
		got, err := family.Estimate(image)
		var no *RejectError
		switch {
		case errors.As(err, &no):
			if no.Actual <= no.Value || no.Error() == "" {
				t.Fatalf("%s %+v: refused without cause: %v", family.Name(), image, no)
			}
			return
		case err != nil:
			t.Fatalf("%s %+v: %v", family.Name(), image, err)
		}
		if got.Tokens <= 0 || got.Markers < 0 || got.Resized.Width < 0 || got.Resized.Height < 0 {
			t.Fatalf("%s %+v: %+v", family.Name(), image, got)
		}
		if most, bounded := family.Max(); bounded && got.Tokens > most {
			t.Fatalf("%s %+v: %d tokens, above the maximum of %d", family.Name(), image, got.Tokens, most)
		}
		if basis := got.Basis(); len(basis) > 400 || strings.ContainsAny(basis, "\n\x00") {
			t.Fatalf("the basis is %q", basis)
		}
		if turned, err := family.Estimate(Image{Width: w, Height: h, Detail: detail}); err == nil && turned.Tokens > got.Tokens {
			t.Fatalf("%s %+v: less than without an orientation", family.Name(), image)
		}
	})
}
