// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

func TestADecisionThatAFresherLookMayChangeIsIncomplete(t *testing.T) {
	for name, want := range map[string]bool{
		"labelled-pod-with-emptydir":         false,
		"host-network-warns":                 false,
		"nobody-asked":                       false,
		"no-policy-warns":                    true,
		"pinned-policy-does-not-exist":       true,
		"policy-not-accepted":                true,
		"provider-missing-warns":             true,
		"provider-missing-denied-by-enforce": true,
	} {
		t.Run(name, func(t *testing.T) {
			if plan := Decide(readGolden(t, filepath.Join(goldenFolder, name))); plan.Incomplete != want {
				t.Errorf("incomplete is %v, want %v", plan.Incomplete, want)
			}
		})
	}
	t.Run("a baseline serves, and a policy may have come", func(t *testing.T) {
		in := baseInput(t)
		baseline := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "vision-system", Name: "platform"}}
		baseline.Spec.NamespaceSelector = &metav1.LabelSelector{}
		objects := compile.Input{Namespace: in.Namespace, OperatorNamespace: "vision-system", Policies: []v1alpha1.VisionPolicy{baseline},
			Providers: []v1alpha1.VisionProvider{provider(in.Namespace, "openai")}}
		in.Policies, in.Compiled = compile.Servers(objects), compile.Compile(objects)
		if plan := Decide(in); !plan.Inject || len(plan.Notes) != 0 || !plan.Incomplete {
			t.Errorf("injected %v, incomplete %v, told %v", plan.Inject, plan.Incomplete, plan.Notes)
		}
	})
}

func TestAnEnforcedNamespaceRefusesOnlyWhereNoPolicySpeaks(t *testing.T) {
	for name, c := range map[string]struct {
		golden string
		mode   v1alpha1.AdmissionMode
		denied bool
	}{
		"no policy":                            {"no-policy-warns", "", true},
		"a pinned policy that is not there":    {"pinned-policy-does-not-exist", "", true},
		"a pinned policy that does not select": {"pinned-policy-does-not-select", "", true},
		"a policy that is not accepted":        {"policy-not-accepted", "", false},
		"the same, and it says Off":            {"policy-not-accepted", v1alpha1.AdmissionOff, false},
		"the same, and it says Enforce":        {"policy-not-accepted", v1alpha1.AdmissionEnforce, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, enforced := range []bool{false, true} {
				in := readGolden(t, filepath.Join(goldenFolder, c.golden))
				in.NamespaceLabels = map[string]string{}
				if enforced {
					in.NamespaceLabels[v1alpha1.EnforceLabel] = "true"
				}
				if c.mode != "" {
					in.Policies[0].Spec.Admission = &v1alpha1.Admission{Mode: &c.mode}
				}
				plan := Decide(in)
				if want := c.denied && (enforced || c.mode != ""); (len(plan.Deny) > 0) != want {
					t.Errorf("in a namespace that is enforced (%v): denied %v, want %v", enforced, plan.Deny, want)
				}
			}
		})
	}
}
