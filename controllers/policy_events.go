// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// policyActions are the actions of a policy's events, by the condition that
// they are about. Events of one action and reason are counted as one.
var policyActions = map[string]string{
	v1alpha1.ConditionAccepted:     "Validating",
	v1alpha1.ConditionResolvedRefs: "ResolvingReferences",
	v1alpha1.ConditionProgrammed:   "Publishing",
}

// announcePolicy tells the transitions of a policy's conditions as Events.
func announcePolicy(to events.EventRecorder, p *v1alpha1.VisionPolicy, old, conditions []metav1.Condition) {
	for _, c := range transitions(old, conditions) {
		action, told := policyActions[c.Type]
		if !told { // Ready repeats the others
			continue
		}
		kind := corev1.EventTypeWarning
		if c.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeNormal
		}
		to.Eventf(p, nil, kind, c.Reason, action, "%s", note(c.Message))
	}
}
