// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
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
	// ServingNone: no policy of the namespace selects the pod.
	ServingNone = "NoPolicy"
)

// Serving names the policy that serves a pod, or is empty with the reason why
// none does. The policies are those of the pod's namespace; baselines among
// them serve no pod by themselves. pinned is the value of
// v1alpha1.PolicyAnnotation, empty when the pod has none.
//
// A pinned policy must exist and select the pod. Otherwise a policy with a
// podSelector that says something beats one whose selector is empty, then the
// older one wins, then the first by name.
//
// A policy that is not accepted is served like any other: its pods are told
// what is wrong with it, and never fall to a policy that may grant more.
func Serving(policies []v1alpha1.VisionPolicy, podLabels map[string]string, pinned string) (string, Verdict) {
	if pinned != "" {
		return servingPinned(policies, podLabels, pinned)
	}
	var best *v1alpha1.VisionPolicy
	for i := range policies {
		if p := &policies[i]; selects(p, podLabels) && (best == nil || servesBefore(p, best)) {
			best = p
		}
	}
	if best == nil {
		return "", Verdict{Reason: ServingNone, Message: "no VisionPolicy of the namespace selects the pod"}
	}
	return best.Name, Verdict{OK: true, Reason: ServingSelected,
		Message: fmt.Sprintf("VisionPolicy %q selects the pod", best.Name)}
}

func servingPinned(policies []v1alpha1.VisionPolicy, podLabels map[string]string, pinned string) (string, Verdict) {
	for i := range policies {
		p := &policies[i]
		switch {
		case p.Name != pinned || isBaseline(p):
		case selects(p, podLabels):
			return p.Name, Verdict{OK: true, Reason: ServingPinned,
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
// that does not parse selects nothing, as does a baseline.
func selects(p *v1alpha1.VisionPolicy, podLabels map[string]string) bool {
	if isBaseline(p) {
		return false
	}
	selector, err := podSelector(p)
	return err == nil && selector.Matches(labels.Set(podLabels))
}

func servesBefore(a, b *v1alpha1.VisionPolicy) bool {
	if x, y := selectsAll(a), selectsAll(b); x != y {
		return y
	}
	return olderFirst(a, b) < 0
}

// isBaseline reports whether a policy is meant for other namespaces.
func isBaseline(p *v1alpha1.VisionPolicy) bool { return p.Spec.NamespaceSelector != nil }

// selectsAll reports whether a policy's podSelector is absent or empty.
func selectsAll(p *v1alpha1.VisionPolicy) bool {
	s := p.Spec.PodSelector
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// podSelector is the selector of a policy's pods: everything when absent.
func podSelector(p *v1alpha1.VisionPolicy) (labels.Selector, error) {
	if selectsAll(p) {
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
