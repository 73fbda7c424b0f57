// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// A reconcile may come before the write of the one before is back in the cache,
// find there what it wants, and write nothing. Then the write that comes back is
// what tells that it was wrong.
func TestOurOwnWritesWakeANamespaceWhenTheyComeBackAndAnnotationsDoNot(t *testing.T) {
	published := func(name, data string, annotations map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{router.Key: data}, ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: annotations, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: v1alpha1.ManagedBy, Operation: metav1.ManagedFieldsOperationApply,
				FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:data":{"f:%s":{}}}`, router.Key))}}}}
	}
	policy := func(digest string, annotations map[string]string) *v1alpha1.VisionPolicy {
		return &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "agents", Annotations: annotations},
			Status: v1alpha1.VisionPolicyStatus{Router: &v1alpha1.RouterStatus{Digest: digest}}}
	}
	touched := map[string]string{"somebody": "touched it"}
	name := router.ConfigMapName
	for what, test := range map[string]struct {
		old, new client.Object
		wakes    bool
	}{
		"a router that we wrote":            {published(name, "one", nil), published(name, "two", nil), true},
		"a router that others annotated":    {published(name, "one", nil), published(name, "one", touched), false},
		"a ConfigMap of another name":       {published("other", "one", nil), published("other", "two", nil), false},
		"a status that we wrote":            {policy("one", nil), policy("two", nil), true},
		"a policy that others annotated":    {policy("one", nil), policy("one", touched), false},
		"a router that is seen once more":   {published(name, "one", nil), published(name, "one", nil), false},
		"a router that others took from us": {published(name, "one", nil), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{router.Key: "one"}}, true},
	} {
		t.Run(what, func(t *testing.T) {
			news := publishedNews()
			if _, ok := test.old.(*v1alpha1.VisionPolicy); ok {
				news = statusNews()
			}
			if got := news.Update(event.UpdateEvent{ObjectOld: test.old, ObjectNew: test.new}); got != test.wakes {
				t.Errorf("wakes: %t, want %t", got, test.wakes)
			}
		})
	}
	if ours := published(name, "one", nil); !publishedNews().Create(event.CreateEvent{Object: ours}) || !publishedNews().Delete(event.DeleteEvent{Object: ours}) {
		t.Error("a router that comes or goes must wake its namespace")
	}
}

func TestPodsOfABaselineAreCountedAlsoWhileItIsNotAccepted(t *testing.T) {
	w := newWorld(t, quick)
	w.create(goodProvider("local"), goodPolicy("agents"))
	w.profiles("policy/agents")
	b := goodPolicy("broken-" + w.namespace)
	w.newPod("agent", "baseline/"+b.Name)
	b.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"vision": w.namespace}}
	b.Spec.Providers, b.Spec.DefaultModel = []v1alpha1.ProviderReference{{Name: "central"}}, new("unknown/vision")
	w.platform(b)
	w.eventually("waiting for the count of pods", func() error {
		if err := w.in(operatorNamespace).get(b, b.Name); err != nil {
			return err
		}
		if b.Status.Pods == nil || b.Status.Pods.Matched != 1 {
			return fmt.Errorf("got %+v, want 1 pod", b.Status.Pods)
		}
		return holds(b.Status.Conditions, b.Generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	})
}
