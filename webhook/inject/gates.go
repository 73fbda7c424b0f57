// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// optedIn: the pod's own label decides, and its namespace's where it has none.
func optedIn(d *decision) bool {
	if label, ok := d.Pod.Labels[v1alpha1.InjectLabel]; ok {
		if label == v1alpha1.InjectEnabled {
			return true
		}
		return d.silently(ReasonOptedOut, fmt.Sprintf("the pod's label %s is not %q", v1alpha1.InjectLabel, v1alpha1.InjectEnabled))
	}
	if d.NamespaceLabels[v1alpha1.InjectLabel] == v1alpha1.InjectEnabled {
		return true
	}
	return d.silently(ReasonNotOptedIn, fmt.Sprintf("neither the pod nor its namespace has the label %s: %s", v1alpha1.InjectLabel, v1alpha1.InjectEnabled))
}

// notMirror: a kubelet ignores what is changed in the mirror of its file.
func notMirror(d *decision) bool {
	if _, ok := d.Pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		return d.silently(ReasonMirrorPod, "the pod mirrors a file on a node")
	}
	return true
}

// servedByPolicy finds the policy that serves the pod, or the baseline where no
// policy does, and learns its admission.mode.
func servedByPolicy(d *decision) bool {
	d.incomplete = true
	id, serving := compile.Serving(d.Policies, d.Pod.Labels, d.Pod.Annotations[v1alpha1.PolicyAnnotation])
	d.policy, d.serving = id, serving
	if !serving.OK {
		return d.stop(Reason(serving.Reason), "%s", serving.Message)
	}
	d.mode, d.spoken = declaredMode(d.Policies, id), true
	d.verdict = d.Compiled.Verdict(id)
	if d.verdict.Profile == "" {
		return d.stop(ReasonPolicyNotAccepted, "%s, which serves the pod, is not accepted: %s", describe(id), d.verdict.Accepted.Message)
	}
	d.profile = findProfileByID(d.Compiled.Document, id)
	return true
}

// declaredMode is the admission.mode that a policy itself declares, or the most
// specific baseline that does: it counts also when the policy is not accepted and no
// profile carries it.
func declaredMode(policies []v1alpha1.VisionPolicy, id string) v1alpha1.AdmissionMode {
	mode, laid := v1alpha1.AdmissionWarn, false
	for i := range policies {
		p := &policies[i]
		became, a := compile.ProfileOf(p), p.Spec.Admission
		switch {
		case a == nil || a.Mode == nil:
		case became == id:
			return *a.Mode
		case strings.HasPrefix(became, baselineKind) && !laid:
			mode, laid = *a.Mode, true
		}
	}
	return mode
}

// baselineKind begins the ID of a profile that a baseline became.
var baselineKind = compile.BaselineProfileID("")

// describe names the object behind a profile for people.
func describe(id string) string {
	if name, ok := strings.CutPrefix(id, baselineKind); ok {
		return fmt.Sprintf("baseline %q", name)
	}
	return fmt.Sprintf("VisionPolicy %q", strings.TrimPrefix(id, "policy/"))
}

// hasProfile takes the profile's pod-shaping part.
func hasProfile(d *decision) bool {
	if d.profile == nil {
		return d.stop(ReasonPolicyNotAccepted, "the policy that serves the pod is in no router document")
	}
	d.shape = d.Compiled.Pods[d.profile.ID]
	if d.shape.Admission != "" {
		d.mode = d.shape.Admission
	}
	return true
}

func findProfileByID(doc *router.Document, id string) *router.Profile {
	if doc == nil {
		return nil
	}
	for i := range doc.Profiles {
		if doc.Profiles[i].ID == id {
			return &doc.Profiles[i]
		}
	}
	return nil
}
