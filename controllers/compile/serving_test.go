// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestServing(t *testing.T) {
	everyone := servingPolicy("everyone", 1, nil)
	alsoEveryone := servingPolicy("also-everyone", 5, &metav1.LabelSelector{})
	agents := servingPolicy("agents", 9, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}})
	youngerAgents := servingPolicy("a-younger", 10, agents.Spec.PodSelector)
	sameAge := servingPolicy("b-same-age", 9, agents.Spec.PodSelector)
	others := servingPolicy("others", 1, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}})
	broken := servingPolicy("broken", 1, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}})
	baseline := servingPolicy("baseline", 1, nil)
	baseline.Spec.NamespaceSelector = &metav1.LabelSelector{}
	teamBaseline := servingPolicy("team-baseline", 9, nil)
	teamBaseline.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	agentBaseline := servingPolicy("agent-baseline", 9, agents.Spec.PodSelector)
	agentBaseline.Spec.NamespaceSelector = &metav1.LabelSelector{}
	otherBaseline := servingPolicy("other-baseline", 1, others.Spec.PodSelector)
	otherBaseline.Spec.NamespaceSelector = teamBaseline.Spec.NamespaceSelector

	tests := map[string]struct {
		policies []v1alpha1.VisionPolicy
		pinned   string
		want     string
		reason   string
	}{
		"no policy at all":                                        {nil, "", "", ServingNone},
		"no policy that selects the pod":                          {[]v1alpha1.VisionPolicy{others, broken}, "", "", ServingNone},
		"a baseline serves where no policy selects the pod":       {[]v1alpha1.VisionPolicy{baseline, others}, "", "baseline/baseline", ServingBaseline},
		"any policy that selects the pod beats a baseline":        {[]v1alpha1.VisionPolicy{alsoEveryone, teamBaseline, agentBaseline}, "", "policy/also-everyone", ServingSelected},
		"a namespaceSelector that says something comes first":     {[]v1alpha1.VisionPolicy{baseline, agentBaseline, teamBaseline}, "", "baseline/team-baseline", ServingBaseline},
		"then a podSelector that says something":                  {[]v1alpha1.VisionPolicy{baseline, agentBaseline}, "", "baseline/agent-baseline", ServingBaseline},
		"a baseline for other pods serves none":                   {[]v1alpha1.VisionPolicy{otherBaseline}, "", "", ServingNone},
		"a pin never falls to a baseline":                         {[]v1alpha1.VisionPolicy{others, baseline}, "others", "", ServingNotSelecting},
		"an absent selector selects every pod":                    {[]v1alpha1.VisionPolicy{everyone, others}, "", "policy/everyone", ServingSelected},
		"a selector that says something beats an older empty one": {[]v1alpha1.VisionPolicy{everyone, alsoEveryone, agents}, "", "policy/agents", ServingSelected},
		"of two that say something the older one":                 {[]v1alpha1.VisionPolicy{agents, youngerAgents}, "", "policy/agents", ServingSelected},
		"of two empty ones the older one":                         {[]v1alpha1.VisionPolicy{everyone, alsoEveryone}, "", "policy/everyone", ServingSelected},
		"of two of one age the first by name":                     {[]v1alpha1.VisionPolicy{agents, sameAge}, "", "policy/agents", ServingSelected},
		"a pin beats everything":                                  {[]v1alpha1.VisionPolicy{everyone, agents, youngerAgents}, "everyone", "policy/everyone", ServingPinned},
		"a pin must select the pod":                               {[]v1alpha1.VisionPolicy{everyone, others}, "others", "", ServingNotSelecting},
		"a pin to a policy that cannot be read":                   {[]v1alpha1.VisionPolicy{everyone, broken}, "broken", "", ServingNotSelecting},
		"a pin must exist, and nothing takes its place":           {[]v1alpha1.VisionPolicy{everyone}, "gone", "", ServingNotFound},
		"a baseline cannot be pinned":                             {[]v1alpha1.VisionPolicy{everyone, baseline}, "baseline", "", ServingNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got, verdict := Serving(test.policies, map[string]string{"app": "agent"}, test.pinned)
				if got != test.want || verdict.Reason != test.reason || verdict.OK != (test.want != "") || verdict.Message == "" {
					t.Errorf("got %q with %+v, want %q with reason %s", got, verdict, test.want, test.reason)
				}
				slices.Reverse(test.policies)
			}
		})
	}
}

func servingPolicy(name string, created int64, selector *metav1.LabelSelector) v1alpha1.VisionPolicy {
	p := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, CreationTimestamp: metav1.Unix(created, 0)}}
	p.Spec.PodSelector = selector
	return p
}
