// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package random

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// maker makes one pod, of what its place accepts: hardened where Pod Security's
// restricted level is enforced, and with limits where a quota asks for them.
type maker struct {
	dice
	place
	pod *corev1.Pod
}

// makePod makes a pod of a random shape that an API server accepts, most of the time.
func makePod(seed, number uint64, at place) *corev1.Pod {
	m := maker{dice: newDice(seed, number), place: at, pod: &corev1.Pod{}}
	m.metadata()
	m.volumes()
	m.containers()
	m.security()
	m.scheduling()
	m.network()
	m.lifetime()
	if m.often(3) {
		m.windows()
	}
	return m.pod
}

// metadata: every pod opts in by its namespace, so that the same pod is not
// injected in a namespace that does not.
func (m maker) metadata() {
	meta := &m.pod.ObjectMeta
	if m.either() {
		meta.Name = "random"
	} else {
		meta.GenerateName = one(m.dice, "random-", "agent-7d4b9c6f5-", "a.b-")
	}
	meta.Labels = map[string]string{}
	for _, key := range some(m.dice, 30, "app", "pod-template-hash", "example.com/tier", "batch.kubernetes.io/job-name") {
		meta.Labels[key] = one(m.dice, "agent", "", "v1.2_3")
	}
	meta.Annotations = map[string]string{}
	for _, key := range some(m.dice, 20, "example.com/a", "sidecar.istio.io/inject", "cluster-autoscaler.kubernetes.io/safe-to-evict") {
		meta.Annotations[key] = one(m.dice, "true", "", "{\"a\": [1]}", "ünï\ncode")
	}
	if m.often(12) {
		meta.Annotations[v1alpha1.WorkspacesAnnotation] = one(m.dice, "/data", "/data/in, /scratch", "", "/nowhere", "/proc", "relative", "/data/../etc,//scratch/")
	}
	if m.often(6) {
		meta.Annotations[v1alpha1.PolicyAnnotation] = one(m.dice, "agents", "gone", "")
	}
	if m.often(4) { // what only injection should write
		maps.Copy(meta.Annotations, map[string]string{v1alpha1.InjectionAnnotation: one(m.dice,
			`{"profile":"policy/agents","hash":"sha256:0000","image":"old"}`, `{"hash":1}`, `{}`, `nonsense`)})
	}
	if m.often(4) {
		meta.Labels[v1alpha1.InjectedLabel] = "true"
	}
	if m.often(20) {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "agent", UID: types.UID(fmt.Sprintf("uid-%d", m.IntN(9))), Controller: new(true)}}
	}
	if m.often(10) {
		meta.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	}
}

func (m maker) scheduling() {
	s := &m.pod.Spec
	if m.often(15) {
		s.NodeSelector = map[string]string{"disk": "ssd", corev1.LabelOSStable: "linux"}
	}
	if m.often(15) {
		s.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(30))}}
	}
	if m.often(15) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: one(m.dice, corev1.DoNotSchedule, corev1.ScheduleAnyway),
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}}}
	}
	if m.often(15) {
		term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	}
	if m.often(10) {
		s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	} else if m.often(10) {
		s.NodeName = "node-1"
	}
	if m.often(10) {
		s.PriorityClassName = "system-cluster-critical"
	}
	if m.often(15) {
		s.RuntimeClassName = new(runtimeClass)
	}
	if m.often(10) {
		s.SchedulerName = "other"
	}
	if m.often(10) {
		s.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}
	}
}

func (m maker) network() {
	s := &m.pod.Spec
	if m.place.level == "" && m.often(4) {
		s.HostNetwork = true
	}
	switch {
	case m.often(10):
		s.DNSPolicy, s.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.10"}, Searches: []string{"svc.cluster.local"}}
	case m.often(10):
		s.DNSPolicy = one(m.dice, corev1.DNSDefault, corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet)
	}
	if m.often(15) {
		s.Hostname, s.Subdomain, s.SetHostnameAsFQDN = "agent-0", "agents", m.flag()
	}
	if m.often(10) {
		s.HostAliases = []corev1.HostAlias{{IP: "10.1.2.3", Hostnames: []string{"db.local"}}}
	}
	s.EnableServiceLinks = m.flag()
	if m.either() {
		s.AutomountServiceAccountToken = m.flag()
	}
	if m.often(20) {
		s.ImagePullSecrets = some(m.dice, 60, corev1.LocalObjectReference{Name: "mine"}, corev1.LocalObjectReference{Name: pullSecret})
	}
}

func (m maker) lifetime() {
	s := &m.pod.Spec
	s.RestartPolicy = one(m.dice, "", corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	if m.often(20) {
		s.TerminationGracePeriodSeconds = new(int64(one(m.dice, 0, 1, 30, 600)))
	}
	if m.often(10) {
		s.ActiveDeadlineSeconds = new(int64(3600))
	}
	if m.often(15) {
		s.OS = &corev1.PodOS{Name: corev1.Linux}
	}
}

// windows makes it a pod for Windows, which has nothing that only Linux has.
func (m maker) windows() {
	s := &m.pod.Spec
	s.OS, s.SecurityContext, s.HostNetwork, s.HostPID, s.HostIPC, s.ShareProcessNamespace, s.HostUsers = &corev1.PodOS{Name: corev1.Windows}, nil, false, false, false, nil, nil
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			list[i].SecurityContext = nil
		}
	}
}

// collide gives the runtime's own names and ports to something of the pod, here and there.
func (m maker) collide() {
	s := &m.pod.Spec
	c := &s.Containers[m.IntN(len(s.Containers))]
	switch m.IntN(4) {
	case 0:
		c.Name = inject.ContainerName
	case 1:
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: one[int32](m.dice, inject.Port, inject.HealthPort), Protocol: one(m.dice, "", corev1.ProtocolTCP, corev1.ProtocolUDP)})
	case 2:
		if len(s.InitContainers) > 0 {
			s.InitContainers[0].Name = inject.ContainerName
		}
	default:
		if c.Ports == nil {
			c.Ports = []corev1.ContainerPort{{Name: "vision-health", ContainerPort: 81}}
		}
	}
}

func (m maker) probe() *corev1.Probe {
	p := &corev1.Probe{InitialDelaySeconds: int32(m.IntN(5)), PeriodSeconds: int32(m.IntN(20)), TimeoutSeconds: int32(m.IntN(5))}
	switch m.IntN(4) {
	case 0:
		p.HTTPGet = &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), HTTPHeaders: []corev1.HTTPHeader{{Name: "X-A", Value: "b"}}}
	case 1:
		p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("http")}
	case 2:
		p.Exec = &corev1.ExecAction{Command: []string{"true"}}
	default:
		p.GRPC = &corev1.GRPCAction{Port: 9090, Service: new("agent")}
	}
	return p
}
