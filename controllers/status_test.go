// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Whoever may write a status may lie in it, and a policy's says what its provider's does.
func TestAStatusThatOthersWroteIsPutRight(t *testing.T) {
	w := newWorld(t, Intervals{}) // nothing else looks again within the test
	w.create(goodProvider("open"), keyedProvider("keyed", "absent"), goodPolicy("agents"))
	for _, name := range []string{"open", "keyed"} {
		w.providerCondition(name, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved)

	lie := func(o client.Object, status *[]metav1.Condition) {
		t.Helper()
		before := o.DeepCopyObject().(client.Object)
		*status = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Lie",
			Message: "a lie", LastTransitionTime: metav1.Now(), ObservedGeneration: o.GetGeneration()}}
		if err := admin.Status().Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	open := w.providerCondition("open", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	lie(open, &open.Status.Conditions)
	w.providerCondition("open", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	keyed := w.providerCondition("keyed", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)
	lie(keyed, &keyed.Status.Conditions)
	w.providerCondition("keyed", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)

	agents := w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved)
	lie(agents, &agents.Status.Conditions)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved)
}
