// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// podAnnotations are all that the cache keeps of a pod's annotations.
var podAnnotations = []string{v1alpha1.PolicyAnnotation, v1alpha1.InjectionAnnotation, v1alpha1.RouterDigestAnnotation}

// trimPod leaves of a pod's metadata what is used.
func trimPod(object any) (any, error) {
	pod, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	kept := make(map[string]string, len(podAnnotations))
	for _, name := range podAnnotations {
		if value, ok := pod.GetAnnotations()[name]; ok {
			kept[name] = value
		}
	}
	pod.SetAnnotations(kept)
	pod.SetManagedFields(nil)
	pod.SetOwnerReferences(nil)
	pod.SetFinalizers(nil)
	return object, nil
}

// trimNamespace leaves of a namespace's metadata what is used.
func trimNamespace(object any) (any, error) {
	if ns, ok := object.(metav1.Object); ok {
		ns.SetAnnotations(nil)
		ns.SetManagedFields(nil)
		ns.SetFinalizers(nil)
	}
	return object, nil
}

// listPods lists the metadata of a namespace's injected pods that have not
// ended, the newest first.
func listPods(ctx context.Context, r client.Reader, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := r.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing injected pods of namespace %s: %w", namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// injection is what injection noted on a pod: see inject.Injection.
type injection struct {
	Profile string   `json:"profile"`
	Image   string   `json:"image"`
	Keys    []string `json:"keys"`
}

// injectionOf reads what injection noted; nothing when that does not parse.
func injectionOf(pod *metav1.PartialObjectMetadata) injection {
	var i injection
	if json.Unmarshal([]byte(pod.Annotations[v1alpha1.InjectionAnnotation]), &i) != nil {
		return injection{}
	}
	return i
}

// today is what a namespace's pods are held against.
type today struct {
	// policies are those that may serve them, as compile.Servers gives them.
	policies []v1alpha1.VisionPolicy
	// keys are those that pods of a profile mount, by profile ID.
	keys map[string][]string
	// image is the runtime's; empty when images do not count.
	image string
	// stamped reports whether a pod was told of the router.
	stamped func(*metav1.PartialObjectMetadata) bool
}

// outdated reports whether a pod has yet to be told of the router, or needs a
// restart: it would get another profile or image, or it does not mount a key.
// What injection did not note is not held against it.
func (t *today) outdated(pod *metav1.PartialObjectMetadata, has injection) bool {
	if !t.stamped(pod) {
		return true
	}
	profile, serving := compile.Serving(t.policies, pod.Labels, pod.Annotations[v1alpha1.PolicyAnnotation])
	if serving.OK && profile != has.Profile {
		return true
	}
	if has.Image == "" { // noted by an older version
		return false
	}
	unmounted := func(key string) bool { return !slices.Contains(has.Keys, key) }
	return t.image != "" && t.image != has.Image || slices.ContainsFunc(t.keys[has.Profile], unmounted)
}

// countPods counts pods by the profile that serves them.
func countPods(pods []metav1.PartialObjectMetadata, t today) map[string]v1alpha1.PodCounts {
	counts := map[string]v1alpha1.PodCounts{}
	for i := range pods {
		has := injectionOf(&pods[i])
		c := counts[has.Profile]
		if c.Matched++; t.outdated(&pods[i], has) {
			c.Outdated++
		}
		counts[has.Profile] = c
	}
	return counts
}

// podNews passes what stamps and counts depend on of a pod. An annotation that
// is as expected is no news: we wrote it.
func podNews(expected func(*metav1.PartialObjectMetadata) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		if before[v1alpha1.PolicyAnnotation] != after[v1alpha1.PolicyAnnotation] ||
			before[v1alpha1.InjectionAnnotation] != after[v1alpha1.InjectionAnnotation] || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
			return true
		}
		pod, ok := e.ObjectNew.(*metav1.PartialObjectMetadata)
		return ok && before[v1alpha1.RouterDigestAnnotation] != after[v1alpha1.RouterDigestAnnotation] && !expected(pod)
	}}
}
