// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestWhatWouldBeMadeInAPodsPlaceLacksWhatOthersAdded(t *testing.T) {
	token := corev1.Volume{Name: "kube-api-access-x7b2k", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}
	own := corev1.Volume{Name: "kube-api-access-mine", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	tokenMount := corev1.VolumeMount{Name: token.Name, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}
	ownMount := corev1.VolumeMount{Name: own.Name, MountPath: "/mine"}
	pod := podOf("StatefulSet", "apps/v1", map[string]string{"app": "x"})
	pod.OwnerReferences[0].BlockOwnerDeletion = new(true)
	pod.ResourceVersion, pod.Finalizers = "7", []string{"example.com/f"}
	pod.Annotations = map[string]string{"a": "b", v1alpha1.RouterDigestAnnotation: "d"}
	pod.Spec = corev1.PodSpec{
		NodeName: "n1", Hostname: "agent-0", PriorityClassName: "high", Priority: new(int32(1000)), PreemptionPolicy: new(corev1.PreemptLowerPriority),
		RuntimeClassName: new("kata"), Overhead: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}},
		InitContainers:      []corev1.Container{{Name: "init", VolumeMounts: []corev1.VolumeMount{tokenMount}}},
		Containers:          []corev1.Container{{Name: "agent", VolumeMounts: []corev1.VolumeMount{ownMount, tokenMount}}},
		Volumes:             []corev1.Volume{own, token},
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	before := pod.DeepCopy()
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-x-", Namespace: "team", Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "agent", UID: "owner", Controller: new(true)}}},
		Spec: corev1.PodSpec{
			Hostname: "agent-0", PriorityClassName: "high", RuntimeClassName: new("kata"),
			InitContainers: []corev1.Container{{Name: "init", VolumeMounts: []corev1.VolumeMount{}}},
			Containers:     []corev1.Container{{Name: "agent", VolumeMounts: []corev1.VolumeMount{ownMount}}},
			Volumes:        []corev1.Volume{own},
		},
	}
	if diff := cmp.Diff(want, standIn(pod)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, pod); diff != "" {
		t.Errorf("the pod itself was changed:\n%s", diff)
	}
	pod.GenerateName = "agent-abc-"
	if got := standIn(pod).GenerateName; got != "agent-abc-" {
		t.Errorf("got the name %q", got)
	}
}
