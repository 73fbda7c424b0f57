// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volume makes one of most kinds that a pod may have.
func (g generator) volume(name string) corev1.Volume {
	ref := corev1.LocalObjectReference{Name: "some"}
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: amounts("storage=1Gi")},
	}
	sources := []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("64Mi"))}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: g.in(4)}},
		{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim}}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref, Items: []corev1.KeyToPath{{Key: "k", Path: "a/b"}}}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "some", DefaultMode: new(int32(0o400))}},
		{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}},
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "x"}},
		}}},
		{NFS: &corev1.NFSVolumeSource{Server: "nfs.example", Path: "/x"}},
		{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}},
		{Image: &corev1.ImageVolumeSource{Reference: "data:1"}},
	}
	if g.in(2) {
		return corev1.Volume{Name: name, VolumeSource: pick(g, sources[:4]...)}
	}
	return corev1.Volume{Name: name, VolumeSource: pick(g, sources...)}
}

// asInit makes a container one that an init container can be, or a sidecar.
func (g generator) asInit(c *corev1.Container) {
	if g.in(3) {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		return
	}
	c.ReadinessProbe, c.LivenessProbe, c.Lifecycle = nil, nil, nil
	if g.in(2) {
		c.ResizePolicy = nil
	}
}

func (g generator) security(spec *corev1.PodSpec) {
	if g.in(2) {
		spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsUser: maybe[int64](g, 0, 1000, 2000), RunAsGroup: maybe[int64](g, 0, 2000), RunAsNonRoot: maybe(g, false, false, true), FSGroup: maybe[int64](g, 0, 3000),
			FSGroupChangePolicy: maybe(g, corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways), SupplementalGroups: pick(g, nil, []int64{4, 5}),
		}
		if g.in(3) {
			spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
			spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.tcp_syncookies", Value: "1"}}
		}
	}
	spec.HostPID, spec.HostIPC, spec.ShareProcessNamespace = g.in(15), g.in(20), maybe(g, false, true)
	if spec.HostPID {
		spec.ShareProcessNamespace = nil
	}
	if g.in(10) {
		spec.HostUsers = new(pick(g, true, false))
	}
	spec.AutomountServiceAccountToken = maybe(g, true, false)
	if g.in(5) {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	}
}

func (g generator) placement(spec *corev1.PodSpec) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "random"}}
	if g.in(6) {
		spec.NodeSelector = map[string]string{corev1.LabelOSStable: pick(g, "linux", "linux", "windows"), "disk": "fast"}
	}
	if g.in(6) {
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{LabelSelector: selector, TopologyKey: corev1.LabelHostname},
		}}}
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector}}
	}
	if g.in(6) {
		spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	}
	spec.PriorityClassName = pick(g, "", "", "", "", "", "system-node-critical")
	spec.SchedulerName = pick(g, "", "", "own")
	if g.in(6) {
		spec.OS = &corev1.PodOS{Name: corev1.Linux}
	}
}

func (g generator) lifetime(spec *corev1.PodSpec) {
	spec.RestartPolicy = pick(g, "", corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	spec.TerminationGracePeriodSeconds = maybe[int64](g, 0, 1, 600)
	if g.in(5) {
		spec.ActiveDeadlineSeconds = new(int64(600))
		spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}
	}
	spec.EnableServiceLinks = maybe(g, true, false)
}

func (g generator) network(spec *corev1.PodSpec) {
	if g.in(12) {
		spec.HostNetwork = true
	}
	spec.DNSPolicy = pick(g, "", corev1.DNSDefault, corev1.DNSClusterFirstWithHostNet)
	if g.in(6) {
		spec.DNSPolicy, spec.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}}
		spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.2", Hostnames: []string{"models.example"}}}
	}
	if g.in(6) {
		spec.Hostname, spec.Subdomain = "random", "group"
	}
}

// windows makes a pod one for Windows, which has little of what Linux has.
func windows(spec *corev1.PodSpec) {
	spec.OS, spec.SecurityContext, spec.Resources = &corev1.PodOS{Name: corev1.Windows}, nil, nil
	spec.HostPID, spec.HostIPC, spec.HostUsers, spec.ShareProcessNamespace = false, false, nil, nil
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].SecurityContext = nil
		}
	}
}
