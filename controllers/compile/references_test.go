// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Whether an object exists that may not be used is not to be learned from
// anything that Compile says.
func TestAProviderThatDoesNotPermitCannotBeToldFromNone(t *testing.T) {
	there := 0
	for seed := range int64(300) {
		in := randomInput(seed)
		foreign := func(p v1alpha1.VisionProvider) bool { return p.Namespace == "models" }
		for i := range in.Providers {
			p := &in.Providers[i]
			if !foreign(*p) {
				continue
			}
			there++
			p.Spec.AllowedNamespaces = []*v1alpha1.AllowedNamespaces{nil, {},
				{From: new(v1alpha1.NamespacesFromSame)},
				{From: new(v1alpha1.NamespacesFromSelector)},
				{From: new(v1alpha1.NamespacesFrom("Everybody"))},
				{From: new(v1alpha1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "production"}}},
				{From: new(v1alpha1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "no label"}}},
				{Selector: &metav1.LabelSelector{}},
			}[i%8]
		}
		with := jsonOf(t, Compile(in))
		in.Providers = slices.DeleteFunc(in.Providers, foreign)
		if without := jsonOf(t, Compile(in)); !bytes.Equal(with, without) {
			t.Fatalf("seed %d: with the provider\n%s\nwithout it\n%s", seed, with, without)
		}
	}
	if there < 100 {
		t.Errorf("only %d providers were there to be told of", there)
	}
}

func TestPermits(t *testing.T) {
	selector := func(stage string) *v1alpha1.AllowedNamespaces {
		return &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": stage}}}
	}
	tests := map[string]struct {
		allowed *v1alpha1.AllowedNamespaces
		by      layer
		want    bool
	}{
		"nothing said means the same namespace":       {nil, layer{namespace: "team"}, false},
		"all":                                         {&v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromAll)}, layer{namespace: "team"}, true},
		"a selector that matches":                     {selector("test"), layer{namespace: "team"}, true},
		"a selector that does not":                    {selector("production"), layer{namespace: "team"}, false},
		"a selector that does not parse":              {selector("no label"), layer{namespace: "team"}, false},
		"a selector that says nothing matches all":    {&v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromSelector), Selector: &metav1.LabelSelector{}}, layer{namespace: "team"}, true},
		"a selector that is missing matches none":     {&v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromSelector)}, layer{namespace: "team"}, false},
		"a word that nobody knows":                    {&v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFrom("Everybody"))}, layer{namespace: "team"}, false},
		"a baseline beside it":                        {nil, layer{namespace: "models", baseline: true}, true},
		"a baseline elsewhere":                        {nil, layer{namespace: "vision-system", baseline: true}, false},
		"a baseline elsewhere for a namespace it may": {selector("test"), layer{namespace: "vision-system", baseline: true}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "models", Name: "shared"}}
			p.Spec.AllowedNamespaces = test.allowed
			if got := permits(p, &test.by, Input{Namespace: "team", NamespaceLabels: map[string]string{"stage": "test"}}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAPolicyBesideAProviderIsNoBaseline(t *testing.T) {
	p := &v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "models", Name: "shared"}}
	if permits(p, &layer{namespace: "models"}, Input{Namespace: "team"}) {
		t.Error("a policy of the provider's namespace lends it to another")
	}
}
