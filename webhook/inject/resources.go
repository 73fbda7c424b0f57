// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultResources are what the runtime asks for where neither the policy nor
// the operator says otherwise: 10m of CPU and 32Mi of memory, at most one CPU and
// 256Mi of memory. A quota of a namespace on limits.cpu refuses every container
// without a limit, and one CPU is more than the runtime takes for long. The
// runtime sizes itself by the limit of memory: a third of what it leaves beside 64 MiB is the
// most that it holds of images at once, whatever the number of requests, and as much
// of model requests; the last third is for the smaller copy of an image, or for Go's
// collector. The 64 MiB are for replies, the cache in memory and the program itself.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse("32Mi"),
		},
		Limits: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("1"),
			corev1.ResourceMemory: resource.MustParse("256Mi"),
		},
	}
}

// guaranteedCPU is the CPU of a runtime in a Guaranteed pod that nothing gives a
// CPU limit: with a limit as small as the default request it would be throttled
// in every call.
var guaranteedCPU = resource.MustParse("100m")

// resources are, of each resource, what the policy says, else the operator, else the
// defaults; as requests equal to limits where anything else would cost the pod its
// Guaranteed class; and within the pod's where it has resources as a whole.
func (d *decision) resources() corev1.ResourceRequirements {
	if r, ok := asWhole(d.Pod); ok {
		if d.shape.Resources != nil {
			d.tell(ReasonResourcesLeftToPod, "the pod has resources as a whole; those of the policy's runtime.resources are not set")
		}
		return d.withinPod(r)
	}
	classed := guaranteed(d.Pod)
	want := DefaultResources()
	if classed {
		delete(want.Limits, corev1.ResourceCPU) // it would be requested, too
	}
	for _, said := range []*corev1.ResourceRequirements{d.Settings.Resources, d.shape.Resources} {
		if said != nil {
			overlay(&want, said)
		}
	}
	d.addEphemeralStorage(&want)
	if classed {
		equalise(&want)
	} else {
		d.limitLikeOthers(&want)
	}
	d.fit(&want)
	return want
}

// asWhole are the resources that a pod has as a whole, if it has some.
func asWhole(pod *corev1.Pod) (*corev1.ResourceRequirements, bool) {
	r := pod.Spec.Resources
	return r, r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0)
}

// limitLikeOthers limits CPU and memory, where the policy or the operator leave that
// out, only in a pod whose every other container limits them, as a quota on limits
// demands: by the default, or by what is requested where that is more.
func (d *decision) limitLikeOthers(want *corev1.ResourceRequirements) {
	for name, limit := range DefaultResources().Limits {
		if _, ok := want.Limits[name]; !ok && everyLimit(d.Pod, name) {
			set(&want.Limits, name, larger(limit, want.Requests[name]))
		}
	}
}

// withinPod are the resources of the runtime in a pod that has resources as a
// whole, whose requests are at least those of all containers together: none. In a
// namespace with a LimitRange for containers, which would put its defaults there,
// it asks for nothing explicitly, and is limited to what the pod is.
func (d *decision) withinPod(whole *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if !slices.ContainsFunc(d.LimitRanges, boundsContainers) {
		return d.weightless()
	}
	want := DefaultResources()
	for name, limit := range want.Limits {
		set(&want.Requests, name, resource.Quantity{Format: limit.Format})
		if most, ok := whole.Limits[name]; ok && most.Cmp(limit) < 0 {
			set(&want.Limits, name, most.DeepCopy())
		}
	}
	d.fit(&want)
	return want
}

// weightless are zero of the resources that every other container limits: where the
// pod as a whole has no such limit, the API server makes it, since 1.37, of those of
// its containers, but only if all of them have one. Zero adds nothing to that, and a
// kubelet takes it for the pod's limit. It is there with a limit of the pod's as well,
// so that a copy of the pod, which has that limit, is the same.
func (d *decision) weightless() corev1.ResourceRequirements {
	var want corev1.ResourceRequirements
	for name, q := range DefaultResources().Limits {
		if everyLimit(d.Pod, name) {
			set(&want.Requests, name, resource.Quantity{Format: q.Format})
			set(&want.Limits, name, resource.Quantity{Format: q.Format})
		}
	}
	return want
}

// overlay changes what is wanted of the resources of which more is said. One with a
// request alone has no limit then, which was left out on purpose; but see
// limitLikeOthers. Claims are the pod's, which may have none.
func overlay(want, said *corev1.ResourceRequirements) {
	for _, list := range []corev1.ResourceList{said.Requests, said.Limits} {
		for name := range list {
			delete(want.Requests, name)
			delete(want.Limits, name)
		}
	}
	for name, q := range said.Requests {
		set(&want.Requests, name, q.DeepCopy())
	}
	for name, q := range said.Limits {
		set(&want.Limits, name, q.DeepCopy())
	}
}

// ephemeralRequest is what the runtime asks for of a node's disk, where it must ask.
var ephemeralRequest = resource.MustParse("64Mi")

// addEphemeralStorage limits the runtime's part of the node's disk only where every
// container of the pod has such a limit, as a quota on it demands: the kubelet
// holds the whole pod to the sum of the limits that there are, and ours alone would
// become the agent's. It covers the cache volume and as much again for logs.
func (d *decision) addEphemeralStorage(want *corev1.ResourceRequirements) {
	if _, ok := want.Limits[corev1.ResourceEphemeralStorage]; ok || !everyLimit(d.Pod, corev1.ResourceEphemeralStorage) {
		return
	}
	limit := cacheSize(d.shape.CacheMaxBytes)
	limit.Add(ephemeralRequest)
	set(&want.Limits, corev1.ResourceEphemeralStorage, limit)
	if _, ok := want.Requests[corev1.ResourceEphemeralStorage]; !ok {
		set(&want.Requests, corev1.ResourceEphemeralStorage, ephemeralRequest)
	}
}

// everyLimit reports whether every container but ours limits a resource.
func everyLimit(pod *corev1.Pod, name corev1.ResourceName) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if _, ok := list[i].Resources.Limits[name]; !ok && list[i].Name != ContainerName {
				return false
			}
		}
	}
	return len(pod.Spec.Containers) > 0
}

func set(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = q
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
		set(&r.Limits, name, limit)
		set(&r.Requests, name, limit)
	}
}
