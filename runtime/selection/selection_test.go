// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// document has a provider that is blind, one that sees on two endpoints, one of
// another transport, and one whose key may be missing.
func document() *router.Document {
	endpoints := func(names ...string) []router.Endpoint {
		var out []router.Endpoint
		for _, n := range names {
			out = append(out, router.Endpoint{Name: n, URL: "https://" + n + ".example", Timeout: "1m0s"})
		}
		return out
	}
	chat := router.TransportOpenAIChatCompletions
	return &router.Document{
		Version: router.Version, Namespace: "team",
		Providers: []router.Provider{
			{Name: "team/blind", Transport: chat, Endpoints: endpoints("default"), Models: []router.Model{{Name: "text-1"}}},
			{Name: "team/later", Transport: "Telegraph", Endpoints: endpoints("default"), Models: []router.Model{{Name: "flash", ImageInput: true}}},
			{Name: "team/keyed", Transport: chat, Endpoints: endpoints("default"), Models: []router.Model{{Name: "see", ImageInput: true}}},
			{Name: "vision/shared", Transport: chat, Endpoints: endpoints("eu", "us"), Models: []router.Model{
				{Name: "text-2"}, {Name: "org/see-2", ImageInput: true}, {Name: "see-3", ImageInput: true},
			}},
		},
		Profiles: []router.Profile{{
			ID: "policy/p", DefaultModel: router.Auto, PerCallModel: router.PerCallAllowed,
			Providers: []router.ProviderUse{
				{Alias: "blind", Provider: "team/blind"}, {Alias: "later", Provider: "team/later"},
				{Alias: "keyed", Provider: "team/keyed"}, {Alias: "pool", Provider: "vision/shared"},
			},
		}},
	}
}

// The candidates of an automatic choice, as "route reason" lines.
const (
	blind    = "blind@default/text-1 model_lacks_image_input"
	later    = "later@default/flash provider_transport_unsupported_for_view_image_observation"
	unkeyed  = "keyed@default/see credential_not_mounted"
	keyed    = "keyed@default/see model_advertises_image_input"
	euText   = "pool@eu/text-2 model_lacks_image_input"
	euSee    = "pool@eu/org/see-2 model_advertises_image_input"
	euDenied = "pool@eu/org/see-2 model_not_allowed_by_policy"
)

func TestSelect(t *testing.T) {
	adapter, native := observation.ModeAdapter, observation.ModeNative
	for name, tc := range map[string]struct {
		model, primary string
		edit           func(*router.Profile)
		unmounted      bool // the key of team/keyed
		route          string
		mode           observation.Mode
		reason         observation.Reason
		candidates     []string
	}{
		"auto takes the first in order that can see, and says why not the others": {
			route: "keyed@default/see", mode: adapter, reason: observation.ReasonAuto, candidates: []string{blind, later, keyed},
		},
		"auto goes past a provider whose key is not mounted, to the next one's first endpoint": {
			unmounted: true, route: "pool@eu/org/see-2", mode: adapter, reason: observation.ReasonAuto,
			candidates: []string{blind, later, unkeyed, euText, euSee},
		},
		"auto goes past models that the policy does not allow": {
			edit: func(p *router.Profile) {
				p.Allow = []router.AllowList{{From: "team/p", Globs: []string{"pool@us/*"}}}
			},
			route: "pool@us/org/see-2", mode: adapter, reason: observation.ReasonAuto,
			candidates: []string{
				"blind@default/text-1 model_not_allowed_by_policy", "later@default/flash model_not_allowed_by_policy",
				"keyed@default/see model_not_allowed_by_policy", "pool@eu/text-2 model_not_allowed_by_policy", euDenied,
				"pool@eu/see-3 model_not_allowed_by_policy", "pool@us/text-2 model_lacks_image_input",
				"pool@us/org/see-2 model_advertises_image_input",
			},
		},
		"auto in any case and as the call's model is still auto (H31)": {
			model: "AUTO", route: "keyed@default/see", mode: adapter, reason: observation.ReasonAuto, candidates: []string{blind, later, keyed},
		},
		"a call's auto beats a named default": {
			model: "auto", edit: func(p *router.Profile) { p.DefaultModel = "pool@us/see-3" },
			route: "keyed@default/see", mode: adapter, reason: observation.ReasonAuto, candidates: []string{blind, later, keyed},
		},
		"the caller's own model is first when it sees (H21, H26)": {
			primary: "pool@us/see-3", route: "pool@us/see-3", mode: native, reason: observation.ReasonPrimary,
			candidates: []string{"pool@us/see-3 model_advertises_image_input"},
		},
		"the caller's blind model is examined first and once (H24)": {
			primary: "blind/text-1", route: "keyed@default/see", mode: adapter, reason: observation.ReasonAuto, candidates: []string{blind, later, keyed},
		},
		"the caller's model that the router does not have is told": {
			primary: "openai/gpt-6", route: "keyed@default/see", mode: adapter, reason: observation.ReasonAuto,
			candidates: []string{"openai/gpt-6 route_not_in_router", blind, later, keyed},
		},
		"the caller's model steers nothing where calls may not name a model": {
			primary: "pool@us/see-3", edit: func(p *router.Profile) { p.PerCallModel = router.PerCallDenied },
			route: "keyed@default/see", mode: adapter, reason: observation.ReasonAuto, candidates: []string{blind, later, keyed},
		},
		"a call's route keeps its endpoint (H53)": {
			model: "pool@us/org/see-2", route: "pool@us/org/see-2", mode: adapter, reason: observation.ReasonExplicit,
			candidates: []string{"pool@us/org/see-2 model_advertises_image_input"},
		},
		"a short route is the provider's first endpoint": {
			model: "pool/org/see-2", route: "pool@eu/org/see-2", mode: adapter, reason: observation.ReasonExplicit, candidates: []string{euSee},
		},
		"a call's route beats the default (H53)": {
			model: "keyed/see", edit: func(p *router.Profile) { p.DefaultModel = "pool@us/see-3" },
			route: "keyed@default/see", mode: adapter, reason: observation.ReasonExplicit, candidates: []string{keyed},
		},
		"a named default is used alone": {
			edit:  func(p *router.Profile) { p.DefaultModel = "pool@us/see-3" },
			route: "pool@us/see-3", mode: adapter, reason: observation.ReasonExplicit,
			candidates: []string{"pool@us/see-3 model_advertises_image_input"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(tc.model, tc.primary, tc.edit, tc.unmounted)
			plan, err := selection.Select(in)
			if err != nil {
				t.Fatalf("Select refused: %v", err)
			}
			choice, s := plan.Choice, plan.Selection
			if got := choice.Route.String(); got != tc.route || s.VisionModelRef != tc.route {
				t.Errorf("route = %s, told as %s; want %s", got, s.VisionModelRef, tc.route)
			}
			if choice.Endpoint.Name != choice.Route.Endpoint || choice.Model.Name != choice.Route.Model || s.VisionModel != choice.Model.Name {
				t.Errorf("choice %+v does not match its route", choice)
			}
			if s.SelectedMode != tc.mode || s.SelectionReason != tc.reason {
				t.Errorf("selected %s for %s; want %s for %s", s.SelectedMode, s.SelectionReason, tc.mode, tc.reason)
			}
			if diff := cmp.Diff(tc.candidates, lines(s)); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
			if in.Profile.DefaultModel != in.Document.Profiles[0].DefaultModel {
				t.Error("a call changed the default")
			}
		})
	}
}

func TestSelectRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		model        string
		edit         func(*router.Profile)
		unmounted    bool
		kind         fault.Kind
		reason       string
		candidates   int
		explicitNone bool
	}{
		"a named model that cannot see, and tries no other (H23)": {model: "blind/text-1", kind: fault.VisionAdapterUnavailable, reason: "ModelLacksImageInput", candidates: 1, explicitNone: true},
		"a blind default, and tries no other":                     {edit: func(p *router.Profile) { p.DefaultModel = "blind/text-1" }, kind: fault.VisionAdapterUnavailable, reason: "ModelLacksImageInput", candidates: 1, explicitNone: true},
		"a provider that the router does not have":                {model: "nobody/x", kind: fault.VisionAdapterUnavailable, reason: "RouteNotInRouter", candidates: 1, explicitNone: true},
		"an endpoint that the provider does not have":             {model: "pool@asia/see-3", kind: fault.VisionAdapterUnavailable, reason: "RouteNotInRouter", candidates: 1, explicitNone: true},
		"a model that the provider does not have":                 {model: "pool@eu/see-9", kind: fault.VisionAdapterUnavailable, reason: "RouteNotInRouter", candidates: 1, explicitNone: true},
		"a transport that this build cannot speak":                {model: "later/flash", kind: fault.VisionAdapterUnavailable, reason: "TransportUnsupported", candidates: 1, explicitNone: true},
		"a key that is not mounted":                               {model: "keyed/see", unmounted: true, kind: fault.VisionAdapterUnavailable, reason: "CredentialNotMounted", candidates: 1, explicitNone: true},
		"a text that is no route":                                 {model: "gpt-4o", kind: fault.InvalidToolInput, reason: "InvalidRoute", explicitNone: true},
		"an upper-case provider":                                  {model: "Pool/see-3", kind: fault.InvalidToolInput, reason: "InvalidRoute", explicitNone: true},
		"any model where calls may not name one": {
			model: "pool/see-3", edit: func(p *router.Profile) { p.PerCallModel = router.PerCallDenied },
			kind: fault.PolicyDenied, reason: "PerCallModelDenied", explicitNone: true,
		},
		"auto where calls may not name one": {
			model: "auto", edit: func(p *router.Profile) { p.PerCallModel = router.PerCallDenied },
			kind: fault.PolicyDenied, reason: "PerCallModelDenied", explicitNone: true,
		},
		"a model that no glob holds": {
			model: "pool/see-3", edit: func(p *router.Profile) { p.Allow = []router.AllowList{{Globs: []string{"pool@us/*"}}} },
			kind: fault.PolicyDenied, reason: "ModelNotAllowed", candidates: 1, explicitNone: true,
		},
		"a model that one of two layers does not hold, by its canonical name": {
			model: "pool/see-3", edit: func(p *router.Profile) {
				p.Allow = []router.AllowList{{Globs: []string{"*"}}, {Globs: []string{"pool@*"}, Canonical: true}}
			},
			kind: fault.PolicyDenied, reason: "ModelNotAllowed", candidates: 1, explicitNone: true,
		},
		"an automatic choice with nobody who sees (H29)": {
			edit: func(p *router.Profile) { p.Providers = p.Providers[:2] },
			kind: fault.VisionAdapterUnavailable, reason: "NoCandidate", candidates: 2,
		},
		"an automatic choice without providers": {
			edit: func(p *router.Profile) { p.Providers = nil },
			kind: fault.VisionAdapterUnavailable, reason: "NoCandidate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := selection.Select(input(tc.model, "", tc.edit, tc.unmounted))
			if err == nil {
				t.Fatalf("chose %s", plan.Choice.Route)
			}
			choice, s := plan.Choice, plan.Selection
			f := fault.As(err)
			if choice != nil || f.Kind != tc.kind || f.Reason != tc.reason {
				t.Errorf("got choice %v and fault %s %s; want %s %s", choice, f.Kind, f.Reason, tc.kind, tc.reason)
			}
			want := observation.ReasonNone
			if tc.explicitNone {
				want = observation.ReasonExplicitUnavailable
			}
			if s.SelectedMode != observation.ModeUnavailable || s.SelectionReason != want || s.VisionModel != "" || len(s.Candidates) != tc.candidates {
				t.Errorf("selection = %+v; want reason %s and %d candidates", s, want, tc.candidates)
			}
			if f.Kind == fault.VisionAdapterUnavailable && f.Details["candidates"] == nil {
				t.Error("the fault does not tell the candidates")
			}
		})
	}
}

func TestWhereAKeyIsMissingAKeyIsAskedForAndNotAModel(t *testing.T) {
	for unmounted, want := range map[bool]string{true: "key", false: "a model that takes images"} {
		_, err := selection.Select(input("", "", func(p *router.Profile) {
			p.Providers = p.Providers[:2]
			if unmounted {
				p.Providers = append(p.Providers, router.ProviderUse{Alias: "keyed", Provider: "team/keyed"})
			}
		}, unmounted))
		if f := fault.As(err); f.Reason != "NoCandidate" || !strings.Contains(f.RecoveryHint, want) {
			t.Errorf("unmounted %v: %s, %q; want %q in the hint", unmounted, f.Reason, f.RecoveryHint, want)
		}
	}
}

func TestManyCandidatesAreBoundedAndTheChosenOneIsAmongThem(t *testing.T) {
	doc := document()
	for i := range 200 {
		doc.Providers[0].Models = append(doc.Providers[0].Models, router.Model{Name: fmt.Sprintf("text-%d", i+2)})
	}
	plan, err := selection.Select(selection.Input{Document: doc, Profile: &doc.Profiles[0]})
	if err != nil {
		t.Fatal(err)
	}
	s := plan.Selection
	if n := len(s.Candidates); n != selection.MaxCandidates || s.Candidates[n-1].ModelRef != s.VisionModelRef {
		t.Errorf("%d candidates, the last %s; chosen %s", n, s.Candidates[n-1].ModelRef, s.VisionModelRef)
	}
}

func input(model, primary string, edit func(*router.Profile), unmounted bool) selection.Input {
	doc := document()
	if edit != nil {
		edit(&doc.Profiles[0])
	}
	in := selection.Input{Document: doc, Profile: &doc.Profiles[0], Model: model, Primary: primary}
	if unmounted {
		in.Unmounted = map[string]bool{"team/keyed": true}
	}
	return in
}

func lines(s *observation.Selection) []string {
	var out []string
	for _, c := range s.Candidates {
		if !strings.HasSuffix(c.ModelRef, "/"+c.Model) {
			return []string{"the model " + c.Model + " is not in " + c.ModelRef}
		}
		out = append(out, c.ModelRef+" "+string(c.Reason))
	}
	return out
}

func BenchmarkSelectAuto(b *testing.B) {
	in := input("", "", nil, true)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := selection.Select(in); err != nil {
			b.Fatal(err)
		}
	}
}
