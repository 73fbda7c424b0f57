// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/discovery"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// listOf is a lister with a fixed answer.
type listOf []provider.Listed

func (l listOf) List(context.Context) ([]provider.Listed, error) { return l, nil }

// told is what a Discovery makes of an endpoint's list.
func told(t *testing.T, list []provider.Listed) []router.Model {
	d := discovery.New(discovery.Options{})
	defer d.Close()
	at := discovery.Target{Provider: &router.Provider{Name: "team/p"}, Endpoint: "e", Key: "k", Lister: listOf(list)}
	return d.Models(t.Context(), []discovery.Target{at})(at.Provider, "e")
}

func TestAListInTheRoutersTerms(t *testing.T) {
	for name, tc := range map[string]struct {
		listed []provider.Listed
		want   []router.Model
	}{
		"numbers are kept, and models are in order of name": {
			[]provider.Listed{
				{Name: "org/b:8b", ImageInput: provider.Yes, ContextWindowTokens: 8, MaxOutputTokens: 4}, {Name: "a"},
			},
			[]router.Model{{Name: "a"}, {Name: "org/b:8b", ImageInput: true, ContextWindowTokens: 8, MaxOutputTokens: 4}},
		},
		"a model takes images only where the endpoint says so": {
			[]provider.Listed{{Name: "no", ImageInput: provider.No}, {Name: "unknown", ImageInput: provider.Unknown}, {Name: "yes", ImageInput: provider.Yes}},
			[]router.Model{{Name: "no"}, {Name: "unknown"}, {Name: "yes", ImageInput: true}},
		},
		"a number below nothing is nothing": {
			[]provider.Listed{{Name: "a", ContextWindowTokens: -1, MaxOutputTokens: -8}}, []router.Model{{Name: "a"}},
		},
		"a name that no route may hold is left out": {
			[]provider.Listed{{Name: ""}, {Name: "two words"}, {Name: "line\nbreak"}, {Name: "\xff"}, {Name: strings.Repeat("m", 254)}, {Name: "fine@latest"}},
			[]router.Model{{Name: "fine@latest"}},
		},
		"a name that cannot be printed is left out": {
			[]provider.Listed{{Name: "\u202eevil"}, {Name: "line\u2028two"}, {Name: "zero\u200bwidth"}, {Name: "lost\ufffd"}, {Name: "été-3"}},
			[]router.Model{{Name: "été-3"}},
		},
		"of a name that comes twice, the entry that takes images counts": {
			[]provider.Listed{{Name: "a"}, {Name: "a", ImageInput: provider.Yes, MaxOutputTokens: 7}, {Name: "a", ImageInput: provider.No}},
			[]router.Model{{Name: "a", ImageInput: true, MaxOutputTokens: 7}},
		},
		"an empty list is a list": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(t, tc.listed)); diff != "" {
				t.Errorf("models (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALongListKeepsThoseThatTakeImages(t *testing.T) {
	var listed []provider.Listed
	for i := range 2 * discovery.MaxModels {
		listed = append(listed, provider.Listed{Name: fmt.Sprintf("m-%04d", i)})
	}
	listed[len(listed)-1].ImageInput = provider.Yes
	models := told(t, listed)
	if len(models) != discovery.MaxModels || cap(models) > 2*discovery.MaxModels-1 {
		t.Fatalf("%d models of %d", len(models), cap(models))
	}
	if last := models[len(models)-1]; last.Name != "m-0999" || !last.ImageInput || models[0].Name != "m-0000" || models[498].Name != "m-0498" {
		t.Errorf("kept %s, %s … %s", models[0].Name, models[498].Name, last.Name)
	}
	if !slices.IsSortedFunc(models, func(a, b router.Model) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not in order of name")
	}
}

func FuzzAListedNameIsTheModelOfARoute(f *testing.F) {
	for _, name := range []string{"gpt-6", "org/m:8b", "a b", "", "\xff", "models/x@1", "é", "\u2028"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, m := range told(t, []provider.Listed{{Name: name}, {Name: "other"}}) {
			want := router.Route{Provider: "p", Endpoint: "e", Model: m.Name}
			if got, err := router.ParseRoute(want.String()); err != nil || got != want {
				t.Errorf("%q is kept, and is no model of a route: %v", m.Name, err)
			}
		}
	})
}
