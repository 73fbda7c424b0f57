// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/preflight"
)

// long is a conversation of 100 turns with 30 images in tool results, a third of
// them seen before.
func long() preflight.Input {
	turns := []said{human()}
	for i := range 30 {
		img := sized(fmt.Sprint(i%20), 1280, 720+i%20)
		turns = append(turns, assistant(), results(img), said{kind: preflight.Other})
	}
	in := request(append(turns, assistant(), results())...)
	for i := range in.Turns {
		in.Turns[i].TextBytes, in.Turns[i].BodyBytes = 2000, 2500
		in.TextBytes, in.BodyBytes = in.TextBytes+2000, in.BodyBytes+2500
	}
	for i := range in.Images {
		in.BodyBytes += in.Images[i].Base64Bytes
	}
	in.Candidate.Model = "claude-opus-4-7"
	in.Candidate.Declared.ContextWindowTokens = 200_000
	in.MaxOutputTokens = 8000
	return in
}

// BenchmarkReview judges the 30 images of a long conversation for one model.
func BenchmarkReview(b *testing.B) {
	in := long()
	if v := preflight.Review(in); !v.Allowed || count(v, preflight.Admitted) < 8 || count(v, preflight.Degraded) < 8 {
		b.Fatalf("allowed %t: %s", v.Allowed, outcomes(v))
	}
	b.ReportAllocs()
	for b.Loop() {
		preflight.Review(in)
	}
}

// BenchmarkReviewOfManyImages shows that time grows with the images, and not
// with their square: ns/image stays about the same.
func BenchmarkReviewOfManyImages(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			turns := make([]said, 0, 2*n)
			for i := range n / 2 {
				turns = append(turns, assistant(), results(picture(fmt.Sprint(i%7), 1), picture(fmt.Sprint("x", i), 1)))
			}
			in := request(turns...)
			in.Candidate.Declared.ContextWindowTokens = 20_000
			for b.Loop() {
				preflight.Review(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/image")
		})
	}
}

// BenchmarkReviewOfOneImage judges the request of a look, with its terms gathered
// for it, and beforehand.
func BenchmarkReviewOfOneImage(b *testing.B) {
	in := request(said{})
	img := sized("a", 1024, 768)
	img.Required = true
	in.Turns, in.Images = nil, []preflight.Image{img}
	in.Candidate.Model, in.TextBytes = "claude-opus-4-7", 6000
	for name, review := range map[string]func(preflight.Input) preflight.Verdict{
		"gathered": preflight.Review, "beforehand": preflight.NewTerms(in.Limits, in.Candidate).Review,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := review(in); !v.Allowed {
					b.Fatal(v.Refusal)
				}
			}
		})
	}
}
