// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	corev1 "k8s.io/api/core/v1"
)

// nonRoot is the user and group of the runtime's image.
const nonRoot int64 = 65532

// Labels that Pod Security Admission reads from a namespace.
const (
	podSecurityEnforce    = "pod-security.kubernetes.io/enforce"
	podSecurityRestricted = "restricted"
)

// securityContext passes Pod Security's restricted level by itself, but for an
// agent that runs as root where the namespace permits that.
func (d *decision) securityContext() *corev1.SecurityContext {
	no, yes := false, true
	user, group := d.user()
	nonRootUser := user == nil || *user != 0
	d.warnOfSharedProcesses(user)
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		Privileged:               &no,
		ReadOnlyRootFilesystem:   &yes,
		RunAsNonRoot:             &nonRootUser,
		RunAsUser:                user,
		RunAsGroup:               group,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		SELinuxOptions:           d.seLinuxOptions(),
	}
}

// seLinuxOptions are the pod's own, nil, but where the agent's container has a level
// of its own: files of one level cannot be read from another. Nothing else of the
// agent's is taken over, for its type may be privileged.
func (d *decision) seLinuxOptions() *corev1.SELinuxOptions {
	if d.work.agent == nil || d.work.agent.SecurityContext == nil {
		return nil
	}
	agents := d.work.agent.SecurityContext.SELinuxOptions
	if agents == nil || agents.Level == "" {
		return nil
	}
	options := corev1.SELinuxOptions{}
	if sc := d.Pod.Spec.SecurityContext; sc != nil && sc.SELinuxOptions != nil {
		options = *sc.SELinuxOptions
	}
	options.Level = agents.Level
	return &options
}

// user is whom the runtime runs as; nil leaves it to the platform or, where the
// platform says nothing, to the image (65532).
//
//   - The agent's user and group, when the pod says who that is: files with mode
//     0600 can be read by nobody else.
//   - For an agent that is root: root without any capability, but 65532 where
//     the namespace's Pod Security is restricted.
//   - Else the policy's runAsUser.
//   - Else 65532 where the pod's own is root, which the container would inherit.
//   - Else nothing, so that platforms which assign users from a range can.
func (d *decision) user() (user, group *int64) {
	podUser, podGroup := podIdentity(d.Pod)
	if agent := d.work.agent; agent != nil {
		user, group = podUser, podGroup
		if sc := agent.SecurityContext; sc != nil {
			user, group = first(sc.RunAsUser, podUser), first(sc.RunAsGroup, podGroup)
		}
	}
	user, nobody := first(user, d.shape.RunAsUser), nonRoot
	switch {
	case user == nil && podUser != nil && *podUser == 0:
		return &nobody, &nobody
	case user != nil && *user == 0 && d.NamespaceLabels[podSecurityEnforce] == podSecurityRestricted:
		d.tell(ReasonRunsAsNonRoot, "the agent runs as root, which the namespace's Pod Security (restricted) forbids to the runtime; it runs as %d and cannot read files that only root may", nonRoot)
		return &nobody, &nobody
	}
	return copied(user), copied(group)
}

// podIdentity is what the pod says for all its containers.
func podIdentity(pod *corev1.Pod) (user, group *int64) {
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.RunAsUser, sc.RunAsGroup
	}
	return nil, nil
}

func first(a, b *int64) *int64 {
	if a != nil {
		return a
	}
	return b
}

func copied(p *int64) *int64 {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// warnOfSharedProcesses warns where a process of the agent's can look into the
// runtime's file system through /proc: same user, or root.
func (d *decision) warnOfSharedProcesses(ours *int64) {
	spec := &d.Pod.Spec
	if !spec.HostPID && (spec.ShareProcessNamespace == nil || !*spec.ShareProcessNamespace) {
		return
	}
	podUser, _ := podIdentity(d.Pod)
	for i := range spec.Containers {
		theirs := podUser
		if sc := spec.Containers[i].SecurityContext; sc != nil {
			theirs = first(sc.RunAsUser, podUser)
		}
		if ours != nil && theirs != nil && *theirs != 0 && *theirs != *ours {
			continue
		}
		d.tell(ReasonSharedProcesses, "with a shared process namespace, container %q can read the provider keys out of the runtime, unless it runs as a user that is neither root nor the runtime's", spec.Containers[i].Name)
		return
	}
}
