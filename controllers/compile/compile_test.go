// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestTheDocumentOfNothingIsValid(t *testing.T) {
	got := string(mustMarshal(t, Compile(Input{Namespace: "team"})))
	want := "{\n \"version\": \"router/v1\",\n \"namespace\": \"team\",\n \"profiles\": [],\n \"providers\": []\n}\n"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestCandidatesAreBoundedAndTheDefaultIsFoundBehindThem(t *testing.T) {
	provider := benchProvider(0)
	provider.Spec.Models = nil
	for i := range 100 {
		provider.Spec.Models = append(provider.Spec.Models, v1alpha1.Model{Name: fmt.Sprintf("text-%03d", i), ImageInput: new(false)})
	}
	provider.Spec.Models = append(provider.Spec.Models, v1alpha1.Model{Name: "last", ImageInput: new(true)})
	policy := benchPolicy(0)
	policy.Spec = v1alpha1.VisionPolicySpec{}

	verdict := Compile(Input{Namespace: benchNamespace, Providers: []v1alpha1.VisionProvider{provider},
		Policies: []v1alpha1.VisionPolicy{policy}}).Policies[policy.Name]

	if len(verdict.Candidates) != 64 {
		t.Errorf("got %d candidates, want 64", len(verdict.Candidates))
	}
	if want := "provider-000@main/last"; verdict.DefaultRoute != want {
		t.Errorf("got the default route %q, want %q", verdict.DefaultRoute, want)
	}
}

func TestAMessageNamesTheFirstProblemsAndCountsTheRest(t *testing.T) {
	policy := benchPolicy(0)
	policy.Spec = v1alpha1.VisionPolicySpec{}
	for i := range 12 {
		policy.Spec.Providers = append(policy.Spec.Providers, v1alpha1.ProviderReference{Name: fmt.Sprintf("gone-%02d", i)})
	}
	refs := Compile(Input{Namespace: benchNamespace, Policies: []v1alpha1.VisionPolicy{policy}}).Policies[policy.Name].ResolvedRefs
	if !strings.Contains(refs.Message, `"gone-07"`) || strings.Contains(refs.Message, `"gone-08"`) {
		t.Errorf("want the first 8 problems, got %q", refs.Message)
	}
	if !strings.HasSuffix(refs.Message, "; and 4 more") {
		t.Errorf("want the others counted, got %q", refs.Message)
	}
}

func TestProblemsOfOneFieldAreAlwaysToldInOneOrder(t *testing.T) {
	policy := benchPolicy(0)
	policy.Spec.PodSelector.MatchLabels = map[string]string{"a": "1 1", "b": "2 2", "c": "3 3", "d": "4 4"}
	first := checkPolicy(&policy)
	if len(first) != 4 {
		t.Fatalf("got %d problems, want 4: %q", len(first), first)
	}
	for range 50 {
		if again := checkPolicy(&policy); !slices.Equal(first, again) {
			t.Fatalf("got %q, then %q", first, again)
		}
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	got := joinProblems([]string{strings.Repeat("é", maxMessage)})
	if len(got) > maxMessage+len("…") || strings.ContainsRune(got, '�') || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %d bytes ending in %q", len(got), got[len(got)-8:])
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{100, 1000} {
		in := Input{Namespace: benchNamespace, OperatorNamespace: "vision-system"}
		for i := range 10 {
			in.Providers = append(in.Providers, benchProvider(i))
		}
		for i := range n {
			in.Policies = append(in.Policies, benchPolicy(i))
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if out := Compile(in); len(out.Document.Profiles) != n {
					b.Fatalf("got %d profiles, want %d", len(out.Document.Profiles), n)
				}
			}
		})
	}
}

const benchNamespace = "team"

// benchProvider is a good provider with two endpoints and four models.
func benchProvider(i int) v1alpha1.VisionProvider {
	p := v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Namespace: benchNamespace, Name: fmt.Sprintf("provider-%03d", i)}}
	p.Spec = v1alpha1.VisionProviderSpec{
		Transport:   v1alpha1.TransportOpenAIChatCompletions,
		Credentials: v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "key", Key: "token"}},
		Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://models.example.com/v1"}, {Name: "eu", URL: "https://eu.models.example.com/v1"}},
	}
	for j := range 4 {
		p.Spec.Models = append(p.Spec.Models, v1alpha1.Model{Name: fmt.Sprintf("vision-%d", j), ImageInput: new(j%2 == 0)})
	}
	return p
}

// benchPolicy is a good policy of three providers, a selector, a default and an allow-list.
func benchPolicy(i int) v1alpha1.VisionPolicy {
	first := i % 8
	p := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: benchNamespace, Name: fmt.Sprintf("policy-%04d", i)}}
	p.Spec = v1alpha1.VisionPolicySpec{
		PodSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("agent-%04d", i)}},
		DefaultModel:  new(fmt.Sprintf("provider-%03d/vision-0", first)),
		AllowedModels: []string{"provider-*@*/vision-*"},
	}
	for j := range 3 {
		p.Spec.Providers = append(p.Spec.Providers, v1alpha1.ProviderReference{Name: fmt.Sprintf("provider-%03d", first+j)})
	}
	return p
}

func mustMarshal(t *testing.T, out Output) []byte {
	t.Helper()
	data, err := router.Marshal(out.Document)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
