// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import "testing"

var sink int64

// BenchmarkEstimate is one estimate of each kind of rule; the target is 200 ns and
// no allocation.
func BenchmarkEstimate(b *testing.B) {
	for _, c := range []struct {
		model string
		image Image
	}{
		{"gpt-6-astra", Image{Width: 4032, Height: 3024, Detail: "high"}},
		{"gpt-4o", Image{Width: 4032, Height: 3024}},
		{"claude-opus-4-7", Image{Width: 8000, Height: 6000}},
		{"gemini-3-pro", Image{Width: 4032, Height: 3024}},
		{"gemini-2.0-flash", Image{Width: 4032, Height: 3024}},
		{"mistral-small-2506", Image{Width: 4032, Height: 3024, Orientation: 6}},
		{"qwen3-vl-8b", Image{Width: 8000, Height: 6000}},
		{"kimi-k3", Image{Width: 8000, Height: 6000}},
		{"deepseek-flash", Image{Width: 4032, Height: 3024}},
		{"deepseek-vl2", Image{Width: 4032, Height: 3024}},
		{"command-a-vision", Image{Width: 4032, Height: 3024}},
		{"gemma-4", Image{Width: 4032, Height: 3024}},
		{"internvl3-38b", Image{Width: 4032, Height: 3024}},
		{"llama-4-maverick", Image{Width: 4032, Height: 3024}},
		{"phi-3-vision", Image{Width: 4032, Height: 3024}},
		{"glm-4.5v", Image{Width: 8000, Height: 6000}},
		{"amazon.nova-pro-v1:0", Image{Width: 4032, Height: 3024}},
		{"acme", Image{}},
	} {
		f := Find(c.model, "")
		b.Run(f.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e, err := f.Estimate(c.image)
				if err != nil {
					b.Fatal(err)
				}
				sink += e.Tokens
			}
		})
	}
}

// BenchmarkFind is the look-up of names of several shapes.
func BenchmarkFind(b *testing.B) {
	for _, model := range []string{"gpt-4o", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "acme-eyes-with-a-long-name-1"} {
		b.Run(model, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink += int64(len(Find(model, "").Name()))
			}
		})
	}
}
