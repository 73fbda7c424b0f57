// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// A conversation has shown ten screenshots, and asks about an eleventh.
func ExampleReview() {
	in := preflight.Input{
		Limits: router.Limits{
			Image:   router.ImageLimits{MaxBytes: 20 << 20, MaxPixels: 50_000_000},
			Request: router.RequestLimits{MaxDistinctImages: 8, MaxTotalImageBytes: 20 << 20, MaxProbedPaths: 16, MaxBodyBytes: 64 << 20},
		},
		Candidate: preflight.Candidate{
			Route: "anthropic@default/claude-opus-4-7", Model: "claude-opus-4-7",
			Declared: &router.Model{Name: "claude-opus-4-7", ImageInput: true, ContextWindowTokens: 200_000},
		},
	}
	for i := range 11 {
		in.Turns = append(in.Turns, preflight.Turn{Kind: preflight.Assistant}, preflight.Turn{Kind: preflight.Results})
		in.Images = append(in.Images, preflight.Image{
			ID: fmt.Sprintf("messages[%d].content[0]", 2*i+1), SHA256: fmt.Sprint(i), Bytes: 200_000,
			MediaType: "image/png", Width: 1280, Height: 720, Turn: 2*i + 1,
		})
	}
	v := preflight.Review(in)
	fmt.Println(v.Allowed, v.Tokens.Images)
	for _, d := range v.Decisions[1:4] {
		fmt.Printf("%s: %s %q\n", d.ID, d.Outcome, d.Reason)
	}
	fmt.Println(v.Decisions[0].Message)
	fmt.Println(v.Decisions[0].Note())
	// Output:
	// true 9568
	// messages[3].content[0]: degraded "TooManyImages"
	// messages[5].content[0]: degraded "TooManyImages"
	// messages[7].content[0]: admitted ""
	// the request holds 9 distinct images; the policy declares limits.request.maxDistinctImages 8
	// [image left out: the request may hold no more images; newer ones are kept]
}
