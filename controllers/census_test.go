// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

func TestWhatABaselineTellsOfTheNamespacesThatItServes(t *testing.T) {
	b := &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "u", Generation: 2}}
	ok := compile.Verdict{OK: true, Reason: v1alpha1.ReasonResolved}
	carried := compile.Verdict{OK: true, Reason: v1alpha1.ReasonProgrammed}
	none := compile.Verdict{Reason: v1alpha1.ReasonNoProviders, Message: "there is none"}
	denied := compile.Verdict{Reason: v1alpha1.ReasonNoUsableRoute, Message: "nothing is left"}
	large := compile.Verdict{Reason: v1alpha1.ReasonRouterTooLarge, Message: "too large"}
	home := compile.PolicyVerdict{Accepted: ok, ResolvedRefs: ok, Baseline: true}
	away := home
	away.ResolvedRefs = compile.Verdict{Reason: v1alpha1.ReasonProviderNotFound, Message: "at home"}
	quotas := home
	quotas.Unprogrammed = []string{"spec.quotas"}
	at := func(refs, programmed compile.Verdict, route string) standing {
		return standing{of: editionOf(b), refs: refs, programmed: programmed, route: route}
	}
	fine := at(ok, carried, "a@b/c")
	older := fine
	older.of.generation = 1

	tests := map[string]struct {
		verdict          compile.PolicyVerdict
		in               []standing
		unheard          int // namespaces without a standing
		refs, programmed string
		route            string
	}{
		"none": {home, nil, 0,
			"True Resolved: no namespace matches spec.namespaceSelector",
			"True Programmed: no namespace matches, so there is no router to carry it", ""},
		"all well": {home, []standing{fine, fine}, 0,
			"True Resolved: what it refers to is resolved in 2 namespaces",
			"True Programmed: the routers of 2 namespaces carry this generation", "a@b/c"},
		"well, and not all is obeyed": {quotas, []standing{fine}, 0,
			"True Resolved: what it refers to is resolved in 1 namespace",
			"True PartiallyProgrammed: the routers of 1 namespace carry this generation; this build does not obey spec.quotas", "a@b/c"},
		"different routes": {home, []standing{fine, at(ok, carried, "x@y/z")}, 0,
			"True Resolved: what it refers to is resolved in 2 namespaces",
			"True Programmed: the routers of 2 namespaces carry this generation", ""},
		"a broken reference at home": {away, []standing{fine}, 0,
			"False ProviderNotFound: at home",
			"True Programmed: the routers of 1 namespace carry this generation", "a@b/c"},
		"one namespace without providers": {home, []standing{fine, at(none, carried, "")}, 0,
			"True Resolved: it holds wherever it matches; pods that only it serves cannot be served in 1 of 2 namespaces (team-1): in team-1, there is none",
			"True Programmed: the routers of 2 namespaces carry this generation", ""},
		"providers nowhere, for it is only laid over policies": {home, []standing{at(none, carried, "")}, 0,
			"True Resolved: it holds wherever it matches; pods that only it serves cannot be served in 1 of 1 namespace (team-0): in team-0, there is none",
			"True Programmed: the routers of 1 namespace carry this generation", ""},
		"nothing left anywhere": {home, []standing{at(denied, carried, ""), at(denied, carried, "")}, 0,
			"False NoUsableRoute: it cannot serve in 2 of 2 namespaces (team-0, team-1): in team-0, nothing is left",
			"True Programmed: the routers of 2 namespaces carry this generation", ""},
		"too large in four of five": {home, []standing{fine, at(ok, large, "a@b/c"), at(ok, large, "a@b/c"), at(ok, large, "a@b/c"), at(ok, large, "a@b/c")}, 0,
			"True Resolved: what it refers to is resolved in 5 namespaces",
			"False RouterTooLarge: not carried in 4 of 5 namespaces (team-1, team-2, team-3, …): in team-1, too large", "a@b/c"},
		"one not heard of":             {home, []standing{fine}, 1, "True Resolved: ", "Unknown Pending: the routers of 2 namespaces are being published", "old"},
		"one of the generation before": {home, []standing{fine, older}, 0, "True Resolved: ", "Unknown Pending: the routers of 2 namespaces are being published", "old"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var names []string
			for i := range len(test.in) + test.unheard {
				names = append(names, fmt.Sprintf("team-%d", i))
			}
			c := countStandings(b, names, func(namespace string) (standing, bool) {
				var i int
				if _, err := fmt.Sscanf(namespace, "team-%d", &i); err != nil || i >= len(test.in) {
					return standing{}, false
				}
				return test.in[i], true
			})
			before := b.DeepCopy()
			before.Status.DefaultRoute = "old"
			status := policyStatus(before, findings{verdict: test.verdict, census: &c}, metav1.Now())
			for kind, want := range map[string]string{v1alpha1.ConditionResolvedRefs: test.refs, v1alpha1.ConditionProgrammed: test.programmed} {
				got := meta.FindStatusCondition(status.Conditions, kind)
				if text := fmt.Sprintf("%s %s: %s", got.Status, got.Reason, got.Message); text != want {
					t.Errorf("%s:\n got %s\nwant %s", kind, text, want)
				}
			}
			if status.DefaultRoute != test.route || status.Router != nil {
				t.Errorf("got the default route %q and the router %+v", status.DefaultRoute, status.Router)
			}
		})
	}
}

func TestWhatABaselineToldOfAGenerationHoldsUntilAllIsHeard(t *testing.T) {
	old := []metav1.Condition{
		{Type: v1alpha1.ConditionResolvedRefs, Status: metav1.ConditionTrue, Reason: "R", Message: "refs", ObservedGeneration: 2},
		{Type: v1alpha1.ConditionProgrammed, Status: metav1.ConditionFalse, Reason: "P", Message: "programmed", ObservedGeneration: 2},
	}
	b := &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.VisionPolicyStatus{Conditions: old}}
	refs, programmed := baselineConditions(b, compile.PolicyVerdict{}, census{served: 3, unheard: 1})
	if refs != old[0] || programmed != old[1] {
		t.Errorf("got %+v and %+v", refs, programmed)
	}
	b.Generation = 3
	if _, programmed = baselineConditions(b, compile.PolicyVerdict{}, census{served: 3, unheard: 1}); programmed.Reason != v1alpha1.ReasonPending {
		t.Errorf("got %+v for a new generation", programmed)
	}
}

func TestALedgerTellsWhatChanged(t *testing.T) {
	l := newLedger()
	s := map[string]standing{"b": {route: "x", programmed: compile.Verdict{OK: true}}}
	if l.knows("team") || !l.record("team", s) || l.record("team", map[string]standing{"b": s["b"]}) || !l.knows("team") {
		t.Error("a first record is no change, or an equal one is")
	}
	if _, ok := l.standing("team", "other"); ok {
		t.Error("a baseline that never served has a standing")
	}
	if !l.record("team", nil) || l.record("team", nil) || len(l.in) != 0 {
		t.Error("a namespace that no baseline serves any more is not forgotten")
	}
}
