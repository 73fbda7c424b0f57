// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestConditionsAreSortedAndKeepTheTimeOfTheirStatus(t *testing.T) {
	before, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	old := []metav1.Condition{
		{Type: "B", Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: before},
		{Type: "C", Status: metav1.ConditionTrue, Reason: "Same", LastTransitionTime: before},
	}
	got := stamp(old, 7, now,
		metav1.Condition{Type: "C", Status: metav1.ConditionFalse, Reason: "Same"},
		metav1.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "New"},
		metav1.Condition{Type: "B", Status: metav1.ConditionTrue, Reason: "New"})
	want := []metav1.Condition{
		{Type: "A", Status: metav1.ConditionTrue, Reason: "New", ObservedGeneration: 7, LastTransitionTime: now},
		{Type: "B", Status: metav1.ConditionTrue, Reason: "New", ObservedGeneration: 7, LastTransitionTime: before},
		{Type: "C", Status: metav1.ConditionFalse, Reason: "Same", ObservedGeneration: 7, LastTransitionTime: now},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadyIsTheFirstConditionThatIsNotTrue(t *testing.T) {
	yes := metav1.Condition{Type: "X", Status: metav1.ConditionTrue, Reason: "Fine"}
	no := metav1.Condition{Type: "Y", Status: metav1.ConditionFalse, Reason: "Broken", Message: "why"}
	open := unknown("Z", "NotAsked", "who knows")
	for name, test := range map[string]struct {
		given []metav1.Condition
		want  metav1.Condition
	}{
		"all are true":           {[]metav1.Condition{yes, yes}, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "well"}},
		"one is false":           {[]metav1.Condition{yes, no, open}, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Broken", Message: "why"}},
		"one is not known first": {[]metav1.Condition{yes, open, no}, metav1.Condition{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "NotAsked", Message: "who knows"}},
	} {
		if diff := cmp.Diff(test.want, ready("well", test.given...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProgrammedAndTheRouterOfAPolicy(t *testing.T) {
	old := &v1alpha1.RouterStatus{ConfigMap: router.ConfigMapName, Digest: "sha256:old"}
	live := &v1alpha1.RouterStatus{ConfigMap: router.ConfigMapName, Digest: "sha256:live"}
	accepted := compile.PolicyVerdict{Accepted: compile.Verdict{OK: true, Reason: v1alpha1.ReasonAccepted}, Profile: "policy/p"}
	quotas, refused := accepted, accepted
	quotas.Unprogrammed = []string{"spec.quotas", "spec.injection"}
	refused.Profile, refused.Accepted = "", compile.Verdict{Reason: v1alpha1.ReasonInvalid}
	done := publication{verdict: compile.Verdict{OK: true, Reason: v1alpha1.ReasonProgrammed, Message: "done"}, digest: live.Digest, profiles: map[string]bool{"policy/p": true}}
	large := publication{verdict: compile.Verdict{Reason: v1alpha1.ReasonRouterTooLarge}, digest: live.Digest, profiles: done.profiles}
	largeWithout := publication{verdict: large.verdict, digest: live.Digest}
	conflict := publication{verdict: compile.Verdict{Reason: v1alpha1.ReasonConflict}}

	tests := map[string]struct {
		verdict   compile.PolicyVerdict
		published publication
		status    metav1.ConditionStatus
		reason    string
		says      string
		router    *v1alpha1.RouterStatus
	}{
		"published":                                {accepted, done, metav1.ConditionTrue, v1alpha1.ReasonProgrammed, "done", live},
		"published without two fields":             {quotas, done, metav1.ConditionTrue, v1alpha1.ReasonPartiallyProgrammed, "spec.quotas, spec.injection", live},
		"not accepted":                             {refused, done, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted, "not accepted", nil},
		"not written yet":                          {accepted, pending, metav1.ConditionFalse, v1alpha1.ReasonPending, "tried again", old},
		"too large, with it in the previous one":   {accepted, large, metav1.ConditionFalse, v1alpha1.ReasonRouterTooLarge, "", live},
		"too large, and it was never in any":       {accepted, largeWithout, metav1.ConditionFalse, v1alpha1.ReasonRouterTooLarge, "", nil},
		"another's ConfigMap stands in its place":  {accepted, conflict, metav1.ConditionFalse, v1alpha1.ReasonConflict, "", nil},
		"not all fields, and not published either": {quotas, conflict, metav1.ConditionFalse, v1alpha1.ReasonConflict, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.VisionPolicy{Status: v1alpha1.VisionPolicyStatus{Router: old, Pods: &v1alpha1.PodCounts{Matched: 3}}}
			got := policyStatus(p, findings{verdict: test.verdict, published: test.published}, metav1.Now())
			c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionProgrammed)
			if c.Status != test.status || c.Reason != test.reason || !strings.Contains(c.Message, test.says) {
				t.Errorf("got %+v", c)
			}
			if diff := cmp.Diff(test.router, got.Router); diff != "" {
				t.Errorf("router (-want +got):\n%s", diff)
			}
			if got.Pods == nil || got.Pods.Matched != 3 {
				t.Error("the count of pods was lost")
			}
		})
	}
}

func TestReadySaysWhenAnotherPolicyServesThePods(t *testing.T) {
	fine := compile.Verdict{OK: true, Reason: "Fine"}
	v := compile.PolicyVerdict{Accepted: fine, ResolvedRefs: fine, Profile: "policy/p", Unprogrammed: []string{"spec.quotas"},
		Overridden: compile.Verdict{OK: true, Reason: v1alpha1.ReasonEqualSelector, Message: "another one comes first"}}
	status := policyStatus(&v1alpha1.VisionPolicy{}, findings{verdict: v, published: publication{verdict: fine}}, metav1.Now())
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "another one comes first") || !strings.Contains(c.Message, "spec.quotas") || strings.Contains(c.Message, "in force") {
		t.Errorf("got %+v", c)
	}
}

func TestWhoWroteAConfigMap(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	labelled := map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	const all, label = `{"f:data":{"f:router.json":{}}}`, `{"f:metadata":{"f:labels":{}}}`
	tests := map[string]struct {
		labels       map[string]string
		fields       []metav1.ManagedFieldsEntry
		ours, intact bool
	}{
		"nobody that we know":         {nil, nil, false, false},
		"another, with our label":     {labelled, []metav1.ManagedFieldsEntry{entry("kubectl", "Update", all)}, true, false},
		"we":                          {labelled, []metav1.ManagedFieldsEntry{entry("vision-operator", "Apply", all)}, true, true},
		"we, and the label was taken": {nil, []metav1.ManagedFieldsEntry{entry("vision-operator", "Apply", all)}, true, false},
		"another took the data":       {labelled, []metav1.ManagedFieldsEntry{entry("vision-operator", "Apply", label), entry("kubectl", "Update", all)}, true, false},
		"another of our name":         {nil, []metav1.ManagedFieldsEntry{entry("vision-operator", "Update", all)}, false, false},
		"fields that do not parse":    {labelled, []metav1.ManagedFieldsEntry{entry("vision-operator", "Apply", "{")}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: router.ConfigMapName, Labels: test.labels, ManagedFields: test.fields}}
			if isOurs(c) != test.ours || writtenByUs(c) != test.intact {
				t.Errorf("got ours %t and intact %t, want %t and %t", isOurs(c), writtenByUs(c), test.ours, test.intact)
			}
		})
	}
}
