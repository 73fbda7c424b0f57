// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestTheOrderOfObjectsChangesNothing(t *testing.T) {
	for _, name := range goldenCases(t) {
		in := readCase(t, name)
		want := Compile(in)
		wantBytes := mustMarshal(t, want)
		for seed := range int64(20) {
			shuffled := shuffle(in, seed)
			got := Compile(shuffled)
			if !bytes.Equal(mustMarshal(t, got), wantBytes) {
				t.Errorf("%s, seed %d: the document's bytes differ", name, seed)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, seed %d: the output differs (-want +got):\n%s", name, seed, diff)
			}
		}
	}
}

func TestAnObjectThatIsNotAcceptedIsAsGoodAsAbsent(t *testing.T) {
	left := 0
	for _, name := range goldenCases(t) {
		in := readCase(t, name)
		out := Compile(in)
		want := mustMarshal(t, out)
		in.Policies = slices.DeleteFunc(in.Policies, func(p v1alpha1.VisionPolicy) bool {
			return p.Namespace == in.Namespace && !out.Policies[p.Name].Accepted.OK
		})
		in.Providers = slices.DeleteFunc(in.Providers, func(p v1alpha1.VisionProvider) bool {
			return p.Namespace == in.Namespace && !out.Providers[p.Namespace+"/"+p.Name].Accepted.OK
		})
		without := Compile(in)
		left += len(out.Policies) + len(out.Providers) - len(without.Policies) - len(without.Providers)
		if got := mustMarshal(t, without); !bytes.Equal(got, want) {
			t.Errorf("%s: the document differs:\n%s", name, cmp.Diff(string(want), string(got)))
		}
	}
	if left < 10 {
		t.Errorf("only %d objects of all cases are not accepted; the test needs some", left)
	}
}

func TestCompileDoesNotChangeItsInput(t *testing.T) {
	for _, name := range goldenCases(t) {
		in, before := readCase(t, name), readCase(t, name)
		out := Compile(in)
		for i := range out.Document.Profiles { // nor lets its output reach into it
			for j := range out.Document.Profiles[i].Allow {
				clear(out.Document.Profiles[i].Allow[j].Globs)
			}
			clear(out.Document.Profiles[i].Limits.Image.MediaTypes)
		}
		for _, p := range out.Pods {
			clear(p.Workspaces)
			if p.Resources != nil {
				clear(p.Resources.Limits)
			}
		}
		if diff := cmp.Diff(before, in); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}

// FuzzCompile fills objects at random: whatever they hold, Compile ends, the
// document is valid and every object has its verdict.
func FuzzCompile(f *testing.F) {
	for seed := range int64(64) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		in := randomInput(seed)
		out := Compile(in)
		if _, err := router.Marshal(out.Document); err != nil && !router.IsTooLarge(err) {
			t.Errorf("the document is not valid: %v", err)
		}
		if len(out.Policies) != len(in.Policies) || len(out.Providers) != len(in.Providers) {
			t.Errorf("got %d verdicts on %d policies and %d on %d providers",
				len(out.Policies), len(in.Policies), len(out.Providers), len(in.Providers))
		}
		profiles := 0
		for name, v := range out.Policies {
			if v.Accepted.Reason == "" || v.ResolvedRefs.Reason == "" {
				t.Errorf("policy %s has a verdict without a reason: %+v", name, v)
			}
			if len(v.Candidates) > maxCandidates || len(v.Accepted.Message) > maxMessage+64 || len(v.ResolvedRefs.Message) > maxMessage+64 {
				t.Errorf("policy %s has an unbounded verdict", name)
			}
			if v.Profile != "" {
				profiles++
			}
		}
		if profiles != len(out.Document.Profiles) || profiles != len(out.Pods) {
			t.Errorf("%d verdicts name a profile; the document has %d and the pods %d", profiles, len(out.Document.Profiles), len(out.Pods))
		}
		if got := Compile(shuffle(in, seed)); !bytes.Equal(jsonOf(t, got.Document), jsonOf(t, out.Document)) {
			t.Error("the order of the objects changes the document")
		}
	})
}

// randomInput mixes objects that are random all over with good ones that have
// a few random fields, so that random values also get past the first check.
func randomInput(seed int64) Input {
	fill := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12)
	r := rand.New(rand.NewSource(seed))
	in := Input{Namespace: "team", OperatorNamespace: []string{"team", "vision-system"}[r.Intn(2)]}
	for i := range 6 {
		var provider v1alpha1.VisionProvider
		fill.Fill(&provider.Spec)
		if i%2 == 0 {
			good := benchProvider(i).Spec
			good.Models = append(good.Models, provider.Spec.Models...)
			good.Credentials = []v1alpha1.Credentials{provider.Spec.Credentials, good.Credentials}[r.Intn(2)]
			provider.Spec = good
		}
		provider.ObjectMeta = metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("p-%d", i)}
		in.Providers = append(in.Providers, provider)

		var policy v1alpha1.VisionPolicy
		fill.Fill(&policy.Spec)
		if i%2 == 0 {
			policy.Spec.PodSelector, policy.Spec.NamespaceSelector, policy.Spec.Limits, policy.Spec.DefaultModel = nil, nil, nil, nil
			policy.Spec.FallbackModels, policy.Spec.PerCallModel, policy.Spec.Cache = nil, nil, nil
			policy.Spec.Providers = []v1alpha1.ProviderReference{{Name: fmt.Sprintf("p-%d", r.Intn(8))}, {Name: "p-9"}}
		}
		policy.ObjectMeta = metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("q-%d", i)}
		in.Policies = append(in.Policies, policy)
	}
	return in
}

func shuffle(in Input, seed int64) Input {
	r := rand.New(rand.NewSource(seed))
	in.Policies, in.Providers = append([]v1alpha1.VisionPolicy(nil), in.Policies...), append([]v1alpha1.VisionProvider(nil), in.Providers...)
	r.Shuffle(len(in.Policies), func(i, j int) { in.Policies[i], in.Policies[j] = in.Policies[j], in.Policies[i] })
	r.Shuffle(len(in.Providers), func(i, j int) { in.Providers[i], in.Providers[j] = in.Providers[j], in.Providers[i] })
	return in
}
