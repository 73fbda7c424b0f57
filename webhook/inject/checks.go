// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func checkWindows(d *decision) {
	spec := &d.Pod.Spec
	if spec.OS != nil && spec.OS.Name == corev1.Windows || spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows) || requiresWindows(spec.Affinity) {
		d.obstruct(ReasonWindows, "the runtime is a Linux container and the pod asks for Windows")
	}
}

// requiresWindows reports whether every node that an affinity permits runs Windows, by its label.
func requiresWindows(a *corev1.Affinity) bool {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		if !slices.ContainsFunc(terms[i].MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == corev1.LabelOSStable && r.Operator == corev1.NodeSelectorOpIn && slices.Equal(r.Values, []string{string(corev1.Windows)})
		}) {
			return false
		}
	}
	return len(terms) > 0
}

func checkHostNetwork(d *decision) {
	if d.Pod.Spec.HostNetwork {
		d.obstruct(ReasonHostNetwork, "with hostNetwork the runtime's loopback would be the node's")
	}
}

// checkNames refuses to take a name that is the user's. A pod that carries our
// annotation was injected before: there the init container and the volumes are ours.
func checkNames(d *decision) {
	_, injected := injectionOf(d.Pod)
	named := func(c corev1.Container) bool { return c.Name == ContainerName }
	if slices.ContainsFunc(d.Pod.Spec.Containers, named) || !injected && slices.ContainsFunc(d.Pod.Spec.InitContainers, named) {
		d.obstruct(ReasonNameCollision, "the pod has a container of its own called %q", ContainerName)
	}
	for i := range d.Pod.Spec.Volumes {
		if v := &d.Pod.Spec.Volumes[i]; !injected && isOurVolume(v.Name) {
			d.obstruct(ReasonNameCollision, "the pod has a volume of its own called %q", v.Name)
		}
	}
}

func checkPorts(d *decision) {
	for _, list := range [][]corev1.Container{d.Pod.Spec.InitContainers, d.Pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == ContainerName {
				continue
			}
			for _, p := range list[i].Ports {
				if p.Protocol != corev1.ProtocolUDP && p.Protocol != corev1.ProtocolSCTP && (p.ContainerPort == Port || p.ContainerPort == HealthPort) {
					d.obstruct(ReasonPortCollision, "container %q declares port %d, which the runtime needs", list[i].Name, p.ContainerPort)
				}
			}
		}
	}
}

// checkRoute tells of a profile that no model can serve. References that resolve
// without a default route leave it to runtimes to discover a model.
func checkRoute(d *decision) {
	// A baseline serves because no policy does, and one may have come a moment ago.
	refs := d.verdict.ResolvedRefs
	d.incomplete = !refs.OK || strings.HasPrefix(d.profile.ID, baselineKind)
	reason, policy := Reason(refs.Reason), describe(d.profile.ID)
	switch {
	case refs.OK:
	case d.verdict.DefaultRoute != "":
		d.tell(reason, "%s: %s", policy, refs.Message)
	default:
		d.lack(reason, "%s cannot look at images yet: %s", policy, refs.Message)
	}
}

// checkCredentials says what is wrong with the keys that the container mounts: a
// lack for the key of the default route, and a word of warning for others, without
// which the pod is served all the same.
func checkCredentials(d *decision) {
	d.keys = d.mountedKeys()
	for _, key := range d.keys {
		missing, ok := d.MissingKeys[key]
		switch {
		case !ok:
		case key.Provider == d.verdict.DefaultProvider:
			d.lack(missing.Reason, "provider %s, of the default model: %s", key.Provider, missing.Message)
		default:
			d.tell(missing.Reason, "provider %s: %s", key.Provider, missing.Message)
		}
	}
}
