// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// without is the request without the images that some function speaks against.
func without(in preflight.Input, no func(preflight.Image) bool) preflight.Input {
	out := in
	out.Images = nil
	for _, img := range in.Images {
		if !no(img) {
			out.Images = append(out.Images, img)
		} else if in.BodyBytes > 0 {
			out.BodyBytes -= img.Base64Bytes
		}
	}
	return out
}

func isSoft(img preflight.Image) bool { return img.Soft && !img.Untouchable }

func TestSoftImagesRefuseNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	left := 0
	for range 3000 {
		in := conversation(r.IntN)
		with := preflight.Review(in)
		if alone := preflight.Review(without(in, isSoft)); alone.Allowed != with.Allowed {
			t.Fatalf("allowed %t with soft images, %t without: %v, %v", with.Allowed, alone.Allowed, with.Refusal, alone.Refusal)
		}
		for i, d := range with.Decisions {
			if in.Images[i].Soft && d.Outcome == preflight.Degraded {
				left++
			}
		}
	}
	if left < 500 {
		t.Errorf("%d soft images were left out", left)
	}
}

// Where a conversation was never refused with its soft images required, softness
// changes nothing.
func TestSoftImagesGoOnlyWhereTheyWouldBeRefusedFor(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	same := 0
	for range 3000 {
		in := conversation(r.IntN)
		firm := in
		firm.Images = slices.Clone(in.Images)
		for i := range firm.Images {
			firm.Images[i].Soft = false
		}
		refused := false
		for n := 1; n <= len(in.Turns); n++ {
			refused = refused || !preflight.Review(until(firm, n)).Allowed
		}
		if refused || !slices.ContainsFunc(in.Images, isSoft) {
			continue
		}
		same++
		if a, b := outcomes(preflight.Review(in)), outcomes(preflight.Review(firm)); a != b {
			t.Fatalf("softly:\n%s\nfirmly:\n%s", a, b)
		}
	}
	if same < 200 {
		t.Errorf("%d conversations were never refused", same)
	}
}

// What goes before signed reasoning goes in steps: four or more at once, or all.
func TestBeforeSignedReasoningImagesGoInSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	whole, rest := 0, 0
	for range 10_000 {
		in := conversation(r.IntN)
		if slices.ContainsFunc(in.Images, func(img preflight.Image) bool { return img.Soft || img.Untouchable }) {
			continue
		}
		before := make([]preflight.Decision, len(in.Images))
		for n := 1; n <= len(in.Turns); n++ {
			v, gone, may := preflight.Review(until(in, n)), 0, 0
			for i, d := range v.Decisions {
				signed := slices.ContainsFunc(in.Turns[min(in.Images[i].Turn+1, n):n], func(t preflight.Turn) bool { return t.Signed })
				switch {
				case !signed || d.Tokens == 0: // that is of no use by itself
				case before[i].Outcome != preflight.Degraded && d.Outcome == preflight.Degraded:
					gone++
				case d.Outcome == preflight.Admitted && !d.Required && !away(until(in, n), i):
					may++
				}
			}
			if gone > 0 && gone < 4 && may > 0 {
				t.Fatalf("after %d turns %d have gone and %d might have: %s", n, gone, may, outcomes(v))
			}
			if gone >= 4 && may > 0 {
				whole++
			} else if gone > 0 {
				rest++
			}
			copy(before, v.Decisions)
		}
	}
	if whole < 20 || rest < 100 {
		t.Errorf("%d whole steps and %d of what was left", whole, rest)
	}
}

func marked(img preflight.Image, mark func(*preflight.Image)) preflight.Image {
	mark(&img)
	return img
}

func soften(img preflight.Image) preflight.Image {
	return marked(img, func(img *preflight.Image) { img.Soft = true })
}

func generated(img preflight.Image) preflight.Image {
	return marked(img, func(img *preflight.Image) { img.Untouchable = true })
}

func signed(in preflight.Input) preflight.Input {
	for k := range in.Turns {
		in.Turns[k].Signed = in.Turns[k].Kind == preflight.Assistant
	}
	return in
}

func softly(images []preflight.Image) []preflight.Image {
	for i := range images {
		images[i] = soften(images[i])
	}
	return images
}

func TestMarksOfImages(t *testing.T) {
	broken := picture("wide", kib)
	broken.Width = 2001
	p := pictures("p", 12)
	for name, tc := range map[string]struct {
		in       preflight.Input
		outcomes string
	}{
		"a soft image that is no use by itself is left out": {
			request(human(soften(picture("a", 21*mib)), picture("b", kib))), "0.0 degraded TooManyBytes, 0.1 admitted",
		},
		"of soft images over a budget the oldest go": {
			with(request(human(softly(pictures("s", 4))...)), maxImages(2)), "0.0 degraded TooManyImages, 0.1 degraded TooManyImages, 0.2 admitted, 0.3 admitted",
		},
		"soft images go before what is required is refused": {
			with(request(human(p[0], soften(p[1]), p[2])), maxImages(2)), "0.0 admitted, 0.1 degraded TooManyImages, 0.2 admitted",
		},
		"what is optional goes before what is soft": {
			with(request(human(p[0], p[1]), assistant(), human(soften(p[2]), soften(p[3]))), maxImages(2)),
			"0.0 degraded TooManyImages, 0.1 degraded TooManyImages, 2.0 admitted, 2.1 admitted",
		},
		"a soft image that is history is as any other": {
			with(request(human(soften(p[0]), p[1]), assistant(), human(p[2])), maxImages(2)), "0.0 degraded TooManyImages, 0.1 admitted, 2.0 admitted",
		},
		"an image of the assistant's stays, whatever it is": {
			with(request(human(p[0]), said{preflight.Assistant, []preflight.Image{generated(picture("huge", 21*mib)), generated(broken)}}, human(p[1])), maxImages(3)),
			"0.0 degraded TooManyImageBytes, 1.0 admitted, 1.1 admitted, 2.0 admitted",
		},
		"images of the assistant's alone refuse nothing": {
			with(request(human(), said{preflight.Assistant, []preflight.Image{generated(p[0]), generated(p[1])}}, human()), maxImages(1)), "1.0 admitted, 1.1 admitted",
		},
		"before signed reasoning four go at once": {
			signed(with(request(human(), assistant(), results(p[:6]...), assistant(), results(p[6])), maxImages(6))),
			"2.0 degraded TooManyImages, 2.1 degraded TooManyImages, 2.2 degraded TooManyImages, 2.3 degraded TooManyImages, 2.4 admitted, 2.5 admitted, 4.0 admitted",
		},
		"without it one goes": {
			with(request(human(), assistant(), results(p[:6]...), assistant(), results(p[6])), maxImages(6)),
			"2.0 degraded TooManyImages, 2.1 admitted, 2.2 admitted, 2.3 admitted, 2.4 admitted, 2.5 admitted, 4.0 admitted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if v := preflight.Review(tc.in); !v.Allowed || outcomes(v) != tc.outcomes {
				t.Errorf("allowed %t, %v: %s", v.Allowed, v.Refusal, outcomes(v))
			}
		})
	}
}

// The vendor counts the assistant's images too, the policy does not refuse for them.
func TestWhatIsRequiredBesideTheAssistantsImages(t *testing.T) {
	p := pictures("p", 4)
	in := request(human(), said{preflight.Assistant, []preflight.Image{generated(p[0]), generated(p[1])}}, human(p[2]))
	if v := preflight.Review(with(in, maxImages(2))); v.Allowed || v.Refusal.Reason != preflight.ReasonImages {
		t.Errorf("a vendor takes 2: %s", outcomes(v))
	}
	in.Limits.Request.MaxDistinctImages = 1
	if v := preflight.Review(in); !v.Allowed || count(v, preflight.Admitted) != 3 {
		t.Errorf("the policy allows 1: %v, %s", v.Refusal, outcomes(v))
	}
}

// converse is a request to a vendor that takes 20 images in one message.
func converse(in preflight.Input, distinct int64) preflight.Input {
	in = at(in, router.TransportOpenAIChatCompletions, "bedrock-runtime.us-east-1.amazonaws.com", "some-vl")
	in.Limits.Request.MaxDistinctImages = distinct
	return in
}

func TestWhatGoesWhereSoftImagesMeetOtherRules(t *testing.T) {
	a, z := picture("a", kib), picture("z", kib)
	wide := sized("wide", 2001, 10)
	broken := picture("broken", kib)
	broken.Bad = fault.New(fault.InvalidToolInput, "ImageMalformed", "the header is broken")
	for name, tc := range map[string]struct {
		in   preflight.Input
		left string
	}{
		"beside a wide image that stays, fewer soft ones help": {
			anthropic(request(human(), said{preflight.Assistant, []preflight.Image{generated(wide)}}, human(softly(pictures("s", 20))...))), "2.0",
		},
		"a content whose soft occurrence has gone may go as any other": {
			converse(request(human(a, z), assistant(), human(softly(append([]preflight.Image{a}, pictures("s", 21)...))...), assistant(), human(pictures("h", 2)...)), 22),
			"0.0 0.1 2.0 2.1",
		},
		"a message of soft images keeps no other from being brought within the limit": {
			converse(request(results(broken), human(softly(pictures("s", 21))...), said{preflight.Assistant, pictures("o", 21)}), 100), "0.0 1.0 2.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if v := preflight.Review(tc.in); !v.Allowed || left(v) != tc.left {
				t.Errorf("allowed %t, left out %q; want %q: %v", v.Allowed, left(v), tc.left, v.Refusal)
			}
		})
	}
}

// What is kept for the current turn alone makes room for what comes later, and
// brings nothing back that was left out beside it.
func TestWhatStandsThereNoMoreBringsNothingBack(t *testing.T) {
	in := preflight.Input{
		Limits: defaults(), Candidate: seeing(),
		Turns: []preflight.Turn{
			{Kind: preflight.Human}, {Kind: preflight.Human}, {Kind: preflight.Assistant}, {Kind: preflight.Results}, {Kind: preflight.Assistant}, {Kind: preflight.Human},
		},
		Images: []preflight.Image{picture("a", 10), picture("b", 10), picture("c", 10), picture("d", 10)},
	}
	in.Limits.Request.MaxDistinctImages = 2
	for i, turn := range []int{0, 3, 3, 5} {
		in.Images[i].Turn, in.Images[i].Soft = turn, turn == 3
	}
	in.Images[1].Until, in.Images[2].Until = 5, 5
	v := preflight.Review(in)
	if got := leftOf(v); !slices.Equal(got, []int{0}) {
		t.Errorf("left out are %v; want the first alone", got)
	}
	if want := v.Decisions[3].Tokens; v.Tokens.Images != want {
		t.Errorf("%d tokens of images; want the %d of the one that stands there", v.Tokens.Images, want)
	}
}
