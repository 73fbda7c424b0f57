// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

func TestNeedsDiscovery(t *testing.T) {
	two := listing(chat("two", "text-1"))
	two.Endpoints = append(two.Endpoints, router.Endpoint{Name: "spare", URL: "https://spare.example", Timeout: "1m0s"})
	blind := func() selection.Input { return policy(two, listing(chat("one")), chat("plain", "text-2")) }
	able := func() selection.Input { return policy(two, listing(chat("one")), chat("plain", "text-2", "see-2")) }
	for name, tc := range map[string]struct {
		in   selection.Input
		want []string
	}{
		"H40: an explicit route that is declared asks nobody":                  {with(blind(), calls("two@spare/text-1")), nil},
		"H40: a default route that is declared asks nobody":                    {with(blind(), func(in *selection.Input) { in.Profile.DefaultModel = "two@spare/text-1" }), nil},
		"H40: nor when its fallback is not declared":                           {with(able(), func(in *selection.Input) { in.Profile.FallbackModels = []string{"two/other"} }), nil},
		"an explicit route that is not declared asks its endpoint":             {with(able(), calls("two@spare/other")), []string{"team/two@spare"}},
		"its short form asks the first endpoint":                               {with(able(), calls("two/other")), []string{"team/two@default"}},
		"a default route that is not declared asks its endpoint":               {with(able(), func(in *selection.Input) { in.Profile.DefaultModel = "one@default/other" }), []string{"team/one@default"}},
		"a call's own model puts the default's needs away":                     {with(able(), func(in *selection.Input) { in.Profile.DefaultModel, in.Model = "one/other", "plain/see-2" }), nil},
		"an automatic choice that a declared model serves asks nobody":         {able(), nil},
		"an automatic choice that no declared model serves asks all, in order": {blind(), []string{"team/two@default", "team/two@spare", "team/one@default"}},
		"a call's auto likewise":                                               {with(blind(), calls("auto")), []string{"team/two@default", "team/two@spare", "team/one@default"}},
		"the caller's own model alone asks nobody":                             {with(able(), primary("one/other")), nil},
		"a provider under two aliases is asked once": {with(blind(), func(in *selection.Input) {
			in.Profile.Providers = []router.ProviderUse{{Alias: "x", Provider: "team/one"}, {Alias: "y", Provider: "team/one"}}
		}), []string{"team/one@default"}},
		"a provider whose key is not mounted is not asked": {with(blind(), func(in *selection.Input) { in.Unmounted = map[string]bool{"team/two": true} }), []string{"team/one@default"}},
		"nor for an explicit route":                        {with(blind(), func(in *selection.Input) { in.Model, in.Unmounted = "two/x", map[string]bool{"team/two": true} }), nil},
		"a route that the policy does not allow is not asked for": {with(blind(), func(in *selection.Input) {
			in.Model, in.Profile.Allow = "two/x", []router.AllowList{{Globs: []string{"two@spare/*"}}}
		}), nil},
		"a route that it does allow is": {with(blind(), func(in *selection.Input) {
			in.Model, in.Profile.Allow = "two@spare/x", []router.AllowList{{Globs: []string{"two@spare/*"}}}
		}), []string{"team/two@spare"}},
		"a call that may not name a model asks nobody":                                          {with(blind(), func(in *selection.Input) { in.Model, in.Profile.PerCallModel = "two/x", router.PerCallDenied }), nil},
		"a text that is no route asks nobody":                                                   {with(blind(), calls("gpt-4o")), nil},
		"an endpoint that is not there is not asked":                                            {with(blind(), calls("two@far/x")), nil},
		"a provider without discovery is not asked":                                             {with(blind(), calls("plain/x")), nil},
		"a transport that this build does not speak is not asked":                               {policy(listing(provider("later", "Telegraph"))), nil},
		"what was discovered before does not matter: fresh lists are the rim's to keep or skip": {with(blind(), finds(router.Model{Name: "see-9", ImageInput: true})), []string{"team/two@default", "team/two@spare", "team/one@default"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, need := range selection.NeedsDiscovery(tc.in) {
				got = append(got, need.Provider.Name+"@"+need.Endpoint.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("needs %q; want %q", got, tc.want)
			}
		})
	}
}
