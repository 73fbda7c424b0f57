// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// tokenVolume begins the name of the volume that the API server's ServiceAccount
// admission adds (k8s.io/kubernetes plugin/pkg/admission/serviceaccount).
const tokenVolume = "kube-api-access-"

// standIn is the pod that a pod's owner would make in its place, as far as the
// pod tells: without what the scheduler, the kubelet and the API server's own
// admission added, which its admission would refuse or add again. It has no name
// of its own, since the pod still has it.
func standIn(pod *corev1.Pod) *corev1.Pod {
	made := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: pod.GenerateName,
			Namespace:    pod.Namespace,
			Labels:       pod.Labels,
			Annotations:  pod.Annotations,
		},
		Spec: pod.Spec,
	}
	made = made.DeepCopy()
	if made.GenerateName == "" {
		made.GenerateName = pod.Name + "-"
	}
	delete(made.Labels, v1alpha1.InjectedLabel)
	delete(made.Annotations, v1alpha1.InjectionAnnotation)
	delete(made.Annotations, v1alpha1.RouterDigestAnnotation)
	for _, ref := range pod.OwnerReferences {
		// Blocking an owner's deletion needs a right of its own, and changes nothing here.
		ref.BlockOwnerDeletion = nil
		made.OwnerReferences = append(made.OwnerReferences, ref)
	}
	spec := &made.Spec
	spec.NodeName, spec.EphemeralContainers = "", nil
	spec.Priority, spec.PreemptionPolicy = nil, nil // the priority class gives them
	if spec.RuntimeClassName != nil {
		spec.Overhead = nil // the runtime class gives it
	}
	dropToken(spec)
	return made
}

// dropToken takes off the service account's token as admission mounts it.
func dropToken(spec *corev1.PodSpec) {
	var names []string
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		if !strings.HasPrefix(v.Name, tokenVolume) || v.Projected == nil {
			return false
		}
		names = append(names, v.Name)
		return true
	})
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = slices.DeleteFunc(list[i].VolumeMounts, func(m corev1.VolumeMount) bool { return slices.Contains(names, m.Name) })
		}
	}
}

// groupOf is the group of an apiVersion; empty for the core group and for what is none.
func groupOf(apiVersion string) string {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return version.Group
}
