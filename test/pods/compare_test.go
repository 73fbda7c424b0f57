// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// tokenVolumes begins the name of the volume that the ServiceAccount plugin adds.
const tokenVolumes = "kube-api-access-"

var sha256Hash = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// told is what of an injected pod can be compared between namespaces.
type told struct {
	GenerateName        string
	Labels, Annotations map[string]string
	Injection           inject.Injection
	Spec                corev1.PodSpec
	QOSClass            corev1.PodQOSClass
}

// comparable leaves out names and times that differ from pod to pod, the token
// that the ServiceAccount plugin mounts (token_test.go), and the hash over the
// names of namespaces, which must be one.
func comparable(t *testing.T, pod *corev1.Pod) told {
	t.Helper()
	pod = pod.DeepCopy()
	out := told{GenerateName: pod.GenerateName, Labels: pod.Labels, Annotations: pod.Annotations, QOSClass: pod.Status.QOSClass}
	if value, ok := pod.Annotations[v1alpha1.InjectionAnnotation]; ok {
		injection, err := inject.ParseInjection(value)
		if err != nil || !sha256Hash.MatchString(injection.Hash) {
			t.Errorf("got injection %+v, %v", injection, err)
		}
		injection.Hash = ""
		delete(out.Annotations, v1alpha1.InjectionAnnotation)
		out.Injection = injection
	}
	if len(out.Annotations) == 0 {
		out.Annotations = nil
	}
	withoutToken(&pod.Spec)
	out.Spec = pod.Spec
	return out
}

// withoutToken takes the token's volume out, and its mounts.
func withoutToken(spec *corev1.PodSpec) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, tokenVolumes) })
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = slices.DeleteFunc(list[i].VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, tokenVolumes) })
			if len(list[i].VolumeMounts) == 0 {
				list[i].VolumeMounts = nil
			}
		}
	}
	if len(spec.Volumes) == 0 {
		spec.Volumes = nil
	}
}
