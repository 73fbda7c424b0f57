// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

const (
	sees  = "model_advertises_image_input"
	lacks = "model_lacks_image_input"
)

// provider has one endpoint "default"; a model that begins with "see" sees.
func provider(alias, transport string, models ...string) router.Provider {
	p := router.Provider{Name: "team/" + alias, Transport: transport, Endpoints: []router.Endpoint{{Name: "default", URL: "https://" + alias + ".example", Timeout: "1m0s"}}}
	for _, name := range models {
		p.Models = append(p.Models, router.Model{Name: name, ImageInput: name[:3] == "see"})
	}
	return p
}

func chat(alias string, models ...string) router.Provider {
	return provider(alias, router.TransportOpenAIChatCompletions, models...)
}

// listing makes a provider one whose endpoints are asked for their models.
func listing(p router.Provider) router.Provider {
	p.Discovery = &router.Discovery{Interval: "10m0s"}
	return p
}

// policy is an input for a policy of some providers, in order, that are known
// by the second half of their names.
func policy(providers ...router.Provider) selection.Input {
	profile := router.Profile{ID: "policy/p", DefaultModel: router.Auto, PerCallModel: router.PerCallAllowed}
	for _, p := range providers {
		profile.Providers = append(profile.Providers, router.ProviderUse{Alias: p.Name[len("team/"):], Provider: p.Name})
	}
	slices.SortFunc(providers, func(a, b router.Provider) int { return cmpText(a.Name, b.Name) })
	doc := &router.Document{Version: router.Version, Namespace: "team", Providers: providers, Profiles: []router.Profile{profile}}
	return selection.Input{Document: doc, Profile: &doc.Profiles[0]}
}

func cmpText(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// lists answers every endpoint's question with the same models.
func lists(models ...router.Model) router.Discovered {
	return func(*router.Provider, string) []router.Model { return models }
}

func with(in selection.Input, edit func(*selection.Input)) selection.Input {
	edit(&in)
	return in
}

func calls(model string) func(*selection.Input) {
	return func(in *selection.Input) { in.Model = model }
}

func primary(route string) func(*selection.Input) {
	return func(in *selection.Input) { in.Primary = route }
}

func finds(models ...router.Model) func(*selection.Input) {
	return func(in *selection.Input) { in.Discovered = lists(models...) }
}

func TestPortableCases(t *testing.T) {
	explicit := func(p router.Provider, name string, sees bool) router.Provider {
		p.Models = append(p.Models, router.Model{Name: name, ImageInput: sees})
		return p
	}
	for name, tc := range map[string]struct {
		in         selection.Input
		route      string // empty: refused
		mode       observation.Mode
		reason     observation.Reason
		candidates []string
	}{
		"H21: the caller's own model sees, is used natively and is the only candidate": {
			in:    with(policy(chat("first", "see-1"), chat("own", "see-2")), primary("own@default/see-2")),
			route: "own@default/see-2", mode: observation.ModeNative, reason: observation.ReasonPrimary,
			candidates: []string{"own@default/see-2 " + sees},
		},
		"H23: an explicit model that cannot see is refused, and no other is examined": {
			in:   with(policy(chat("able", "see-1"), chat("blind", "text-1")), calls("blind@default/text-1")),
			mode: observation.ModeUnavailable, reason: observation.ReasonExplicitUnavailable,
			candidates: []string{"blind@default/text-1 " + lacks},
		},
		"H24: the caller's own model is blind and another provider's is used as an adapter, both reported": {
			in:    with(policy(chat("able", "see-1"), chat("own", "text-1")), primary("own@default/text-1")),
			route: "able@default/see-1", mode: observation.ModeAdapter, reason: observation.ReasonAuto,
			candidates: []string{"own@default/text-1 " + lacks, "able@default/see-1 " + sees},
		},
		"H25: a custom provider's declared image input beats a list that does not know of it": {
			in:    with(policy(listing(explicit(chat("custom"), "mine", true))), finds(router.Model{Name: "mine"})),
			route: "custom@default/mine", mode: observation.ModeAdapter, reason: observation.ReasonAuto,
			candidates: []string{"custom@default/mine " + sees},
		},
		"H26: a caller on Anthropic is served natively": {
			in:    with(policy(chat("able", "see-1"), provider("anthropic", router.TransportAnthropicMessages, "see-2")), primary("anthropic/see-2")),
			route: "anthropic@default/see-2", mode: observation.ModeNative, reason: observation.ReasonPrimary,
			candidates: []string{"anthropic@default/see-2 " + sees},
		},
		"H29: nobody sees, and every candidate is told": {
			in:   with(policy(chat("a", "text-1", "text-2"), chat("b", "text-3")), primary("b/text-3")),
			mode: observation.ModeUnavailable, reason: observation.ReasonNone,
			candidates: []string{"b@default/text-3 " + lacks, "a@default/text-1 " + lacks, "a@default/text-2 " + lacks},
		},
		"H31: auto in any case, as a call's model, is no model": {
			in:    with(policy(chat("able", "see-1")), calls("Auto")),
			route: "able@default/see-1", mode: observation.ModeAdapter, reason: observation.ReasonAuto,
			candidates: []string{"able@default/see-1 " + sees},
		},
		"H32: a caller that is on its own fallback for this turn says so, and that is its primary": {
			in:    with(policy(chat("usual", "see-1"), chat("spare", "see-2")), primary("spare/see-2")),
			route: "spare@default/see-2", mode: observation.ModeNative, reason: observation.ReasonPrimary,
			candidates: []string{"spare@default/see-2 " + sees},
		},
		"H34: a declared no wins over a discovered yes": {
			in:   with(policy(listing(explicit(chat("custom"), "mine", false))), finds(router.Model{Name: "mine", ImageInput: true})),
			mode: observation.ModeUnavailable, reason: observation.ReasonNone,
			candidates: []string{"custom@default/mine " + lacks},
		},
		"H35: a constraint is recorded once, by what the transport lacks where the model sees": {
			in:    with(policy(provider("later", "Telegraph", "text-1", "see-1"), chat("able", "see-2")), primary("later/see-1")),
			route: "able@default/see-2", mode: observation.ModeAdapter, reason: observation.ReasonAuto,
			candidates: []string{
				"later@default/see-1 provider_transport_unsupported_for_view_image_observation",
				"later@default/text-1 " + lacks, "able@default/see-2 " + sees,
			},
		},
		"H53: a call's model is used on the endpoint it names": {
			in:    with(policy(chat("able", "see-1"), provider("anthropic", router.TransportAnthropicMessages, "see/claude-4-6")), calls("anthropic@default/see/claude-4-6")),
			route: "anthropic@default/see/claude-4-6", mode: observation.ModeAdapter, reason: observation.ReasonExplicit,
			candidates: []string{"anthropic@default/see/claude-4-6 " + sees},
		},
		"H53: a call's model that cannot see is an error": {
			in:   with(policy(chat("able", "see-1"), provider("anthropic", router.TransportAnthropicMessages, "text-1")), calls("anthropic/text-1")),
			mode: observation.ModeUnavailable, reason: observation.ReasonExplicitUnavailable,
			candidates: []string{"anthropic@default/text-1 " + lacks},
		},
		"H66: a text-only default refuses an image": {
			in:   with(policy(chat("able", "see-1"), chat("blind", "text-1")), func(in *selection.Input) { in.Profile.DefaultModel = "blind@default/text-1" }),
			mode: observation.ModeUnavailable, reason: observation.ReasonExplicitUnavailable,
			candidates: []string{"blind@default/text-1 " + lacks},
		},
	} {
		t.Run(name, func(t *testing.T) { checkCase(t, tc.in, tc.route, tc.mode, tc.reason, tc.candidates) })
	}
}

func checkCase(t *testing.T, in selection.Input, route string, mode observation.Mode, reason observation.Reason, candidates []string) {
	t.Helper()
	before := in.Profile.DefaultModel
	plan, err := selection.Select(in)
	s := plan.Selection
	if (err == nil) != (route != "") || (plan.Choice != nil) != (route != "") || s.VisionModelRef != route {
		t.Fatalf("chose %q, %v; want %q", s.VisionModelRef, err, route)
	}
	if route != "" && plan.Choice.Route.String() != route {
		t.Errorf("chose %s and told %s", plan.Choice.Route, route)
	}
	if s.SelectedMode != mode || s.SelectionReason != reason {
		t.Errorf("selected %s for %s; want %s for %s", s.SelectedMode, s.SelectionReason, mode, reason)
	}
	if diff := cmp.Diff(candidates, lines(s)); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	for _, c := range s.Candidates {
		if c.ImageInput != (c.Reason != observation.ReasonLacksImageInput) {
			t.Errorf("candidate %+v contradicts itself", c)
		}
	}
	if in.Profile.DefaultModel != before {
		t.Error("the default changed")
	}
}

func TestDiscoveredModels(t *testing.T) {
	yes, no := router.Model{Name: "found-see", ImageInput: true}, router.Model{Name: "found-text"}
	for name, tc := range map[string]struct {
		in         selection.Input
		route      string
		reason     observation.Reason
		candidates []string
	}{
		"come last in an automatic choice, behind providers that come later": {
			in:    with(policy(listing(chat("lister", "text-1")), chat("blind", "text-2")), finds(no, yes)),
			route: "lister@default/found-see", reason: observation.ReasonAuto,
			candidates: []string{
				"lister@default/text-1 " + lacks, "blind@default/text-2 " + lacks,
				"lister@default/found-text " + lacks, "lister@default/found-see " + sees,
			},
		},
		"do not matter where a declared model sees": {
			in:    with(policy(listing(chat("lister")), chat("able", "see-1")), finds(yes)),
			route: "able@default/see-1", reason: observation.ReasonAuto, candidates: []string{"able@default/see-1 " + sees},
		},
		"are used when a call names one": {
			in:    with(with(policy(listing(chat("lister")), chat("able", "see-1")), finds(yes)), calls("lister/found-see")),
			route: "lister@default/found-see", reason: observation.ReasonExplicit, candidates: []string{"lister@default/found-see " + sees},
		},
		"are used when the caller is on one": {
			in:    with(with(policy(listing(chat("lister")), chat("able", "see-1")), finds(yes)), primary("lister/found-see")),
			route: "lister@default/found-see", reason: observation.ReasonPrimary, candidates: []string{"lister@default/found-see " + sees},
		},
		"are held to the policy's allow-lists": {
			in: with(with(policy(listing(chat("lister"))), finds(yes)), func(in *selection.Input) {
				in.Profile.Allow = []router.AllowList{{Globs: []string{"lister@default/other"}}}
			}),
			reason: observation.ReasonNone, candidates: []string{"lister@default/found-see model_not_allowed_by_policy"},
		},
		"are not looked for where a provider has no discovery": {
			in:     with(with(policy(chat("plain")), finds(yes)), calls("plain/found-see")),
			reason: observation.ReasonExplicitUnavailable, candidates: []string{"plain@default/found-see route_not_in_router"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mode := observation.ModeUnavailable
			switch {
			case tc.reason == observation.ReasonPrimary:
				mode = observation.ModeNative
			case tc.route != "":
				mode = observation.ModeAdapter
			}
			plan, err := selection.Select(tc.in)
			if plan.Selection.VisionModelRef != tc.route || plan.Selection.SelectionReason != tc.reason || plan.Selection.SelectedMode != mode {
				t.Errorf("selection = %+v, %v; want %s for %s", plan.Selection, err, tc.route, tc.reason)
			}
			if diff := cmp.Diff(tc.candidates, lines(plan.Selection)); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheWordsOfARefusalTellWhatIsDeclaredFromWhatIsDiscovered(t *testing.T) {
	lister := func() selection.Input {
		return with(policy(listing(chat("lister", "text-1"))), finds(router.Model{Name: "found"}))
	}
	for name, tc := range map[string]struct {
		in           selection.Input
		reason, want string
	}{
		"a declared model": {with(lister(), calls("lister/text-1")), "ModelLacksImageInput",
			"the model lister@default/text-1 takes no images; no other is used in its place"},
		"a discovered model": {with(lister(), calls("lister/found")), "ModelLacksImageInput",
			"the model lister@default/found is not known to take images; no other is used in its place"},
		"a model that the endpoint does not list": {with(lister(), calls("lister/other")), "RouteNotInRouter",
			"the model lister@default/other is not in the router, and its endpoint is not known to list it; no other is used in its place"},
		"a model of an endpoint that has no list": {with(policy(chat("plain")), calls("plain/other")), "RouteNotInRouter",
			"the model plain@default/other is not in the router; no other is used in its place"},
		"a model of an endpoint that cannot be asked for want of a key": {
			with(lister(), func(in *selection.Input) {
				in.Model, in.Unmounted = "lister/other", map[string]bool{"team/lister": true}
			}),
			"CredentialNotMounted",
			"the model lister@default/other has a provider whose key is not mounted in this pod; no other is used in its place"},
		"a model that the policy does not allow, whether its endpoint lists it or not": {
			with(lister(), func(in *selection.Input) {
				in.Model, in.Profile.Allow = "lister/other", []router.AllowList{{Globs: []string{"x"}}}
			}),
			"ModelNotAllowed", "the policy does not allow the model lister@default/other"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := selection.Select(tc.in)
			if f := fault.As(err); err == nil || f.Reason != tc.reason || f.Message != tc.want || f.RecoveryHint == "" {
				t.Errorf("refused with %s: %v", f.Reason, f)
			}
		})
	}
}

func TestAnEndpointThatGaveNoListIsToldOfWhenNothingCanLook(t *testing.T) {
	lister := func() selection.Input { return policy(listing(chat("lister")), chat("plain", "text-1")) }
	for name, tc := range map[string]struct {
		in        selection.Input
		unlisted  []string
		retryable bool
	}{
		"nothing was listed yet":              {lister(), []string{"lister@default no_models_listed"}, true},
		"an empty list":                       {with(lister(), finds()), []string{"lister@default no_models_listed"}, true},
		"a list of models that are blind":     {with(lister(), finds(router.Model{Name: "text-2"})), nil, false},
		"no key, so it was not asked":         {with(lister(), func(in *selection.Input) { in.Unmounted = map[string]bool{"team/lister": true} }), []string{"lister@default credential_not_mounted"}, false},
		"no provider is asked for its models": {policy(chat("plain", "text-1")), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := selection.Select(tc.in)
			f := fault.As(err)
			unlisted, _ := f.Details["unlisted"].([]string)
			if f.Reason != "NoCandidate" || f.Retryable != tc.retryable {
				t.Errorf("refused with %s, retryable %v: %v", f.Reason, f.Retryable, f)
			}
			if diff := cmp.Diff(tc.unlisted, unlisted); diff != "" {
				t.Errorf("unlisted (-want +got):\n%s", diff)
			}
		})
	}
}
