// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestServed(t *testing.T) {
	policy := func(namespace string, selector *metav1.LabelSelector) v1alpha1.VisionPolicy {
		p := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "policy"}}
		p.Spec.NamespaceSelector = selector
		return p
	}
	everywhere := policy("vision-system", &metav1.LabelSelector{})
	production := policy("vision-system", &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "production"}})
	broken := policy("vision-system", &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "no label"}})
	invalid := policy("vision-system", &metav1.LabelSelector{})
	invalid.Spec.AllowedModels = []string{}
	notAccepted := policy("team", nil)
	notAccepted.Spec.AllowedModels = []string{}
	elsewhere := policy("team", &metav1.LabelSelector{})

	tests := map[string]struct {
		namespace string
		labels    map[string]string
		policy    v1alpha1.VisionPolicy
		want      bool
	}{
		"by a policy of its own":                           {"team", nil, policy("team", nil), true},
		"by one that is not accepted, whose pods are told": {"team", nil, notAccepted, true},
		"not by another namespace's policy":                {"team", nil, policy("other", nil), false},
		"not by the operator's own policy":                 {"team", nil, policy("vision-system", nil), false},
		"by a baseline for all":                            {"team", nil, everywhere, true},
		"by a baseline that matches":                       {"team", map[string]string{"stage": "production"}, production, true},
		"not by a baseline that does not match":            {"team", map[string]string{"stage": "test"}, production, false},
		"not by a baseline that does not parse":            {"team", map[string]string{"stage": "no label"}, broken, false},
		"not by a baseline that is not accepted":           {"team", nil, invalid, false},
		"not by what calls itself a baseline elsewhere":    {"team", nil, elsewhere, false},
		"not the operator's own by a baseline":             {"vision-system", nil, everywhere, false},
		"the operator's own by a policy":                   {"vision-system", nil, policy("vision-system", nil), true},
		"not kube-system by a baseline":                    {"kube-system", nil, everywhere, false},
		"not kube-public by a baseline":                    {"kube-public", nil, everywhere, false},
		"not kube-node-lease by a baseline":                {"kube-node-lease", nil, everywhere, false},
		"kube-system by a policy of its own":               {"kube-system", nil, policy("kube-system", nil), true},
		"default by a baseline":                            {"default", nil, everywhere, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := Input{Namespace: test.namespace, NamespaceLabels: test.labels, OperatorNamespace: "vision-system",
				Policies: []v1alpha1.VisionPolicy{test.policy}}
			if got := Served(in); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if profiles := len(Compile(in).Document.Profiles); profiles > 0 && !test.want {
				t.Errorf("a namespace that is not served has %d profiles", profiles)
			}
		})
	}
}
