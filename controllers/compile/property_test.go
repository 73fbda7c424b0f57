// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
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

// But for what a baseline restricts: see TestAMistakeInABaselineSetsFreeNothingThatItBounded.
func TestAnObjectThatIsNotAcceptedIsAsGoodAsAbsent(t *testing.T) {
	left := 0
	for _, name := range goldenCases(t) {
		in := readCase(t, name)
		out := Compile(in)
		want := mustMarshal(t, out)
		objects := len(in.Policies) + len(in.Providers)
		in.Policies = slices.DeleteFunc(in.Policies, func(p v1alpha1.VisionPolicy) bool {
			bounds := isBaseline(&p) && restraint(in.OperatorNamespace, &p) != nil
			return !bounds && !acceptPolicy(in.OperatorNamespace, &p).OK
		})
		in.Providers = slices.DeleteFunc(in.Providers, func(p v1alpha1.VisionProvider) bool {
			return !out.Providers[p.Namespace+"/"+p.Name].Accepted.OK
		})
		without := Compile(in)
		left += objects - len(in.Policies) - len(in.Providers)
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
			clear(out.Document.Profiles[i].Injection.Tools)
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
		checkVerdicts(t, in, out)
		if got := Compile(shuffle(in, seed)); !bytes.Equal(jsonOf(t, got), jsonOf(t, out)) {
			t.Error("the order of the objects changes the output")
		}
	})
}

// checkVerdicts holds an output against what there is of every object and profile.
func checkVerdicts(t *testing.T, in Input, out Output) {
	t.Helper()
	own := 0
	for _, p := range in.Policies {
		if p.Namespace == in.Namespace {
			own++
		}
	}
	if len(out.Policies) != own {
		t.Errorf("got %d verdicts on %d policies", len(out.Policies), own)
	}
	for _, p := range in.Providers {
		if _, judged := out.Providers[p.Namespace+"/"+p.Name]; p.Namespace == in.Namespace && !judged {
			t.Errorf("provider %s has no verdict", p.Name)
		}
	}
	profiles := 0
	for _, v := range slices.Concat(slices.Collect(maps.Values(out.Policies)), slices.Collect(maps.Values(out.Baselines))) {
		if v.Accepted.Reason == "" || v.ResolvedRefs.Reason == "" {
			t.Errorf("a verdict has no reason: %+v", v)
		}
		if len(v.Candidates) > maxCandidates || len(v.Accepted.Message) > maxMessage+64 || len(v.ResolvedRefs.Message) > maxMessage+64 {
			t.Errorf("a verdict is not bounded: %+v", v)
		}
		if v.Profile != "" {
			profiles++
			checkOrigins(t, out, v.Profile)
		}
		if (v.DefaultRoute == "") != (v.DefaultProvider == "") {
			t.Errorf("route %q is of provider %q", v.DefaultRoute, v.DefaultProvider)
		}
	}
	if profiles != len(out.Document.Profiles) || profiles != len(out.Pods) || profiles != len(out.Origins) {
		t.Errorf("%d verdicts name a profile; the document has %d, the pods %d, the origins %d",
			profiles, len(out.Document.Profiles), len(out.Pods), len(out.Origins))
	}
	if profiles > 0 && !Served(in) {
		t.Error("a namespace that is not served has a profile")
	}
}

// checkOrigins wants each field of an effective policy explained, in the order
// of the API, and nothing else.
func checkOrigins(t *testing.T, out Output, profile string) {
	t.Helper()
	var explained []string
	for _, o := range out.Origins[profile] {
		explained = append(explained, o.Field)
		if o.From == "" {
			t.Errorf("%s: %s is from nowhere", profile, o.Field)
		}
	}
	if diff := cmp.Diff(effectiveFields("spec", reflect.TypeFor[v1alpha1.VisionPolicySpec]()), slices.Compact(explained)); diff != "" {
		t.Errorf("%s: the fields explained are not those of the API (-want +got):\n%s", profile, diff)
	}
}

// effectiveFields are the fields of an effective policy: those of the API, but
// for selectors, which say whom it serves, and what this build does not obey.
func effectiveFields(at string, kind reflect.Type) []string {
	switch at {
	case "spec.podSelector", "spec.namespaceSelector", "spec.quotas":
		return nil
	}
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct || kind.PkgPath() != reflect.TypeFor[v1alpha1.VisionPolicy]().PkgPath() {
		return []string{at}
	}
	var fields []string
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		fields = append(fields, effectiveFields(at+"."+name, kind.Field(i).Type)...)
	}
	return fields
}

// randomInput mixes objects that are random all over with good ones that have
// a few random fields, so that random values also get past the first check.
func randomInput(seed int64) Input {
	fill := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12)
	r := rand.New(rand.NewSource(seed))
	in := Input{Namespace: "team", OperatorNamespace: []string{"team", "vision-system"}[r.Intn(2)], NamespaceLabels: map[string]string{"stage": "test"}}
	namespaces := []string{"team", "team", "vision-system", "models"}
	for i := range 8 {
		var provider v1alpha1.VisionProvider
		fill.Fill(&provider.Spec)
		if i%2 == 0 {
			good := benchProvider(i).Spec
			good.Models = append(good.Models, provider.Spec.Models...)
			good.Credentials = []v1alpha1.Credentials{provider.Spec.Credentials, good.Credentials, {None: &v1alpha1.NoCredentials{}}}[r.Intn(3)]
			good.AllowedNamespaces = []*v1alpha1.AllowedNamespaces{provider.Spec.AllowedNamespaces, {From: new(v1alpha1.NamespacesFromAll)}}[r.Intn(2)]
			provider.Spec = good
		}
		provider.ObjectMeta = metav1.ObjectMeta{Namespace: namespaces[r.Intn(4)], Name: fmt.Sprintf("p-%d", i)}
		in.Providers = append(in.Providers, provider)

		var policy v1alpha1.VisionPolicy
		fill.Fill(&policy.Spec)
		policy.ObjectMeta = metav1.ObjectMeta{Namespace: []string{"team", "vision-system"}[r.Intn(2)], Name: fmt.Sprintf("q-%d", i),
			CreationTimestamp: metav1.Unix(int64(r.Intn(3)), 0)}
		if i%2 == 0 {
			policy.Spec.PodSelector, policy.Spec.NamespaceSelector, policy.Spec.Limits, policy.Spec.DefaultModel = nil, nil, nil, nil
			policy.Spec.FallbackModels, policy.Spec.PerCallModel, policy.Spec.Cache = nil, nil, nil
			policy.Spec.Providers = []v1alpha1.ProviderReference{{Name: fmt.Sprintf("p-%d", r.Intn(9)), Namespace: namespaces[r.Intn(4)]}, {Name: "p-9"}}
		}
		if i%4 >= 2 {
			policy.Spec = randomSpec(r)
		}
		if policy.Namespace == "vision-system" && r.Intn(3) > 0 {
			policy.Spec.NamespaceSelector = &metav1.LabelSelector{}
		}
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
