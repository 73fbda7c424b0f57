// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// world makes random inputs from few names, so that they meet often.
type world struct{ *rand.Rand }

func (w world) maybe(percent int) bool { return w.IntN(100) < percent }

func (w world) one(of ...string) string { return of[w.IntN(len(of))] }

func (w world) models() []router.Model {
	var list []router.Model
	for _, name := range []string{"m", "n", "org/m", "x@y"} {
		if w.maybe(50) {
			list = append(list, router.Model{Name: name, ImageInput: w.maybe(40)})
		}
	}
	return list
}

func (w world) provider(name string) router.Provider {
	p := router.Provider{Name: name, Models: w.models()}
	p.Transport = w.one(router.TransportOpenAIChatCompletions, router.TransportAnthropicMessages, "Telegraph")
	for _, endpoint := range []string{"e", "f"}[:1+w.IntN(2)] {
		p.Endpoints = append(p.Endpoints, router.Endpoint{Name: endpoint, URL: "https://" + endpoint + ".example", Timeout: "1m0s"})
	}
	if w.maybe(50) {
		p.Discovery = &router.Discovery{Interval: "1m0s"}
	}
	return p
}

// route is one of few: some short, some of nothing that is there.
func (w world) route() string {
	return w.one("a", "b", "c", "gone") + w.one("", "@e", "@f", "@gone") + "/" + w.one("m", "n", "org/m", "x@y", "found", "gone")
}

func (w world) input() selection.Input {
	doc := &router.Document{Version: router.Version, Namespace: "t", Providers: []router.Provider{w.provider("t/1"), w.provider("t/2")}}
	profile := router.Profile{
		ID: "policy/p", DefaultModel: router.Auto, PerCallModel: router.PerCallAllowed,
		Limits: router.Limits{
			Image:   router.ImageLimits{MaxBytes: 1, MaxPixels: 1},
			Request: router.RequestLimits{MaxDistinctImages: 1, MaxTotalImageBytes: 1, MaxProbedPaths: 1, MaxBodyBytes: 1},
		},
		Cache: router.Cache{TTL: "1m0s", MaxEntries: 1, MaxBytes: 1},
	}
	for _, alias := range []string{"a", "b", "c"} {
		if w.maybe(70) {
			profile.Providers = append(profile.Providers, router.ProviderUse{Alias: alias, Provider: w.one("t/1", "t/2")})
		}
	}
	if w.maybe(50) {
		profile.DefaultModel = w.route()
	}
	for range w.IntN(5) {
		profile.FallbackModels = append(profile.FallbackModels, w.route())
	}
	if w.maybe(40) {
		profile.Allow = append(profile.Allow, router.AllowList{From: "t/p", Globs: []string{w.one("a@*", "*@e/*", "*/found"), w.route()}})
	}
	if w.maybe(20) {
		profile.Allow = append(profile.Allow, router.AllowList{From: "t/p", Globs: []string{w.one("t/1@*", "t/2@e/*")}, Canonical: true})
	}
	if w.maybe(15) {
		profile.PerCallModel = router.PerCallDenied
	}
	doc.Profiles = []router.Profile{profile}
	in := selection.Input{Document: doc, Profile: &doc.Profiles[0], Unmounted: map[string]bool{"t/1": w.maybe(20), "t/2": w.maybe(20)}}
	if w.maybe(40) {
		in.Model = w.one(w.route(), "auto", "no route")
	}
	if w.maybe(40) {
		in.Primary = w.one(w.route(), "no route")
	}
	if w.maybe(60) {
		list := append(w.models(), router.Model{Name: "found", ImageInput: w.maybe(50)})
		in.Discovered = lists(list...)
	}
	return in
}

func FuzzSelect(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, seed*seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		in := world{rand.New(rand.NewPCG(a, b))}.input()
		if err := router.Validate(in.Document); err != nil {
			t.Fatalf("the document is not one that a runtime obeys: %v", err)
		}
		plan, err := selection.Select(in)
		if (err == nil) != (plan.Choice != nil) {
			t.Fatalf("choice %v beside %v", plan.Choice, err)
		}
		if err != nil {
			checkRefusal(t, plan, err)
		}
		checkNeeds(t, in, plan)
		asked := map[router.Route]bool{}
		for plan.Choice != nil {
			checkChoice(t, in, plan)
			if asked[plan.Choice.Route] {
				t.Fatalf("%s is asked twice", plan.Choice.Route)
			}
			asked[plan.Choice.Route] = true
			if in.Model != "" && len(asked) > 1 {
				t.Fatalf("the call's model %s gave way to %s", in.Model, plan.Choice.Route)
			}
			plan = plan.FallBack()
			checkCandidates(t, plan.Selection)
		}
	})
}

func checkRefusal(t *testing.T, plan *selection.Plan, err error) {
	s := plan.Selection
	if f := fault.As(err); f.Reason == "" || f.Reason == "Internal" || f.RecoveryHint == "" {
		t.Fatalf("refused with %+v", f)
	}
	if s.SelectedMode != observation.ModeUnavailable || s.VisionModelRef != "" || len(plan.Fallbacks) > 0 {
		t.Fatalf("refused with the selection %+v", s)
	}
	checkCandidates(t, s)
}

// checkChoice holds a choice against the catalog, which knows nothing of selection.
func checkChoice(t *testing.T, in selection.Input, plan *selection.Plan) {
	choice, s := plan.Choice, plan.Selection
	catalog := in.Document.Catalog(in.Profile).WithDiscovered(in.Discovered)
	entry, ok := catalog.Find(choice.Route)
	if !ok || entry.Model.Name != choice.Model.Name || entry.Endpoint != choice.Endpoint || entry.Provider != choice.Provider || entry.Discovered != choice.Discovered {
		t.Fatalf("chose %+v; the catalog has %+v, %t", choice, entry, ok)
	}
	if verdict := catalog.Judge(entry); verdict != router.VerdictUsable || in.Unmounted[choice.Provider.Name] {
		t.Fatalf("chose %s, which is %s", choice.Route, verdict)
	}
	checkCandidates(t, s)
	if last := s.Candidates[len(s.Candidates)-1]; s.VisionModelRef != choice.Route.String() || last.ModelRef != s.VisionModelRef || last.Reason != observation.ReasonAdvertises {
		t.Fatalf("chose %s, told %s, listed %+v last", choice.Route, s.VisionModelRef, last)
	}
	if route, err := router.ParseRoute(in.Model); err == nil && catalog.Canonical(route) != choice.Route {
		t.Fatalf("the call named %s and got %s", in.Model, choice.Route)
	}
}

// checkCandidates: each is listed once, and at most one as the chosen one.
func checkCandidates(t *testing.T, s *observation.Selection) {
	refs, able := map[string]bool{}, 0
	for _, c := range s.Candidates {
		if refs[c.ModelRef] || c.Reason == "" {
			t.Fatalf("candidates %+v", s.Candidates)
		}
		refs[c.ModelRef] = true
		if c.Reason == observation.ReasonAdvertises {
			able++
		}
	}
	if able > 1 || len(s.Candidates) > selection.MaxCandidates {
		t.Fatalf("candidates %+v", s.Candidates)
	}
}

// checkNeeds: where no list is needed, none changes what comes of a call that
// does not say which model it is on itself.
func checkNeeds(t *testing.T, in selection.Input, plan *selection.Plan) {
	needs := selection.NeedsDiscovery(in)
	for _, need := range needs {
		its := slices.ContainsFunc(need.Provider.Endpoints, func(e router.Endpoint) bool { return e.Name == need.Endpoint.Name })
		if need.Provider.Discovery == nil || in.Unmounted[need.Provider.Name] || !its {
			t.Fatalf("needs %+v", need)
		}
	}
	if len(needs) > 0 || in.Primary != "" {
		return
	}
	in.Discovered = nil
	without, _ := selection.Select(in)
	if without.Selection.VisionModelRef != plan.Selection.VisionModelRef || without.Selection.SelectionReason != plan.Selection.SelectionReason {
		t.Fatalf("a list that is not needed changed %+v to %+v", without.Selection, plan.Selection)
	}
}
