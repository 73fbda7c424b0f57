// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultResources are what the runtime asks for where neither the policy nor
// the operator says otherwise: 10m of CPU and 32Mi of memory, at most 256Mi of
// memory, and no CPU limit, which would only slow the agent's calls down. The
// runtime sizes itself by that limit: a third of what it leaves beside 64 MiB is the
// most that it holds of images at once, whatever the number of requests, and as much
// of model requests; the last third is for the smaller copy of an image, or for Go's
// collector. The 64 MiB are for replies, the cache in memory and the program itself.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse("32Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

// guaranteedCPU is the CPU of a runtime in a Guaranteed pod that nothing gives a
// CPU limit: with a limit as small as the default request it would be throttled
// in every call.
var guaranteedCPU = resource.MustParse("100m")

// resources are the policy's, else the operator's, else the defaults; as
// requests equal to limits where anything else would cost the pod its Guaranteed
// class; and none where the pod has resources as a whole.
func (d *decision) resources() corev1.ResourceRequirements {
	if r := d.Pod.Spec.Resources; r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0) {
		if d.shape.Resources != nil {
			d.tell(ReasonResourcesLeftToPod, "the pod has resources as a whole; those of the policy's runtime.resources are not set")
		}
		return corev1.ResourceRequirements{}
	}
	var want corev1.ResourceRequirements
	switch {
	case d.shape.Resources != nil:
		want = *d.shape.Resources.DeepCopy()
	case d.Settings.Resources != nil:
		want = *d.Settings.Resources.DeepCopy()
	default:
		want = DefaultResources()
	}
	want.Claims = nil // claims are the pod's, which may have none
	if guaranteed(d.Pod) {
		equalise(&want)
	}
	return want
}

// guaranteed reports whether every container but ours has requests equal to
// limits for CPU and memory, by the rules of Kubernetes' quality of service classes.
func guaranteed(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name != ContainerName && !containerGuaranteed(&list[i].Resources) {
				return false
			}
		}
	}
	return len(pod.Spec.Containers) > 0
}

func containerGuaranteed(r *corev1.ResourceRequirements) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, ok := r.Limits[name]
		if !ok || limit.IsZero() {
			return false
		}
		if request, ok := r.Requests[name]; ok && request.Cmp(limit) != 0 {
			return false
		}
	}
	return true
}

// equalise gives CPU and memory a limit and a request equal to it.
func equalise(r *corev1.ResourceRequirements) {
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	fallback := map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceCPU:    guaranteedCPU,
		corev1.ResourceMemory: DefaultResources().Limits[corev1.ResourceMemory],
	}
	for name, atLeast := range fallback {
		limit, ok := r.Limits[name]
		if !ok || limit.IsZero() {
			limit = r.Requests[name]
			if limit.Cmp(atLeast) < 0 {
				limit = atLeast.DeepCopy()
			}
		}
		r.Limits[name], r.Requests[name] = limit, limit
	}
}
