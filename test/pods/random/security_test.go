// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package random

import (
	corev1 "k8s.io/api/core/v1"
)

// security is the pod's, which holds for containers that say nothing themselves.
func (m maker) security() {
	s := &m.pod.Spec
	sc := &corev1.PodSecurityContext{FSGroupChangePolicy: one(m.dice, nil, new(corev1.FSGroupChangeOnRootMismatch))}
	if m.place.level == "restricted" {
		sc.RunAsNonRoot, sc.SeccompProfile = new(true), &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		sc.RunAsUser = one(m.dice, nil, new(int64(1000)), new(int64(1000680000)))
	} else {
		if m.either() {
			return
		}
		sc.RunAsUser, sc.RunAsNonRoot = one(m.dice, nil, new(int64(0)), new(int64(1000))), m.flag()
	}
	sc.RunAsGroup, sc.FSGroup = one(m.dice, nil, new(int64(0)), new(int64(2000))), one(m.dice, nil, new(int64(2000)))
	sc.SupplementalGroups = some(m.dice, 30, int64(3000), int64(3001))
	if m.often(20) {
		sc.SupplementalGroupsPolicy = new(corev1.SupplementalGroupsPolicyStrict)
	}
	if m.often(10) {
		sc.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_local_port_range", Value: "1024 65535"}}
	}
	if m.often(10) {
		sc.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	}
	if m.often(10) {
		sc.SELinuxOptions, sc.SELinuxChangePolicy = &corev1.SELinuxOptions{Level: "s0:c1,c2"}, new(corev1.SELinuxChangePolicyRecursive)
	}
	s.SecurityContext = sc
	switch {
	case m.often(10):
		s.ShareProcessNamespace = new(true)
	case m.place.level == "" && m.often(10):
		s.HostPID, s.HostIPC = m.either(), m.either()
	case m.often(10):
		s.HostUsers = new(false)
	}
}

// containerSecurity may differ from the pod's.
func (m maker) containerSecurity() *corev1.SecurityContext {
	none := &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	sc := &corev1.SecurityContext{RunAsUser: one(m.dice, nil, nil, new(int64(1001)))}
	if m.place.level == "restricted" {
		sc.AllowPrivilegeEscalation, sc.Capabilities = new(false), none
		if m.often(20) {
			sc.Capabilities.Add = []corev1.Capability{"NET_BIND_SERVICE"}
		}
		return sc
	}
	switch {
	case m.either():
		return nil
	case m.place.level == "" && m.often(15):
		sc.Privileged = new(true)
	case m.often(30):
		sc.Capabilities, sc.AllowPrivilegeEscalation = none, new(false)
	}
	if m.often(20) {
		sc.RunAsUser, sc.RunAsNonRoot = new(int64(0)), nil
	}
	sc.RunAsGroup, sc.ReadOnlyRootFilesystem = one(m.dice, nil, new(int64(0))), m.flag()
	if m.often(10) {
		sc.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return sc
}
