// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"math"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// typed is a picture of another type.
func typed(mediaType string) preflight.Image {
	p := picture("a", kib)
	p.MediaType = mediaType
	return p
}

func TestImagesThatCannotBeUsed(t *testing.T) {
	broken := picture("a", kib)
	broken.Bad = fault.New(fault.InvalidToolInput, "ImageMalformed", "the header is broken")
	policy := func(in preflight.Input, types ...string) preflight.Input {
		in.Limits.Image.MediaTypes = types
		return in
	}
	model := func(in preflight.Input, types ...string) preflight.Input {
		return with(in, func(_ *preflight.Input, m *router.Model) { m.Limits.MediaTypes = types })
	}
	for name, tc := range map[string]struct {
		image  preflight.Image
		limit  func(preflight.Input, ...string) preflight.Input
		types  []string
		reason string // "" when it is admitted
		says   string
	}{
		"a broken one":                               {broken, policy, nil, "ImageMalformed", "the header is broken"},
		"a type that no model is known to take":      {typed("image/tiff"), policy, nil, preflight.ReasonMediaType, "image/tiff, which the model own@local/any-model does not accept"},
		"a type that the policy leaves out":          {typed("image/gif"), policy, []string{"image/png"}, preflight.ReasonMediaType, "which the policy does not accept"},
		"a type that the model leaves out":           {typed("image/gif"), model, []string{"image/png"}, preflight.ReasonMediaType, "which the model own@local/any-model does not accept"},
		"one of the usual beside the model's list":   {typed("image/png"), model, []string{"image/heic"}, "", ""},
		"a type that the model alone lists":          {typed("image/heic"), model, []string{"image/heic"}, "", ""},
		"a policy's list takes nothing from a model": {typed("image/heic"), policy, []string{"image/heic"}, preflight.ReasonMediaType, "the model"},
		"an unknown type passes":                     {typed(""), policy, []string{"image/png"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := preflight.Review(tc.limit(request(human(tc.image)), tc.types...))
			past := preflight.Review(tc.limit(history(tc.image), tc.types...))
			if tc.reason == "" {
				if !asked.Allowed || left(past) != "" {
					t.Errorf("refused: %v; %s", asked.Refusal, outcomes(past))
				}
				return
			}
			if asked.Allowed || asked.Refusal.Kind != fault.InvalidToolInput || asked.Refusal.Reason != tc.reason || asked.Decisions[0].Outcome != preflight.Refused {
				t.Errorf("required: %+v: %s", asked.Refusal, outcomes(asked))
			}
			contains(t, asked.Refusal.Message, tc.says)
			if asked.Refusal.Details["image"] != "0.0" || tc.image.Bad != nil && tc.image.Bad.Details != nil {
				t.Errorf("of which image: %v, %v", asked.Refusal.Details, tc.image.Bad)
			}
			if !past.Allowed || past.Decisions[0].Outcome != preflight.Degraded || past.Decisions[0].Reason != tc.reason {
				t.Errorf("optional: %s", outcomes(past))
			}
			contains(t, past.Decisions[0].Message, tc.says)
		})
	}
}

// One bad image in history must not make every later turn fail.
func TestABadImageIsRefusedOnceAndANoteThereafter(t *testing.T) {
	bad := picture("bad", 21*mib)
	if v := preflight.Review(request(human(picture("a", kib)), assistant(), human(bad))); v.Allowed {
		t.Fatal("admitted")
	}
	v := preflight.Review(request(human(picture("a", kib)), assistant(), human(bad), assistant(), human()))
	if !v.Allowed || left(v) != "2.0" {
		t.Errorf("allowed %t: %s", v.Allowed, outcomes(v))
	}
}

func TestARefusedRequestShedsNothing(t *testing.T) {
	nine := append([]said{human(pictures("old", 4)...), assistant()}, human(pictures("p", 9)...))
	v := preflight.Review(request(nine...))
	if v.Allowed || count(v, preflight.Degraded) != 0 {
		t.Fatalf("allowed %t: %s", v.Allowed, outcomes(v))
	}
	v = preflight.Review(request(append(nine, assistant(), human())...))
	if !v.Allowed || left(v) != "0.0 0.1 0.2 0.3 2.0" {
		t.Errorf("allowed %t: %s", v.Allowed, left(v))
	}
}

func TestRequiredFollowsTheConversation(t *testing.T) {
	a := picture("a", kib)
	mixed := a
	mixed.InResult = true
	pinned := a
	pinned.Required = true
	for name, tc := range map[string]struct {
		in   preflight.Input
		want string // of each image: r required, o optional
	}{
		"the newest human message":                              {request(human(a), assistant(), human(a)), "or"},
		"results that answer the newest assistant message":      {request(human(a), assistant(), results(a), assistant(), results(a), results(a)), "rorr"},
		"a result stays so when a human speaks in between":      {request(human(a), assistant(), results(a), human(a)), "orr"},
		"a result within a human's turn, after another human":   {request(human(a), assistant(), human(mixed, a), human(a)), "oror"},
		"a result within a human's turn, after an assistant":    {request(human(a), assistant(), human(mixed), assistant()), "or"},
		"what an assistant shows is optional":                   {request(human(), said{preflight.Assistant, []preflight.Image{a}}), "o"},
		"instructions are optional":                             {request(said{preflight.Other, []preflight.Image{a}}, human()), "o"},
		"one that says so itself is required for ever":          {request(human(pinned), assistant(), human()), "r"},
		"without turns only those that say so are required":     {preflight.Input{Limits: defaults(), Candidate: seeing(), Images: []preflight.Image{a, pinned}}, "or"},
		"a turn beyond the conversation counts as the last one": {preflight.Input{Limits: defaults(), Candidate: seeing(), Turns: []preflight.Turn{{Kind: preflight.Human}}, Images: []preflight.Image{{Turn: 7}, {Turn: -1}}}, "rr"},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, d := range preflight.Review(tc.in).Decisions {
				got.WriteString(map[bool]string{true: "r", false: "o"}[d.Required])
			}
			if got.String() != tc.want {
				t.Errorf("labels %s; want %s", got.String(), tc.want)
			}
		})
	}
}

func TestNotesAreConstant(t *testing.T) {
	seen := map[string]string{}
	for _, reason := range []string{
		preflight.ReasonMediaType, preflight.ReasonAnimated, preflight.ReasonBytes, preflight.ReasonPixels, preflight.ReasonSide,
		preflight.ReasonSideAmongMany, preflight.ReasonTokens, preflight.ReasonBlind, preflight.ReasonImages, preflight.ReasonTotalBytes,
		preflight.ReasonBody, preflight.ReasonImageTokens, preflight.ReasonWindow, preflight.ReasonPaths, "ImageMalformed",
	} {
		note := preflight.Note(reason)
		if other, twice := seen[note]; twice || strings.ContainsAny(note, "0123456789/") || !strings.HasPrefix(note, "[image left out: ") {
			t.Errorf("%s and %s say %q", reason, other, note)
		}
		seen[note] = reason
	}
	if preflight.Note("ImageMalformed") != preflight.Note("") {
		t.Error("reasons without words of their own differ")
	}
}

func TestSizesAreForPeopleAndMachines(t *testing.T) {
	for n, want := range map[int64]string{
		20 * mib: "20 MiB (20971520 bytes)", 20*mib + 1: "20.0 MiB (20971521 bytes)", 1023: "1023 bytes", 1536: "1.5 KiB (1536 bytes)", 1 << 30: "1 GiB (1073741824 bytes)",
	} {
		if got := preflight.Size(n); got != want {
			t.Errorf("Size(%d) = %q; want %q", n, got, want)
		}
	}
}

// Facts may be told by a client: no number may make a sum overflow.
func TestAbsurdNumbersAreRefused(t *testing.T) {
	for name, edit := range map[string]func(*preflight.Image){
		"bytes": func(i *preflight.Image) { i.Bytes = math.MaxInt64 },
		"sides": func(i *preflight.Image) { i.Width, i.Height = math.MaxInt, math.MaxInt },
	} {
		a, b := picture("a", kib), picture("b", kib)
		edit(&a)
		edit(&b)
		if v := preflight.Review(request(human(a, b))); v.Allowed {
			t.Errorf("%s: admitted", name)
		}
	}
	a := picture("a", -5)
	a.Width, a.Height, a.Base64Bytes = -1, -1, -1
	if v := preflight.Review(request(human(a, a))); !v.Allowed {
		t.Errorf("negative numbers, which are unknown ones: %v", v.Refusal)
	}
	in := with(request(human(picture("a", kib))), func(in *preflight.Input, m *router.Model) {
		in.TextBytes, in.BodyBytes, in.MaxOutputTokens, m.ContextWindowTokens = math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64
	})
	if v := preflight.Review(in); !v.Allowed || v.Tokens.Text < 0 {
		t.Errorf("%v: %+v", v.Refusal, v.Tokens)
	}
}
