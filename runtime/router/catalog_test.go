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
