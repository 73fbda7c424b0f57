// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// verdictCondition is a verdict as a condition.
func verdictCondition(kind string, v compile.Verdict) metav1.Condition {
	status := metav1.ConditionFalse
	if v.OK {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: v.Reason, Message: v.Message}
}

// unknown is the condition that could not be judged.
func unknown(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// ready sums up conditions: it is the first that is not True, or True with the message given.
func ready(message string, conditions ...metav1.Condition) metav1.Condition {
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			return metav1.Condition{Type: v1alpha1.ConditionReady, Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: message}
}

// stamp makes conditions of one generation ready to be written: sorted by type,
// and with the time of the last change of their status, which is now unless the
// old condition had the same.
func stamp(old []metav1.Condition, generation int64, now metav1.Time, conditions ...metav1.Condition) []metav1.Condition {
	slices.SortFunc(conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	for i := range conditions {
		c := &conditions[i]
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		if before := meta.FindStatusCondition(old, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
	return conditions
}
