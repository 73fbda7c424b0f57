// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package random

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/visionoperator/vision-operator/controllers/compile"
)

// containers are up to three that start before, some of which stay, and up to four agents.
func (m maker) containers() {
	s := &m.pod.Spec
	amounts := one(m.dice, m.noAmounts, m.anyAmounts, m.limits, m.limits, m.guaranteed)
	if m.place.quota {
		amounts = one(m.dice, m.limits, m.guaranteed)
	}
	for i := range m.IntN(4) {
		c := m.container(i, amounts)
		if m.often(30) {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			m.watched(&c)
		}
		s.InitContainers = append(s.InitContainers, c)
	}
	for i := range m.number(1, 4) {
		c := m.container(10+i, amounts)
		m.watched(&c)
		s.Containers = append(s.Containers, c)
	}
	m.claims()
	if m.often(8) {
		m.collide()
	}
	if m.often(10) && !m.place.quota && m.place.limits == nil {
		// At least what the containers have; hugepages would have to be all the same.
		s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("20Gi")}}
		if m.either() {
			s.Resources.Limits = maps.Clone(s.Resources.Requests)
		}
	}
}

func (m maker) container(place int, amounts func() corev1.ResourceRequirements) corev1.Container {
	c := corev1.Container{Name: m.name(place), Image: one(m.dice, "agent:1", "registry.example/agent@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "agent")}
	c.Command, c.Args = some(m.dice, 30, "/bin/sh", "-c"), some(m.dice, 20, "echo $(POD_NAME) $$", "--flag")
	c.WorkingDir = one(m.dice, "", "/app")
	c.ImagePullPolicy = one(m.dice, "", corev1.PullAlways, corev1.PullIfNotPresent)
	c.TerminationMessagePolicy = one(m.dice, "", corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	if m.often(10) {
		c.TerminationMessagePath = "/dev/other"
	}
	for i, name := range some(m.dice, 25, "http", "grpc", "") {
		p := corev1.ContainerPort{Name: name, ContainerPort: int32(8000 + 10*place + i), Protocol: one(m.dice, "", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)}
		if m.place.level == "" && m.often(10) {
			p.HostPort = p.ContainerPort
		}
		c.Ports = append(c.Ports, p)
	}
	c.Resources = amounts()
	if m.often(10) {
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}}
	}
	c.Env, c.EnvFrom = m.env(c.Name), m.envFrom()
	m.mounts(&c)
	c.SecurityContext = m.containerSecurity()
	c.Stdin, c.TTY = m.often(10), m.often(10)
	return c
}

// watched is what only containers that stay may have.
func (m maker) watched(c *corev1.Container) {
	if m.often(20) {
		c.LivenessProbe = m.probe()
	}
	if m.often(20) {
		c.ReadinessProbe = m.probe()
	}
	if m.often(20) {
		c.StartupProbe = m.probe()
	}
	if m.often(10) {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}, PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	}
}

func (m maker) env(container string) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, name := range some(m.dice, 25, "POD_NAME", "SESSION", "A", "A", "with.dots-and-dashes", compile.EnvRuntimeURL, "OPENAI_BASE_URL", "ANTHROPIC_API_KEY") {
		env = append(env, m.variable(name, container))
	}
	return env
}

func (m maker) variable(name, container string) corev1.EnvVar {
	v := corev1.EnvVar{Name: name}
	switch m.IntN(8) {
	case 0:
		v.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: one(m.dice, "metadata.name", "metadata.labels['app']", "status.podIP", "spec.nodeName")}}
	case 1:
		v.ValueFrom = &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: one(m.dice, "", container), Resource: "limits.cpu", Divisor: resource.MustParse(one(m.dice, "0", "1m"))}}
	case 2:
		v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}, Key: "token", Optional: m.flag()}}
	case 3:
		v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}, Key: "a.b", Optional: m.flag()}}
	default:
		v.Value = one(m.dice, "", "x", "$(POD_NAME)-$(A)", "$$(A)", "$(", "ü\n")
	}
	return v
}

func (m maker) envFrom() []corev1.EnvFromSource {
	if m.often(75) {
		return nil
	}
	named := corev1.LocalObjectReference{Name: one(m.dice, "mine", compile.EnvConfigMapName)}
	return some(m.dice, 60,
		corev1.EnvFromSource{Prefix: one(m.dice, "", "MY_"), ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named, Optional: m.flag()}},
		corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}}})
}

// noAmounts: the pod is BestEffort, unless a LimitRange has defaults.
func (maker) noAmounts() corev1.ResourceRequirements { return corev1.ResourceRequirements{} }

// counted are the resources that the quota of a place may count.
var counted = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// anyAmounts are requests or limits of some resources.
func (m maker) anyAmounts() corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, name := range some(m.dice, 40, counted...) {
		q := m.quantity(name)
		if m.either() {
			r.Requests[name] = q
		} else {
			r.Limits[name] = q
		}
	}
	if m.often(10) {
		r.Limits["example.com/gpu"] = m.quantity("example.com/gpu")
	}
	return r
}

// limits are requests and larger limits of everything.
func (m maker) limits() corev1.ResourceRequirements {
	r := m.guaranteed()
	for name, limit := range r.Limits {
		if request := limit.DeepCopy(); name != "hugepages-2Mi" && m.either() {
			limit.Add(request)
			r.Limits[name] = limit
		}
	}
	return r
}

// guaranteed are limits, which are requested.
func (m maker) guaranteed() corev1.ResourceRequirements {
	limits := corev1.ResourceList{}
	for _, name := range counted {
		limits[name] = m.quantity(name)
	}
	if m.often(8) {
		limits["hugepages-2Mi"] = m.quantity("hugepages-2Mi")
	}
	return corev1.ResourceRequirements{Limits: limits, Requests: maps.Clone(limits)}
}

// claims has a container use a device that the pod claims.
func (m maker) claims() {
	s := &m.pod.Spec
	if m.often(92) || m.place.quota {
		return
	}
	s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
	c := &s.Containers[m.IntN(len(s.Containers))]
	c.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu", Request: one(m.dice, "", "whole")}}
}

// describe is a short word about a pod, for a test's output.
func describe(pod *corev1.Pod) string {
	var names []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	return fmt.Sprintf("%q with %d volumes", slices.Clip(names), len(pod.Spec.Volumes))
}
