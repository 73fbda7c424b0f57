// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

func TestAMissingKeyOfTheDefaultModelIsALackAndAnotherIsAWord(t *testing.T) {
	for name, c := range map[string]struct {
		mode        v1alpha1.AdmissionMode
		missing     string
		injected    bool
		denied, why string
	}{
		"Enforce refuses without the default model's key":   {v1alpha1.AdmissionEnforce, "agents/openai", false, "SecretNotFound: provider agents/openai, of the default model: gone", ""},
		"Enforce lets another provider's key be missing":    {v1alpha1.AdmissionEnforce, "agents/other", true, "", "SecretNotFound: provider agents/other: gone"},
		"Warn injects without the default model's key":      {v1alpha1.AdmissionWarn, "agents/openai", true, "", "SecretNotFound: provider agents/openai, of the default model: gone"},
		"Off injects without the default model's key, mute": {v1alpha1.AdmissionOff, "agents/openai", true, "", ""},
		"keys that are good are not spoken of":              {v1alpha1.AdmissionEnforce, "", true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := withTwoProviders(t, c.mode)
			keys := Decide(in).Keys
			if len(keys) != 2 {
				t.Fatalf("the pod would mount %v, want two keys", keys)
			}
			in.MissingKeys = map[Key]Note{}
			for _, key := range keys {
				if key.Provider == c.missing {
					in.MissingKeys[key] = Note{Reason: v1alpha1.ReasonSecretNotFound, Message: "gone"}
				}
			}
			plan := Decide(in)
			var notes []string
			for _, n := range plan.Notes {
				notes = append(notes, n.String())
			}
			var denied []string
			for _, n := range plan.Deny {
				denied = append(denied, n.String())
			}
			if plan.Inject != c.injected || strings.Join(denied, "; ") != c.denied || strings.Join(notes, "; ") != c.why {
				t.Errorf("injected %v, denied %q, warned %q", plan.Inject, denied, notes)
			}
		})
	}
}

// provider has a model with eyes, and its key in a Secret of its own name.
func provider(namespace, name string) v1alpha1.VisionProvider {
	return v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://api.example/v1"}},
			Credentials: v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: name, Key: "token"}},
			Models:      []v1alpha1.Model{{Name: "eyes", ImageInput: new(true)}},
		},
	}
}

func withTwoProviders(t *testing.T, mode v1alpha1.AdmissionMode) Input {
	t.Helper()
	in := baseInput(t)
	var providers []v1alpha1.VisionProvider
	for _, name := range []string{"openai", "other"} {
		providers = append(providers, provider(in.Namespace, name))
	}
	policy := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: in.Namespace}}
	policy.Spec.DefaultModel = new("openai/eyes")
	policy.Spec.Admission = &v1alpha1.Admission{Mode: &mode}
	objects := compile.Input{Namespace: in.Namespace, OperatorNamespace: "vision-system", Providers: providers, Policies: []v1alpha1.VisionPolicy{policy}}
	in.Policies, in.Compiled = compile.Servers(objects), compile.Compile(objects)
	return in
}

func TestAPolicyThatIsNotAcceptedHasTheModeOfItsBaseline(t *testing.T) {
	baseline := func(name string, mode v1alpha1.AdmissionMode, labels map[string]string) v1alpha1.VisionPolicy {
		p := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "vision-system", Name: name}}
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
		if mode != "" {
			p.Spec.Admission = &v1alpha1.Admission{Mode: &mode}
		}
		return p
	}
	for name, c := range map[string]struct {
		own       v1alpha1.AdmissionMode
		baselines []v1alpha1.VisionPolicy
		want      v1alpha1.AdmissionMode
	}{
		"nobody says one: Warn":           {"", nil, v1alpha1.AdmissionWarn},
		"its own comes first":             {v1alpha1.AdmissionOff, []v1alpha1.VisionPolicy{baseline("a", v1alpha1.AdmissionEnforce, nil)}, v1alpha1.AdmissionOff},
		"else the baseline's":             {"", []v1alpha1.VisionPolicy{baseline("a", v1alpha1.AdmissionEnforce, nil)}, v1alpha1.AdmissionEnforce},
		"else the most specific's of two": {"", []v1alpha1.VisionPolicy{baseline("a", v1alpha1.AdmissionOff, nil), baseline("b", v1alpha1.AdmissionEnforce, map[string]string{"team": "x"})}, v1alpha1.AdmissionEnforce},
		"one that says none is passed":    {"", []v1alpha1.VisionPolicy{baseline("a", v1alpha1.AdmissionEnforce, nil), baseline("b", "", map[string]string{"team": "x"})}, v1alpha1.AdmissionEnforce},
	} {
		t.Run(name, func(t *testing.T) {
			in := readGolden(t, filepath.Join(goldenFolder, "policy-not-accepted"))
			in.NamespaceLabels = map[string]string{"team": "x"}
			if c.own != "" {
				in.Policies[0].Spec.Admission = &v1alpha1.Admission{Mode: &c.own}
			}
			objects := compile.Input{Namespace: in.Namespace, NamespaceLabels: in.NamespaceLabels, OperatorNamespace: "vision-system",
				Policies: append(in.Policies, c.baselines...)}
			in.Policies, in.Compiled = compile.Servers(objects), compile.Compile(objects)
			plan := Decide(in)
			if plan.Inject || plan.Mode != c.want || (len(plan.Deny) > 0) != (c.want == v1alpha1.AdmissionEnforce) {
				t.Errorf("got mode %s, denied %v, injected %v, want mode %s", plan.Mode, plan.Deny, plan.Inject, c.want)
			}
		})
	}
}

func TestEveryCheckIsAStepOfAPodThatIsInjected(t *testing.T) {
	var names []string
	for _, step := range Decide(baseInput(t)).Steps {
		names = append(names, step.Check)
		if step.Outcome != Passed {
			t.Errorf("%s: %s %v", step.Check, step.Outcome, step.Notes)
		}
	}
	if diff := cmp.Diff(CheckNames(), names); diff != "" {
		t.Errorf("the steps are not the checks (-want +got):\n%s", diff)
	}
}

// accepts is LimitRanger's judgement of one container, written down from the rules
// in Kubernetes' documentation of LimitRange.
func accepts(item *corev1.LimitRangeItem, r *corev1.ResourceRequirements) bool {
	for name, least := range item.Min {
		request, ok := r.Requests[name]
		limit, limited := r.Limits[name]
		if !ok || request.Cmp(least) < 0 || limited && limit.Cmp(least) < 0 {
			return false
		}
	}
	for name, most := range item.Max {
		limit, ok := r.Limits[name]
		request := r.Requests[name]
		if !ok || limit.Cmp(most) > 0 || request.Cmp(most) > 0 {
			return false
		}
	}
	for name, ratio := range item.MaxLimitRequestRatio {
		request, limit := r.Requests[name], r.Limits[name]
		if request.IsZero() || limit.IsZero() || limit.AsApproximateFloat64() > request.AsApproximateFloat64()*ratio.AsApproximateFloat64()*(1+1e-9) {
			return false
		}
	}
	return true
}

func TestWhatIsFittedIntoALimitRangePassesIt(t *testing.T) {
	amounts := map[corev1.ResourceName][]string{
		corev1.ResourceCPU: {"", "5m", "70m", "1", "3"}, corev1.ResourceMemory: {"", "16Mi", "100Mi", "1Gi"},
		corev1.ResourceEphemeralStorage: {"", "1Gi"},
	}
	seen := 0
	for name, values := range amounts {
		for _, low := range values {
			for _, high := range values {
				for _, ratio := range []string{"", "1", "1500m", "10"} {
					item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{}, Max: corev1.ResourceList{}, MaxLimitRequestRatio: corev1.ResourceList{}}
					for list, value := range map[*corev1.ResourceList]string{&item.Min: low, &item.Max: high, &item.MaxLimitRequestRatio: ratio} {
						if value != "" {
							(*list)[name] = resource.MustParse(value)
						}
					}
					most, least := item.Max[name], item.Min[name]
					if high != "" && low != "" && most.Cmp(least) < 0 || name == corev1.ResourceEphemeralStorage && ratio != "" && low == "" && high == "" {
						continue // nothing fits; or nothing is asked for that a ratio could bound
					}
					for _, guaranteed := range []bool{false, true} {
						d := &decision{Input: Input{LimitRanges: []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}}}
						d.begin(containerStep)
						want := DefaultResources()
						if guaranteed {
							equalise(&want)
						}
						d.fit(&want)
						seen++
						if !accepts(&item, &want) {
							t.Errorf("min %s, max %s, ratio %s of %s, guaranteed %v: got %v", low, high, ratio, name, guaranteed, want)
						}
						if guaranteed && !containerGuaranteed(&want) {
							t.Errorf("min %s, max %s, ratio %s of %s: no longer Guaranteed: %v", low, high, ratio, name, want)
						}
					}
				}
			}
		}
	}
	if seen < 200 {
		t.Errorf("only %d LimitRanges were tried", seen)
	}
}

func TestAContainerThatFitsIsNotSpokenOf(t *testing.T) {
	in := baseInput(t)
	in.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}}}}}
	before := baseInput(t)
	if plan := Decide(in); len(plan.Notes) != 0 || !slices.EqualFunc(plan.Steps, Decide(before).Steps, func(a, b Step) bool { return a.Outcome == b.Outcome }) {
		t.Errorf("got %v", plan.Notes)
	}
}
