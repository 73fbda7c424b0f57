// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// with returns a request to a model with declared limits and a window.
func with(in preflight.Input, edit func(*preflight.Input, *router.Model)) preflight.Input {
	model := *in.Candidate.Declared
	model.Limits = &router.ModelLimits{}
	in.Candidate.Declared = &model
	edit(&in, &model)
	return in
}

func maxImages(n int64) func(*preflight.Input, *router.Model) {
	return func(_ *preflight.Input, m *router.Model) { m.Limits.MaxImages = n }
}

// cost is what a picture costs the model of these tests.
func cost(t *testing.T) int64 {
	t.Helper()
	e, err := tokens.Find("any-model", "").Estimate(tokens.Image{Width: 100, Height: 100})
	if err != nil || e.Total() == 0 {
		t.Fatalf("estimating: %d, %v", e.Total(), err)
	}
	return e.Total()
}

// window leaves room for the tokens of some images, beside headroom.
func window(tokens int64) func(*preflight.Input, *router.Model) {
	return func(_ *preflight.Input, m *router.Model) { m.ContextWindowTokens = tokens }
}

func TestLimitsOfTheModelChargeEveryOccurrence(t *testing.T) {
	a, b, c := picture("a", kib), picture("b", kib), picture("c", kib)
	each := a.Base64Bytes
	for name, tc := range map[string]struct {
		in   preflight.Input
		left string
	}{
		"as many as declared pass": {with(history(a, b, a), maxImages(3)), ""},
		"exactly as many bytes as declared, and exactly as long a side, pass": {with(request(human(a)), func(_ *preflight.Input, m *router.Model) {
			m.Limits.MaxImageBytes, m.Limits.MaxImageSide = each, 100
		}), ""},
		"one more sheds the duplicate in history first":        {with(history(a, b, a, c), maxImages(3)), "0.0"},
		"duplicates go oldest first":                           {with(history(b, a, a, a, c), maxImages(3)), "0.1 0.2"},
		"then what is oldest":                                  {with(history(a, b, a, c), maxImages(2)), "0.0 0.1"},
		"tool results and history count":                       {with(request(human(a), assistant(), results(b), assistant(), results(c)), maxImages(2)), "2.0"},
		"the duplicate of a required image is shed in history": {with(request(human(b, a), assistant(), human(a, c)), maxImages(3)), "0.1"},
		"a duplicate among the required stays where it stands": {with(request(human(b), assistant(), human(a, a)), maxImages(2)), "0.0"},
		"a body of exactly as many bytes passes": {
			with(history(a, b), func(in *preflight.Input, m *router.Model) {
				in.BodyBytes = 100 + 2*each
				m.Limits.MaxRequestBytes = in.BodyBytes
			}), "",
		},
		"a body of one byte more sheds the oldest": {
			with(history(a, b), func(in *preflight.Input, m *router.Model) {
				in.BodyBytes = 100 + 2*each
				m.Limits.MaxRequestBytes = in.BodyBytes - 1
			}), "0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := preflight.Review(tc.in)
			if !v.Allowed || left(v) != tc.left {
				t.Errorf("allowed %t, left out %q; want %q\n%s\n%v", v.Allowed, left(v), tc.left, outcomes(v), v.Refusal)
			}
		})
	}
}

func TestRequiredImagesOverALimitOfTheModelAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		in     preflight.Input
		reason string
		status int
		says   []string
	}{
		"too many of them": {
			with(request(human(picture("a", kib), picture("a", kib))), maxImages(1)), preflight.ReasonImages, http.StatusBadRequest,
			[]string{"2 required images, each occurrence counted; the model own@local/any-model", "limits.maxImages 1"},
		},
		"one of too many bytes as sent": {
			with(request(human(picture("a", 30))), func(_ *preflight.Input, m *router.Model) { m.Limits.MaxImageBytes = 39 }), preflight.ReasonBytes, http.StatusBadRequest,
			[]string{"as sent (base64)", "40 bytes", "limits.maxImageBytes 39 bytes"},
		},
		"one of too long a side": {
			with(request(human(sized("a", 10, 2001))), func(_ *preflight.Input, m *router.Model) { m.Limits.MaxImageSide = 2000 }), preflight.ReasonSide, http.StatusBadRequest,
			[]string{"10 x 2001 pixels", "limits.maxImageSide 2000"},
		},
		"a body that is too long whatever is shed": {
			with(request(human(picture("a", kib))), func(in *preflight.Input, m *router.Model) {
				in.BodyBytes, m.Limits.MaxRequestBytes = 4*kib, 2*kib
			}), preflight.ReasonBody, http.StatusRequestEntityTooLarge,
			[]string{"4 KiB (4096 bytes)", "limits.maxRequestBytes 2 KiB (2048 bytes)"},
		},
		"images alone that cost more than the window": {
			with(request(human(picture("a", kib), picture("b", kib))), window(cost(t)*2-1)), preflight.ReasonWindow, http.StatusBadRequest,
			[]string{"required images alone", "contextWindowTokens"},
		},
		"images that cost more than the policy lets them": {
			with(request(human(picture("a", kib), picture("b", kib))), func(in *preflight.Input, _ *router.Model) {
				in.Limits.Request.MaxImageTokens = cost(t)*2 - 1
			}), preflight.ReasonImageTokens, http.StatusBadRequest,
			[]string{"required images cost about", "the policy", "limits.request.maxImageTokens"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := preflight.Review(tc.in)
			if v.Allowed || v.Refusal.Kind != fault.BudgetExceeded || v.Refusal.Reason != tc.reason || v.Refusal.Status() != tc.status || v.Refusal.RecoveryHint == "" {
				t.Fatalf("allowed %t: %+v", v.Allowed, v.Refusal)
			}
			contains(t, v.Refusal.Message, tc.says...)
			for _, key := range []string{"limit", "limit_of"} {
				if v.Refusal.Details[key] == nil {
					t.Errorf("details without %s: %v", key, v.Refusal.Details)
				}
			}
		})
	}
}

func TestTokens(t *testing.T) {
	each := cost(t)
	roomy := int64(100_000) // headroom 4096
	full := roomy - 4096
	text := func(tokens int64) func(*preflight.Input, *router.Model) {
		return func(in *preflight.Input, m *router.Model) { in.TextBytes, m.ContextWindowTokens = 4*tokens, roomy }
	}
	two := history(picture("a", kib), picture("b", kib))
	for name, tc := range map[string]struct {
		in   preflight.Input
		left string
		warn string
	}{
		"a request that just fits is whole":              {with(two, text(full-2*each)), "", "is estimated at"},
		"one token more sheds the oldest":                {with(two, text(full-2*each+1)), "0.0", "is estimated at"},
		"a text that fills the window sheds every image": {with(two, text(roomy+1)), "0.0 0.1", "the text alone is estimated at 100001 tokens"},
		"a text that fills the window never refuses what is required": {
			with(request(human(picture("a", kib))), text(roomy+1)), "", "the text alone",
		},
		"an unknown window checks nothing, and says so": {with(two, func(in *preflight.Input, _ *router.Model) { in.TextBytes = 1 << 40 }), "", "is not known; tokens were not checked"},
		"what is reserved for the answer counts": {
			with(two, func(in *preflight.Input, m *router.Model) {
				in.MaxOutputTokens, in.TextBytes, m.ContextWindowTokens = 1000, 4*(full-2*each-999), roomy
			}), "0.0", "is estimated at",
		},
		"of an output limit no more counts than the model can say": {
			with(two, func(in *preflight.Input, m *router.Model) {
				in.MaxOutputTokens, m.MaxOutputTokens, in.TextBytes, m.ContextWindowTokens = 50_000, 1000, 4*(full-2*each-1000), roomy
			}), "", "leaves about",
		},
		"an output limit that fills the window reserves nothing": {
			with(two, func(in *preflight.Input, m *router.Model) { in.MaxOutputTokens, m.ContextWindowTokens = 200_000, roomy }), "", "nothing is reserved for it",
		},
		"one that leaves exactly nothing reserves nothing either": {
			with(two, func(in *preflight.Input, m *router.Model) { in.MaxOutputTokens, m.ContextWindowTokens = full, roomy }), "", "nothing is reserved for it",
		},
		"of a small window a quarter at most is headroom": {with(two, window(2*each*4)), "", ""},
		"a limit of image tokens sheds the oldest": {
			with(two, func(in *preflight.Input, _ *router.Model) { in.Limits.Request.MaxImageTokens = 2*each - 1 }), "0.0", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := preflight.Review(tc.in)
			if !v.Allowed || left(v) != tc.left {
				t.Fatalf("allowed %t, left out %q; want %q: %v", v.Allowed, left(v), tc.left, v.Refusal)
			}
			contains(t, strings.Join(v.Warnings, "\n"), tc.warn)
			if want := each * int64(count(v, preflight.Admitted)); v.Tokens.Images != want {
				t.Errorf("the images cost %d; want %d", v.Tokens.Images, want)
			}
		})
	}
}

func TestAnImageThatTheFamilyRejects(t *testing.T) {
	huge := sized("a", 8000, 6000) // 250 x 188 patches of 32 pixels
	huge.Detail = "original"
	gpt := seeing()
	gpt.Model, gpt.Declared = "gpt-6-astra", &router.Model{Name: "gpt-6-astra", ImageInput: true}
	in := request(human(huge))
	in.Candidate = gpt
	v := preflight.Review(in)
	if v.Allowed || v.Refusal.Kind != fault.BudgetExceeded || v.Refusal.Reason != preflight.ReasonTokens {
		t.Fatalf("allowed %t: %+v", v.Allowed, v.Refusal)
	}
	contains(t, v.Refusal.Message, "8000 x 6000", "47000", "30000", "https://")

	in = history(huge, picture("b", kib))
	in.Candidate = gpt
	if v := preflight.Review(in); !v.Allowed || left(v) != "0.0" || v.Decisions[0].Reason != preflight.ReasonTokens {
		t.Errorf("allowed %t: %s", v.Allowed, outcomes(v))
	}
	plan := preflight.ReviewAll(request(human(huge)), []preflight.Candidate{gpt, seeing()})
	if plan.Chosen != 1 {
		t.Errorf("re-estimated for the fallback, %d is chosen: %v", plan.Chosen, plan.Refusal)
	}
}

func TestEachCandidateIsEstimatedByItsOwnFamily(t *testing.T) {
	gpt, claude := seeing(), seeing()
	gpt.Model, claude.Model = "gpt-4o", "claude-opus-4-7"
	plan := preflight.ReviewAll(request(human(sized("a", 2048, 1500))), []preflight.Candidate{gpt, claude})
	a, b := plan.Verdicts[0], plan.Verdicts[1]
	if a.Tokens.Images == b.Tokens.Images || a.Decisions[0].Basis == b.Decisions[0].Basis || a.Decisions[0].Basis == "" {
		t.Errorf("%+v\n%+v", a.Decisions, b.Decisions)
	}
	declared := seeing()
	declared.Declared.Family = "anthropic"
	if v := preflight.ReviewAll(request(human(sized("a", 2048, 1500))), []preflight.Candidate{declared}).Verdicts[0]; v.Tokens.Images != b.Tokens.Images {
		t.Errorf("a declared family is charged %d; want %d", v.Tokens.Images, b.Tokens.Images)
	}
}

func TestWarningsTellWhatIsNotKnown(t *testing.T) {
	unknown := picture("", 0)
	unknown.Width, unknown.Base64Bytes = 0, 0
	undeclared := request(human(unknown))
	undeclared.Candidate.Declared = nil
	odd := request(human(unknown))
	odd.Candidate.Declared.Family = "no-such"
	for name, tc := range map[string]struct {
		in   preflight.Input
		says []string
	}{
		"an image without a size":          {request(human(unknown)), []string{"1 of the images have no known size in bytes", "1 of the images have no known width", "its images are charged with care"}},
		"a model that is not declared":     {undeclared, []string{"is not declared by its provider"}},
		"a family that is not in the list": {odd, []string{`no token family is called "no-such"`}},
	} {
		t.Run(name, func(t *testing.T) {
			v := preflight.Review(tc.in)
			if !v.Allowed {
				t.Fatal(v.Refusal)
			}
			contains(t, fmt.Sprint(v.Warnings), tc.says...)
		})
	}
	if v := preflight.Review(request(human())); len(v.Warnings) != 0 {
		t.Errorf("a request without images is warned about: %q", v.Warnings)
	}
}
