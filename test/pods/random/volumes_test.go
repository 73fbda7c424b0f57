// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package random

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// volumes are up to six of those that the place's Pod Security accepts.
func (m maker) volumes() {
	s := &m.pod.Spec
	kinds := []func() corev1.VolumeSource{m.emptyDir, m.emptyDir, m.emptyDir, m.claim, m.claim, m.ephemeral, configMapVolume, secretVolume, downwardVolume, m.projected, csiVolume}
	switch m.place.level {
	case "":
		kinds = append(kinds, m.hostPath, nfsVolume, imageVolume)
	case "baseline":
		kinds = append(kinds, nfsVolume, imageVolume)
	}
	for i := range m.IntN(7) {
		name := "volume-" + strconv.Itoa(i)
		if m.often(1) {
			name = one(m.dice, "vision-runtime-cache", "vision-runtime-router")
			if slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
				continue
			}
		}
		s.Volumes = append(s.Volumes, corev1.Volume{Name: name, VolumeSource: one(m.dice, kinds...)()})
	}
}

func (m maker) emptyDir() corev1.VolumeSource {
	e := &corev1.EmptyDirVolumeSource{}
	if m.often(20) {
		e.Medium = corev1.StorageMediumMemory
	}
	if m.often(20) {
		e.SizeLimit = new(resource.MustParse("100Mi"))
	}
	return corev1.VolumeSource{EmptyDir: e}
}

func (m maker) claim() corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: one(m.dice, "data", "state"), ReadOnly: m.often(20)}}
}

func (m maker) ephemeral() corev1.VolumeSource {
	return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}}}
}

func configMapVolume() corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}, DefaultMode: new(int32(0o640))}}
}

func secretVolume() corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mine", Items: []corev1.KeyToPath{{Key: "token", Path: "a/b"}}}}
}

func downwardVolume() corev1.VolumeSource {
	return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}}
}

func (m maker) projected() corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: some(m.dice, 60,
		corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: new(int64(600)), Path: "token"}},
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}}})}}
}

func csiVolume() corev1.VolumeSource {
	return corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets.example.com", ReadOnly: new(true), VolumeAttributes: map[string]string{"class": "a"}}}
}

func (m maker) hostPath() corev1.VolumeSource {
	return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log", Type: one(m.dice, nil, new(corev1.HostPathDirectory), new(corev1.HostPathUnset))}}
}

func nfsVolume() corev1.VolumeSource {
	return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example", Path: "/exports"}}
}

func imageVolume() corev1.VolumeSource {
	return corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "registry.example/models:1", PullPolicy: corev1.PullIfNotPresent}}
}

// mountPaths are where containers mount, some of them in two spellings, below
// each other, or where the runtime has something of its own.
var mountPaths = []string{
	"/data", "/data/", "/data/in", "/data//deep/er", "/scratch", "/srv/./x", "/a/../b", "relative", "/",
	"/home/agent", "/tmp", "/with space", "/ünï", "/var/cache/vision", "/etc/vision/router/x", "/var/run/secrets/kubernetes.io/serviceaccount",
	"/var/run/secrets", "/vision-runtime", "/etc", "/dollar/$(A)", "/-dash",
}

// mounts are some of the pod's volumes; one may be mounted more than once.
func (m maker) mounts(c *corev1.Container) {
	volumes := m.pod.Spec.Volumes
	if len(volumes) == 0 {
		return
	}
	for _, i := range m.Perm(len(mountPaths))[:m.IntN(5)] {
		v := volumes[m.IntN(len(volumes))]
		if v.PersistentVolumeClaim != nil && m.often(5) {
			m.device(c, v.Name)
			continue
		}
		if slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == v.Name }) {
			continue
		}
		c.VolumeMounts = append(c.VolumeMounts, m.mount(v.Name, mountPaths[i]))
	}
}

func (m maker) device(c *corev1.Container, name string) {
	mounted := slices.ContainsFunc(c.VolumeMounts, func(v corev1.VolumeMount) bool { return v.Name == name })
	if mounted || slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == name }) {
		return
	}
	c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: name, DevicePath: "/dev/" + name})
}

func (m maker) mount(name, at string) corev1.VolumeMount {
	v := corev1.VolumeMount{Name: name, MountPath: at}
	switch m.IntN(6) {
	case 0:
		v.SubPath = one(m.dice, "sessions/a", "x", "$(A)")
	case 1:
		v.SubPathExpr = one(m.dice, "$(SESSION)", "$(POD_NAME)/$(A)", "fixed", "$$(A)")
	}
	switch m.IntN(8) {
	case 0:
		v.ReadOnly = true
		if m.either() {
			v.RecursiveReadOnly = new(one(m.dice, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyDisabled))
		}
	case 1:
		v.MountPropagation = new(one(m.dice, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone))
	}
	return v
}
