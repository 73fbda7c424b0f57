// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Decide judges a pod by the checks, in order: the first that objects ends the
// chain. What it then means depends on the check and on the policy's
// admission.mode (Enforce refuses the pod, Warn lets it be with a warning, Off
// lets it be silently).
func Decide(in Input) Plan {
	d := &decision{Input: in, mode: v1alpha1.AdmissionWarn}
	for _, check := range checks {
		if outcome := check(d); outcome.note != nil {
			return d.end(outcome)
		}
	}
	return d.plan()
}

// checks are the chain. Those before findPolicy are silent or speak for every
// policy; those after it obey the policy's admission.mode.
var checks = []func(*decision) outcome{
	checkOptIn,
	checkMirrorPod,
	findPolicy,
	findProfile,
	checkWindows,
	checkHostNetwork,
	checkNames,
	checkPorts,
	chooseWorkspaces,
	checkRoutes,
}

// decision is what the chain gathers on its way.
type decision struct {
	Input
	mode    v1alpha1.AdmissionMode
	profile *router.Profile
	shape   compile.PodProfile
	work    workspaces
	// volumesByName are the pod's, for chooseWorkspaces.
	volumesByName map[string]*corev1.Volume
	notes         []Note
	// incomplete becomes Plan.Incomplete.
	incomplete bool
}

// outcome is what a check says: nothing, or why the chain ends.
type outcome struct {
	note   *Note
	silent bool
}

func pass() outcome { return outcome{} }

func stop(reason Reason, message string, args ...any) outcome {
	return outcome{note: &Note{Reason: reason, Message: fmt.Sprintf(message, args...)}}
}

func silently(reason Reason) outcome { return outcome{note: &Note{Reason: reason}, silent: true} }

// end turns an objection into a plan that leaves the pod as it is.
func (d *decision) end(o outcome) Plan {
	switch {
	case o.silent || d.mode == v1alpha1.AdmissionOff:
		return Plan{Incomplete: d.incomplete}
	case d.mode == v1alpha1.AdmissionEnforce:
		return Plan{Incomplete: d.incomplete, Deny: o.note}
	}
	o.note.Message += "; the pod has no vision runtime"
	return Plan{Incomplete: d.incomplete, Notes: append(d.notes, *o.note)}
}

func (d *decision) tell(reason Reason, message string, args ...any) {
	d.notes = append(d.notes, Note{Reason: reason, Message: fmt.Sprintf(message, args...)})
}

// plan builds the container once nothing objects.
func (d *decision) plan() Plan {
	plan := Plan{
		Inject:      true,
		Incomplete:  d.incomplete,
		Profile:     d.profile.ID,
		Container:   d.container(),
		Volumes:     d.volumes(),
		PullSecrets: d.Settings.PullSecrets,
		Env:         agentEnv(d.shape.MCP),
	}
	plan.Hash = hash(&plan)
	if d.mode != v1alpha1.AdmissionOff {
		plan.Notes = d.notes
	}
	return plan
}

func checkOptIn(d *decision) outcome {
	if label, ok := d.Pod.Labels[v1alpha1.InjectLabel]; ok {
		if label == v1alpha1.InjectEnabled {
			return pass()
		}
		return silently(ReasonOptedOut)
	}
	if d.NamespaceLabels[v1alpha1.InjectLabel] == v1alpha1.InjectEnabled {
		return pass()
	}
	return silently(ReasonNotOptedIn)
}

func checkMirrorPod(d *decision) outcome {
	if _, ok := d.Pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		return silently(ReasonMirrorPod)
	}
	return pass()
}

// findPolicy finds the policy that serves the pod, or the baseline where no
// policy does, and learns its admission.mode.
func findPolicy(d *decision) outcome {
	d.incomplete = true
	id, serving := compile.Serving(d.Policies, d.Pod.Labels, d.Pod.Annotations[v1alpha1.PolicyAnnotation])
	if !serving.OK {
		return stop(Reason(serving.Reason), "%s", serving.Message)
	}
	d.mode = declaredMode(d.Policies, id)
	verdict := d.Compiled.Verdict(id)
	if verdict.Profile == "" {
		return stop(ReasonPolicyNotAccepted, "%s, which serves the pod, is not accepted: %s", describe(id), verdict.Accepted.Message)
	}
	d.profile = findProfileByID(d.Compiled.Document, id)
	return pass()
}

// declaredMode is the admission.mode that a policy itself declares: it counts
// also when the policy is not accepted and no profile carries it.
func declaredMode(policies []v1alpha1.VisionPolicy, id string) v1alpha1.AdmissionMode {
	for i := range policies {
		p := &policies[i]
		if a := p.Spec.Admission; compile.ProfileOf(p) == id && a != nil && a.Mode != nil {
			return *a.Mode
		}
	}
	return v1alpha1.AdmissionWarn
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

// findProfile takes the profile's pod-shaping part.
func findProfile(d *decision) outcome {
	if d.profile == nil {
		return stop(ReasonPolicyNotAccepted, "the policy that serves the pod is in no router document")
	}
	d.incomplete = false
	d.shape = d.Compiled.Pods[d.profile.ID]
	if d.shape.Admission != "" {
		d.mode = d.shape.Admission
	}
	return pass()
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

func checkWindows(d *decision) outcome {
	spec := &d.Pod.Spec
	if spec.OS != nil && spec.OS.Name == corev1.Windows || spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows) {
		return stop(ReasonWindows, "the runtime is a Linux container and the pod asks for Windows")
	}
	return pass()
}

func checkHostNetwork(d *decision) outcome {
	if d.Pod.Spec.HostNetwork {
		return stop(ReasonHostNetwork, "with hostNetwork the runtime's loopback would be the node's")
	}
	return pass()
}

// checkNames refuses to take a name that is the user's. A pod that carries our
// annotation was injected before: there the init container and the volumes are ours.
func checkNames(d *decision) outcome {
	_, injected := injectionOf(d.Pod)
	named := func(c corev1.Container) bool { return c.Name == ContainerName }
	if slices.ContainsFunc(d.Pod.Spec.Containers, named) || !injected && slices.ContainsFunc(d.Pod.Spec.InitContainers, named) {
		return stop(ReasonNameCollision, "the pod has a container of its own called %q", ContainerName)
	}
	for i := range d.Pod.Spec.Volumes {
		if v := &d.Pod.Spec.Volumes[i]; !injected && isOurVolume(v.Name) {
			return stop(ReasonNameCollision, "the pod has a volume of its own called %q", v.Name)
		}
	}
	return pass()
}

func checkPorts(d *decision) outcome {
	for _, list := range [][]corev1.Container{d.Pod.Spec.InitContainers, d.Pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == ContainerName {
				continue
			}
			for _, p := range list[i].Ports {
				if p.Protocol != corev1.ProtocolUDP && p.Protocol != corev1.ProtocolSCTP && (p.ContainerPort == Port || p.ContainerPort == HealthPort) {
					return stop(ReasonPortCollision, "container %q declares port %d, which the runtime needs", list[i].Name, p.ContainerPort)
				}
			}
		}
	}
	return pass()
}

// checkRoutes tells of a profile that no model can serve. The runtime could
// still stand there and wait for one, so only Enforce refuses. References that
// resolve without a default route leave it to runtimes to discover a model.
func checkRoutes(d *decision) outcome {
	verdict := d.Compiled.Verdict(d.profile.ID)
	// A baseline serves because no policy does, and one may have come a moment ago.
	d.incomplete = !verdict.ResolvedRefs.OK || strings.HasPrefix(d.profile.ID, baselineKind)
	reason, message, policy := Reason(verdict.ResolvedRefs.Reason), verdict.ResolvedRefs.Message, describe(d.profile.ID)
	switch {
	case verdict.ResolvedRefs.OK:
		return pass()
	case verdict.DefaultRoute != "":
		d.tell(reason, "%s: %s", policy, message)
		return pass()
	case d.mode == v1alpha1.AdmissionEnforce:
		return stop(reason, "%s cannot serve the pod: %s", policy, message)
	}
	d.tell(reason, "%s cannot look at images yet: %s", policy, message)
	return pass()
}
