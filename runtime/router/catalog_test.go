// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
)

func catalog(edit func(*router.Document)) *router.Catalog {
	doc := valid()
	doc.Providers[0].Endpoints = append(doc.Providers[0].Endpoints, router.Endpoint{Name: "spare", URL: "https://spare.example/v1", Timeout: "1s"})
	doc.Providers[0].Models = append(doc.Providers[0].Models, router.Model{Name: "text/only"})
	if edit != nil {
		edit(doc)
	}
	return doc.Catalog(&doc.Profiles[0])
}

func TestACatalogListsEndpointsBeforeModels(t *testing.T) {
	var got []string
	for entry := range catalog(nil).All() {
		got = append(got, entry.Route.String()+" on "+entry.Endpoint.Name+" of "+entry.Provider.Name)
	}
	want := []string{
		"ocr@local/tesseract on local of team-a/ocr", "ocr@local/text/only on local of team-a/ocr",
		"ocr@spare/tesseract on spare of team-a/ocr", "ocr@spare/text/only on spare of team-a/ocr",
	}
	if !slices.Equal(got, want) {
		t.Errorf("All = %q, want %q", got, want)
	}
	seen := 0
	for range catalog(nil).All() {
		if seen++; seen == 3 { // in the middle of the second endpoint
			break
		}
	}
	if seen != 3 {
		t.Errorf("the iteration ended after %d entries, want 3", seen)
	}
}

func TestLookingRoutesUp(t *testing.T) {
	tests := []struct{ name, route, want string }{
		{"a whole route", "ocr@spare/tesseract", "ocr@spare/tesseract"},
		{"the short form stands for the first endpoint", "ocr/text/only", "ocr@local/text/only"},
		{"an unknown provider", "other/tesseract", ""},
		{"a provider is known by its alias alone", "team-a/ocr", ""},
		{"an unknown endpoint", "ocr@far/tesseract", ""},
		{"an unknown model", "ocr/other", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			route, err := router.ParseRoute(tt.route)
			if err != nil {
				t.Fatal(err)
			}
			entry, ok := catalog(nil).Find(route)
			if ok != (tt.want != "") || ok && entry.Route.String() != tt.want {
				t.Errorf("Find = %v, %t", entry.Route, ok)
			}
		})
	}
}

func TestJudgingEntries(t *testing.T) {
	tests := []struct {
		name, route string
		edit        func(*router.Document)
		want        router.Verdict
	}{
		{"a model that sees", "ocr/tesseract", nil, router.VerdictUsable},
		{"a model that does not", "ocr/text/only", nil, router.VerdictLacksImageInput},
		{"a route that no list holds", "ocr/tesseract", func(d *router.Document) { d.Profiles[0].Allow[0].Globs = []string{"x"} }, router.VerdictNotAllowed},
		{"what is not allowed is not told more", "ocr/text/only", func(d *router.Document) { d.Profiles[0].Allow[0].Globs = []string{"x"} }, router.VerdictNotAllowed},
		{"a transport of a later build", "ocr/tesseract", func(d *router.Document) { d.Providers[0].Transport = "Telegraph" }, router.VerdictTransportNotSupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			route, err := router.ParseRoute(tt.route)
			if err != nil {
				t.Fatal(err)
			}
			c := catalog(tt.edit)
			entry, ok := c.Find(route)
			if got := c.Judge(entry); !ok || got != tt.want {
				t.Errorf("Judge = %s, found %t; want %s", got, ok, tt.want)
			}
		})
	}
}

func TestAProviderThatIsGoneLeavesTheOthers(t *testing.T) {
	profile := valid().Profiles[0]
	profile.Providers = append(profile.Providers, router.ProviderUse{Alias: "gone", Provider: "team-a/gone"})
	ocr := valid().Providers[0]
	c := router.NewCatalog(&profile, func(name string) *router.Provider {
		if name == ocr.Name {
			return &ocr
		}
		return nil
	})
	if n := len(slices.Collect(c.All())); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
	if _, ok := c.Find(router.Route{Provider: "gone", Model: "m"}); ok {
		t.Error("a route of a provider that is gone was found")
	}
}

// listing is a catalog whose provider is asked for its models; each endpoint lists some.
func listing(edit func(*router.Document)) *router.Catalog {
	return catalog(func(d *router.Document) {
		d.Providers[0].Discovery = &router.Discovery{Interval: "10m0s"}
		if edit != nil {
			edit(d)
		}
	}).WithDiscovered(func(_ *router.Provider, endpoint string) []router.Model {
		return []router.Model{{Name: "found/" + endpoint, ImageInput: true}, {Name: "text/only", ImageInput: true}}
	})
}

func TestWhatIsDiscoveredComesBehindWhatIsDeclaredAndReplacesNothing(t *testing.T) {
	var got []string
	for entry := range listing(nil).All() {
		text := entry.Route.String()
		if entry.Discovered {
			text += " discovered"
		}
		got = append(got, text)
	}
	want := []string{
		"ocr@local/tesseract", "ocr@local/text/only", "ocr@spare/tesseract", "ocr@spare/text/only",
		"ocr@local/found/local discovered", "ocr@spare/found/spare discovered",
	}
	if !slices.Equal(got, want) {
		t.Errorf("All = %q, want %q", got, want)
	}
	if entry, ok := listing(nil).Find(router.Route{Provider: "ocr", Model: "text/only"}); !ok || entry.Discovered || entry.Model.ImageInput {
		t.Errorf("the declared model was replaced: %+v, %t", entry.Model, ok)
	}
}

func TestADiscoveredModelIsFoundOnItsOwnEndpointAlone(t *testing.T) {
	for route, want := range map[string]bool{"ocr/found/local": true, "ocr@spare/found/spare": true, "ocr@spare/found/local": false, "ocr@far/found/local": false} {
		r, err := router.ParseRoute(route)
		if err != nil {
			t.Fatal(err)
		}
		if entry, ok := listing(nil).Find(r); ok != want || ok && !entry.Discovered {
			t.Errorf("Find(%s) = %+v, %t; want %t", route, entry, ok, want)
		}
	}
}

func TestOnlyProvidersWithDiscoveryAndASpokenTransportAreAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*router.Document)
		want []string
	}{
		"each endpoint is asked":                {nil, []string{"local", "spare"}},
		"a provider without discovery is not":   {func(d *router.Document) { d.Providers[0].Discovery = nil }, nil},
		"a transport of a later build is not":   {func(d *router.Document) { d.Providers[0].Transport = "Telegraph" }, nil},
		"a provider that no profile uses isn't": {func(d *router.Document) { d.Profiles[0].Providers = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for at := range listing(tt.edit).Discoverable() {
				if at.Model != nil || at.Route.Endpoint != at.Endpoint.Name || at.Provider == nil {
					t.Errorf("entry %+v", at)
				}
				got = append(got, at.Endpoint.Name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("Discoverable = %q, want %q", got, tt.want)
			}
			if _, ok := listing(tt.edit).Find(router.Route{Provider: "ocr", Model: "found/local"}); ok != (tt.want != nil) {
				t.Errorf("what is not asked is found: %t", ok)
			}
		})
	}
	for range listing(nil).Discoverable() {
		break
	}
}

// twins are two providers with a model of the same name, and one of another
// protocol with more.
func twins() *router.Catalog {
	at := func(name string) []router.Endpoint { return []router.Endpoint{{Name: name}, {Name: "spare"}} }
	eye := func() []router.Model { return []router.Model{{Name: "eye"}, {Name: "only-here"}} }
	doc := &router.Document{
		Profiles: []router.Profile{{
			Providers: []router.ProviderUse{{Alias: "far", Provider: "n/far"}, {Alias: "chat", Provider: "n/chat"}, {Alias: "next", Provider: "n/next"}, {Alias: "shut", Provider: "n/shut"}},
			Allow:     []router.AllowList{{Globs: []string{"far@*", "chat@*", "next@*"}}},
		}},
		Providers: []router.Provider{
			{Name: "n/far", Transport: router.TransportAnthropicMessages, Endpoints: at("api"), Models: eye()},
			{Name: "n/chat", Transport: router.TransportOpenAIChatCompletions, Endpoints: at("main"), Models: eye()},
			{Name: "n/next", Transport: router.TransportOpenAIChatCompletions, Endpoints: at("main"), Models: []router.Model{{Name: "eye"}}},
			{Name: "n/shut", Transport: router.TransportOpenAIResponses, Endpoints: at("main"), Models: append(eye(), router.Model{Name: "closed"}, router.Model{Name: "models/odd"})},
		},
	}
	return doc.Catalog(&doc.Profiles[0])
}

func TestAModelIsFoundByWhatARequestCallsIt(t *testing.T) {
	tests := []struct {
		name, model, transport, want string
		others                       int
	}{
		{"by its route", "next@spare/eye", router.TransportAnthropicMessages, "next@spare/eye", 0},
		{"by the short form of its route", "next/eye", "", "next@main/eye", 0},
		{"by its name: the first that speaks the request's protocol", "eye", router.TransportOpenAIChatCompletions, "chat@main/eye", 1},
		{"as Gemini writes names", "models/eye", router.TransportAnthropicMessages, "far@api/eye", 0},
		{"a name that begins so itself", "models/odd", "", "shut@main/models/odd", 0},
		{"what is allowed comes before what speaks the protocol, and what serves it before what does not", "eye", router.TransportOpenAIResponses, "chat@main/eye", 1},
		{"without any that serves, the first of those that are allowed", "eye", router.TransportGeminiGenerateContent, "far@api/eye", 2},
		{"where none is allowed, it is found too", "closed", router.TransportOpenAIResponses, "shut@main/closed", 0},
		{"endpoints of one model are one", "only-here", router.TransportAnthropicMessages, "far@api/only-here", 0},
		{"nothing of that name", "other", "", "", 0},
		{"a route of nothing", "far@api/other", "", "", 0},
		{"no name", "", "", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := twins().Named(tt.model, tt.transport)
			if ok != (tt.want != "") || ok && (got.Route.String() != tt.want || got.Others != tt.others || got.Model == nil || got.Provider == nil) {
				t.Errorf("found %t: %s and %d others; want %q and %d", ok, got.Route, got.Others, tt.want, tt.others)
			}
		})
	}
}

func TestAnEndpointThatListsAModelIsOneOfItsOwn(t *testing.T) {
	lists := func(p *router.Provider, endpoint string) []router.Model {
		if p.Name != "n/far" {
			return nil
		}
		return []router.Model{{Name: "listed"}, {Name: "eye", ImageInput: true}}
	}
	doc := &router.Document{
		Profiles:  []router.Profile{{Providers: []router.ProviderUse{{Alias: "far", Provider: "n/far"}}}},
		Providers: []router.Provider{{Name: "n/far", Transport: router.TransportOpenAIChatCompletions, Discovery: &router.Discovery{Interval: "1m0s"}, Endpoints: []router.Endpoint{{Name: "api"}, {Name: "b"}}, Models: []router.Model{{Name: "eye"}}}},
	}
	c := doc.Catalog(&doc.Profiles[0]).WithDiscovered(lists)
	if got, ok := c.Named("listed", ""); !ok || !got.Discovered || got.Route.Endpoint != "api" || got.Others != 1 {
		t.Errorf("found %t: %+v", ok, got)
	}
	if got, ok := c.Named("eye", ""); !ok || got.Discovered || got.Others != 0 {
		t.Errorf("what is declared: %t, %+v", ok, got)
	}
}

func TestEitherProtocolOfOpenAIServesBoth(t *testing.T) {
	chat, responses, anthropic := router.TransportOpenAIChatCompletions, router.TransportOpenAIResponses, router.TransportAnthropicMessages
	for _, tt := range []struct {
		transport, request string
		want               bool
	}{
		{chat, responses, true}, {responses, chat, true}, {chat, chat, true}, {anthropic, anthropic, true},
		{anthropic, chat, false}, {responses, anthropic, false}, {router.TransportGeminiGenerateContent, anthropic, false},
	} {
		if got := router.Serves(tt.transport, tt.request); got != tt.want {
			t.Errorf("%s serves %s: %t", tt.transport, tt.request, got)
		}
	}
}
