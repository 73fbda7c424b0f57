// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Reasons of the verdict that Serving gives.
const (
	// ServingPinned: the pod's annotation names the policy.
	ServingPinned = "PolicyPinned"
	// ServingSelected: the policy's podSelector selects the pod.
	ServingSelected = "PolicySelected"
	// ServingNotFound: the pod's annotation names a policy that does not exist.
	ServingNotFound = "PolicyNotFound"
	// ServingNotSelecting: the pod's annotation names a policy that does not select the pod.
	ServingNotSelecting = "PolicyDoesNotSelectPod"
	// ServingBaseline: no policy of the namespace selects the pod, and a baseline does.
	ServingBaseline = "BaselineSelected"
	// ServingNone: neither a policy of the namespace nor a baseline selects the pod.
	ServingNone = "NoPolicy"
)

// Serving names the profile that serves a pod, or is empty with the reason why
// none does. The policies are those that Servers gives. pinned is the value of
// v1alpha1.PolicyAnnotation, empty when the pod has none.
//
// A pinned policy must be of the pod's namespace and select the pod. Otherwise
// a policy with a podSelector that says something beats one whose selector is
// empty, then the older one wins, then the first by name. Where no policy
// selects the pod, a baseline does so by the same order, but that one whose
// namespaceSelector says something comes first of all.
//
// A policy that is not accepted is served like any other, and there is no
// profile of it: its pods are told what is wrong with it, and never fall to a
// policy that may grant more.
func Serving(policies []v1alpha1.VisionPolicy, podLabels map[string]string, pinned string) (profile string, v Verdict) {
	if pinned != "" {
		return servingPinned(policies, podLabels, pinned)
	}
	var best *v1alpha1.VisionPolicy
	for i := range policies {
		if p := &policies[i]; selects(p, podLabels) && (best == nil || servesBefore(p, best) < 0) {
			best = p
		}
	}
	switch {
	case best == nil:
		return "", Verdict{Reason: ServingNone, Message: "no VisionPolicy of the namespace selects the pod, and no baseline does"}
	case isBaseline(best):
		return ProfileOf(best), Verdict{OK: true, Reason: ServingBaseline,
			Message: fmt.Sprintf("no VisionPolicy of the namespace selects the pod, and baseline %s/%s does", best.Namespace, best.Name)}
	}
	return ProfileOf(best), Verdict{OK: true, Reason: ServingSelected,
		Message: fmt.Sprintf("VisionPolicy %q selects the pod", best.Name)}
}

func servingPinned(policies []v1alpha1.VisionPolicy, podLabels map[string]string, pinned string) (profile string, v Verdict) {
	for i := range policies {
		p := &policies[i]
		switch {
		case p.Name != pinned || isBaseline(p):
		case selects(p, podLabels):
			return ProfileID(p.Name), Verdict{OK: true, Reason: ServingPinned,
				Message: fmt.Sprintf("annotation %s names VisionPolicy %q", v1alpha1.PolicyAnnotation, pinned)}
		default:
			return "", Verdict{Reason: ServingNotSelecting, Message: fmt.Sprintf(
				"annotation %s names VisionPolicy %q, whose podSelector does not select the pod", v1alpha1.PolicyAnnotation, pinned)}
		}
	}
	return "", Verdict{Reason: ServingNotFound, Message: fmt.Sprintf(
		"annotation %s names VisionPolicy %q, which the namespace does not have", v1alpha1.PolicyAnnotation, pinned)}
}

// selects reports whether a policy selects pods with such labels. A selector
// that does not parse selects nothing.
func selects(p *v1alpha1.VisionPolicy, podLabels map[string]string) bool {
	selector, err := podSelector(p)
	return err == nil && selector.Matches(labels.Set(podLabels))
}

// servesBefore is below zero when a serves pods that b selects as well.
func servesBefore(a, b *v1alpha1.VisionPolicy) int {
	if x, y := isBaseline(a), isBaseline(b); x != y {
		if y {
			return -1
		}
		return 1
	}
	return cmp.Or(emptyLast(a.Spec.NamespaceSelector, b.Spec.NamespaceSelector),
		emptyLast(a.Spec.PodSelector, b.Spec.PodSelector), olderFirst(a, b))
}

// emptyLast orders a selector that says something before one that does not.
func emptyLast(a, b *metav1.LabelSelector) int {
	switch x, y := saysNothing(a), saysNothing(b); {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}

// saysNothing reports whether a selector is absent or empty.
func saysNothing(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// podSelector is the selector of a policy's pods: everything when absent.
func podSelector(p *v1alpha1.VisionPolicy) (labels.Selector, error) {
	if saysNothing(p.Spec.PodSelector) {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(p.Spec.PodSelector)
}

// olderFirst orders policies by creation, then by name.
func olderFirst(a, b *v1alpha1.VisionPolicy) int {
	switch {
	case a.CreationTimestamp.Before(&b.CreationTimestamp):
		return -1
	case b.CreationTimestamp.Before(&a.CreationTimestamp):
		return 1
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}
