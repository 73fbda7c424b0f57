// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestThePolicyAloneSaysWhatTheReviewSays(t *testing.T) {
	only := func(types ...string) router.Limits {
		l := defaults()
		l.Image.MediaTypes = types
		return l
	}
	few := defaults()
	few.Request.MaxTotalImageBytes = 1000
	for name, tc := range map[string]struct {
		limits router.Limits
		image  preflight.Image
		reason string // "" when it passes
	}{
		"exactly as many bytes as are allowed":   {defaults(), picture("a", 20*mib), ""},
		"one byte more":                          {defaults(), picture("a", 20*mib+1), preflight.ReasonBytes},
		"more than the whole request may have":   {few, picture("a", 1001), preflight.ReasonBytes},
		"exactly as many pixels as are allowed":  {defaults(), sized("a", 5000, 10_000), ""},
		"one pixel more":                         {defaults(), sized("a", 1, 50_000_001), preflight.ReasonPixels},
		"a type that the policy leaves out":      {only("image/jpeg"), picture("a", 1), preflight.ReasonMediaType},
		"a type that the policy leaves to model": {defaults(), typed("image/heic"), ""},
		"an image of which nothing is known":     {only("image/jpeg"), preflight.Image{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bad := preflight.ByPolicy(&tc.limits, &tc.image)
			if tc.reason == "" {
				if bad != nil {
					t.Errorf("refused: %v", bad)
				}
				return
			}
			in := request(human(tc.image))
			in.Limits, in.Images[0].ID = tc.limits, ""
			want := preflight.Review(in).Refusal
			if bad == nil || bad.Reason != tc.reason || want == nil || bad.Message != want.Message || fmt.Sprint(bad.Details) != fmt.Sprint(want.Details) || bad.RecoveryHint == "" {
				t.Errorf("the policy says %v, the review %v", bad, want)
			}
		})
	}
}

func TestWhatASmallerCopyMustKeepTo(t *testing.T) {
	big := sized("a", 9000, 3000)
	big.Bytes, big.Base64Bytes = 9*mib, 12*mib
	declared := func(edit func(*router.ModelLimits)) func(*preflight.Input, *router.Model) {
		return func(_ *preflight.Input, m *router.Model) { edit(m.Limits) }
	}
	for name, tc := range map[string]struct {
		in   preflight.Input
		want string // "" when none is to be made
	}{
		"an image within every limit":    {request(human(big)), ""},
		"more than one image":            {with(request(human(big, big)), declared(func(l *router.ModelLimits) { l.MaxImageSide = 100 })), ""},
		"a side that the model declares": {with(request(human(big)), declared(func(l *router.ModelLimits) { l.MaxImageSide = 2000 })), "20971520 bytes, 50000000 pixels, side 2000"},
		"bytes that the model declares count in base64": {
			with(request(human(big)), declared(func(l *router.ModelLimits) { l.MaxImageBytes = 4_000_003 })), "3000000 bytes, 50000000 pixels, side 0",
		},
		"the vendor's side and bytes":  {anthropic(request(human(big))), "7864320 bytes, 1099511627776 pixels, side 8000"},
		"what is left of the body":     {with(bodied(request(human(big)), 1000), declared(func(l *router.ModelLimits) { l.MaxRequestBytes = 401_064 })), "300000 bytes, 50000000 pixels, side 0"},
		"a body with no room for one":  {with(bodied(request(human(big)), 1000), declared(func(l *router.ModelLimits) { l.MaxRequestBytes = 1000 })), ""},
		"the policy's pixels":          {with(request(human(big)), func(in *preflight.Input, _ *router.Model) { in.Limits.Image.MaxPixels = 26_999_999 }), "20971520 bytes, 26999999 pixels, side 0"},
		"the policy's bytes":           {with(request(human(big)), func(in *preflight.Input, _ *router.Model) { in.Limits.Image.MaxBytes = 9*mib - 1 }), "9437183 bytes, 50000000 pixels, side 0"},
		"the policy's bytes of all":    {with(request(human(big)), func(in *preflight.Input, _ *router.Model) { in.Limits.Request.MaxTotalImageBytes = mib }), "1048576 bytes, 50000000 pixels, side 0"},
		"the vendor's bytes of images": {at(request(human(big)), router.TransportOpenAIChatCompletions, "api.fireworks.ai", "some-vl"), "7500000 bytes, 1099511627776 pixels, side 0"},
	} {
		t.Run(name, func(t *testing.T) {
			fit, over := preflight.Shrink(tc.in)
			got := fmt.Sprintf("%d bytes, %d pixels, side %d", fit.MaxBytes, fit.MaxPixels, fit.MaxSide)
			if over != (tc.want != "") || over && got != tc.want {
				t.Fatalf("over %t: %s; want %q", over, got, tc.want)
			}
			if !over {
				return
			}
			small := tc.in
			img := small.Images[0]
			img.Bytes, img.Base64Bytes, img.Width, img.Height = fit.MaxBytes, (fit.MaxBytes+2)/3*4, 100, 100
			small.BodyBytes += img.Base64Bytes - small.Images[0].Base64Bytes
			if tc.in.BodyBytes == 0 {
				small.BodyBytes = 0
			}
			small.Images = []preflight.Image{img}
			if v := preflight.Review(small); !v.Allowed {
				t.Errorf("a copy of that size is refused: %v", v.Refusal)
			}
			if preflight.Review(tc.in).Allowed {
				t.Error("the image itself is admitted")
			}
		})
	}
}

// bodied is a request with so many bytes beside its images.
func bodied(in preflight.Input, beside int64) preflight.Input {
	in.BodyBytes = beside
	for i := range in.Images {
		in.BodyBytes += in.Images[i].Base64Bytes
	}
	return in
}

func TestACopyMayHaveTheTypesThatAllAccept(t *testing.T) {
	in := at(request(human(sized("a", 9000, 10))), router.TransportOpenAIChatCompletions, "api.x.ai", "grok-4", func(m *router.Model) {
		m.Limits.MaxImageSide, m.Limits.MediaTypes = 100, []string{"image/heic"}
	})
	in.Limits.Image.MediaTypes = []string{"image/gif", "image/png", "image/heic", "image/webp"}
	fit, over := preflight.Shrink(in)
	if got := strings.Join(fit.MediaTypes, " "); !over || got != "image/png image/heic" {
		t.Errorf("over %t: %q", over, got)
	}
}

func TestTheOnlyImageOfARequestIsNotCalledRequired(t *testing.T) {
	img := picture("a", kib)
	for name, edit := range map[string]func(*preflight.Input, *router.Model){
		"a body":              func(in *preflight.Input, m *router.Model) { in.BodyBytes, m.Limits.MaxRequestBytes = 4*kib, 2*kib },
		"a window":            func(_ *preflight.Input, m *router.Model) { m.ContextWindowTokens = 1 },
		"the policy's tokens": func(in *preflight.Input, _ *router.Model) { in.Limits.Request.MaxImageTokens = 1 },
	} {
		in := with(request(human(img)), edit)
		in.Images[0].ID = ""
		v := preflight.Review(in)
		if v.Allowed || strings.Contains(v.Refusal.Message, "required") || strings.Contains(v.Refusal.Message, "images") || v.Refusal.RecoveryHint == "" {
			t.Errorf("%s: %v", name, v.Refusal)
		}
		if _, named := v.Refusal.Details["image"]; named {
			t.Errorf("%s: an image without a name is named", name)
		}
	}
}

func TestTermsThatWereGatheredBeforehandSayTheSame(t *testing.T) {
	for i, in := range []preflight.Input{
		long(), request(human(picture("a", kib))), anthropic(request(human(sized("a", 8001, 10)))), request(human()), history(picture("a", kib), picture("b", kib)),
	} {
		terms := preflight.NewTerms(in.Limits, in.Candidate)
		want := preflight.Review(in)
		for range 2 { // nothing of a request stays
			in.Limits, in.Candidate = router.Limits{}, preflight.Candidate{}
			if diff := cmp.Diff(want, terms.Review(in)); diff != "" {
				t.Errorf("request %d: %s", i, diff)
			}
			other := request(human(picture("x", kib)), assistant(), human(pictures("p", 9)...))
			other.MaxOutputTokens = 1 << 30
			terms.Review(other)
		}
	}
}
