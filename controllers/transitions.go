// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// The actions of events, by the condition that they are about. Events of one
// action and reason are counted as one. Ready has none: it repeats the others.
var (
	policyActions = map[string]string{
		v1alpha1.ConditionAccepted:     "Validating",
		v1alpha1.ConditionResolvedRefs: "ResolvingReferences",
		v1alpha1.ConditionProgrammed:   "Publishing",
	}
	providerActions = map[string]string{
		v1alpha1.ConditionAccepted:            "Validating",
		v1alpha1.ConditionCredentialsResolved: "ReadingCredentials",
		v1alpha1.ConditionReachable:           "Probing",
	}
)

// announce tells the transitions of an object's conditions as Events, those that
// have an action.
func announce(to events.EventRecorder, object runtime.Object, actions map[string]string, old, conditions []metav1.Condition) {
	for _, c := range transitions(old, conditions) {
		action, told := actions[c.Type]
		if !told {
			continue
		}
		kind := corev1.EventTypeWarning
		if c.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeNormal
		}
		to.Eventf(object, nil, kind, c.Reason, action, "%s", note(c.Message))
	}
}

// maxNote is how many bytes of a note the API server takes; it refuses an Event with more.
const maxNote = 1024

// note is a condition's message as an Event's note: its beginning where it is long.
func note(message string) string {
	const more = "…"
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len(more)], "") + more
}

// transitions are the conditions that turned False, and those that were False
// and turned True: that all is well at first is no news.
func transitions(old, conditions []metav1.Condition) []metav1.Condition {
	var turned []metav1.Condition
	for _, c := range conditions {
		was := metav1.ConditionUnknown
		if before := meta.FindStatusCondition(old, c.Type); before != nil {
			was = before.Status
		}
		switch {
		case c.Status == metav1.ConditionFalse && was != metav1.ConditionFalse,
			c.Status == metav1.ConditionTrue && was == metav1.ConditionFalse:
			turned = append(turned, c)
		}
	}
	return turned
}
