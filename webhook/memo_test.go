// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// stored is a namespace with two policies and a provider, as an API server has them.
func stored() compile.Input {
	in := compile.Input{Namespace: "agents", NamespaceLabels: map[string]string{"team": "a"}, OperatorNamespace: operatorNamespace}
	for i := range 2 {
		p := policy(v1alpha1.AdmissionWarn)
		p.Name, p.Namespace, p.UID, p.ResourceVersion = fmt.Sprintf("policy-%d", i), "agents", types.UID(fmt.Sprint("p", i)), "1"
		in.Policies = append(in.Policies, *p)
	}
	p := provider()
	p.Namespace, p.UID, p.ResourceVersion = "agents", "v", "1"
	in.Providers = append(in.Providers, *p)
	return in
}

func TestAMemoAnswersOnlyForTheVerySameObjects(t *testing.T) {
	tests := map[string]struct {
		change func(*compile.Input)
		same   bool
	}{
		"nothing changed":               {func(*compile.Input) {}, true},
		"listed in another order":       {func(in *compile.Input) { slices.Reverse(in.Policies) }, true},
		"a policy was edited":           {func(in *compile.Input) { in.Policies[1].ResourceVersion = "2" }, false},
		"a policy was made anew":        {func(in *compile.Input) { in.Policies[1].UID = "q" }, false},
		"a policy is gone":              {func(in *compile.Input) { in.Policies = in.Policies[:1] }, false},
		"a policy came":                 {func(in *compile.Input) { in.Policies = append(in.Policies, another(in.Policies[0])) }, false},
		"a provider was edited":         {func(in *compile.Input) { in.Providers[0].ResourceVersion = "2" }, false},
		"a provider is gone":            {func(in *compile.Input) { in.Providers = nil }, false},
		"a label of the namespace":      {func(in *compile.Input) { in.NamespaceLabels = map[string]string{"team": "b"} }, false},
		"another namespace of baseline": {func(in *compile.Input) { in.OperatorNamespace = "elsewhere" }, false},
		"another namespace":             {func(in *compile.Input) { in.Namespace = "other" }, false},
		"an object without identity":    {func(in *compile.Input) { in.Policies[0].UID = "" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := &memo{}
			before := m.compile(stored())
			in := stored()
			test.change(&in)
			got := m.compile(in)
			if same := got.output.Document == before.output.Document; same != test.same {
				t.Errorf("what was compiled before was used: %v, want %v", same, test.same)
			}
			if want := compileNow(in); !reflect.DeepEqual(got.output, want.output) {
				t.Errorf("got %+v, want %+v", got.output, want.output)
			}
		})
	}
}

func another(p v1alpha1.VisionPolicy) v1alpha1.VisionPolicy {
	p.Name, p.UID = "another", "another"
	return p
}

func TestAMemoKnowsEveryFieldThatCompileReads(t *testing.T) {
	var names []string
	for f := range reflect.TypeFor[compile.Input]().Fields() {
		names = append(names, f.Name)
	}
	if want := []string{"Namespace", "NamespaceLabels", "OperatorNamespace", "Policies", "Providers"}; !slices.Equal(names, want) {
		t.Errorf("compile.Input has %v; identify in memo.go knows %v", names, want)
	}
}

func TestAMemoIsBounded(t *testing.T) {
	m := &memo{}
	for i := range 3 * mostObjects {
		in := compile.Input{Namespace: fmt.Sprint("team-", i%(2*mostObjects))}
		m.compile(in)
		m.compile(in)
		if m.objects > mostObjects || len(m.kept) != m.objects {
			t.Fatalf("after %d namespaces it keeps %d and counts %d", i+1, len(m.kept), m.objects)
		}
	}
	crowd := stored()
	crowd.Namespace = "crowd"
	for len(crowd.Policies) <= mostObjects {
		crowd.Policies = append(crowd.Policies, crowd.Policies[0])
	}
	of, _ := identify(crowd)
	if m.keep("crowd", remembered{of: of}); len(m.kept["crowd"].of.policies) != 0 {
		t.Error("it keeps a namespace beyond the bound")
	}
}
