// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Operation is one step of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch is what turns the pod that was given to Apply into the pod that Apply
// returned. It names only what Apply touches: fields of a newer API server that
// these types do not know survive it, and it can be read by people.
func Patch(before, after *corev1.Pod) []Operation {
	p := &patch{}
	p.labels("/metadata/labels", before.Labels, after.Labels)
	p.labels("/metadata/annotations", before.Annotations, after.Annotations)
	patchNamed(p, "/spec/volumes", before.Spec.Volumes, after.Spec.Volumes, func(v corev1.Volume) string { return v.Name })
	patchNamed(p, "/spec/initContainers", before.Spec.InitContainers, after.Spec.InitContainers, func(c corev1.Container) string { return c.Name })
	patchNamed(p, "/spec/imagePullSecrets", before.Spec.ImagePullSecrets, after.Spec.ImagePullSecrets, func(r corev1.LocalObjectReference) string { return r.Name })
	for i := range before.Spec.Containers {
		b, a := &before.Spec.Containers[i], &after.Spec.Containers[i]
		at := fmt.Sprintf("/spec/containers/%d", i)
		patchFront(p, at+"/env", b.Env, a.Env)
		patchFront(p, at+"/envFrom", b.EnvFrom, a.EnvFrom)
	}
	return p.operations
}

type patch struct{ operations []Operation }

func (p *patch) do(op, path string, value any) {
	p.operations = append(p.operations, Operation{Op: op, Path: path, Value: value})
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// labels sets what was added or changed, in the order of keys.
func (p *patch) labels(at string, before, after map[string]string) {
	if len(before) == 0 && len(after) > 0 {
		p.do("add", at, after)
		return
	}
	var keys []string
	for k, v := range after {
		if old, ok := before[k]; !ok || old != v {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		p.do("add", at+"/"+pointerEscaper.Replace(k), after[k])
	}
}

// patchNamed removes the elements that are gone, replaces those that changed
// and appends those that are new. Apply keeps the others' order.
func patchNamed[T any](p *patch, at string, before, after []T, name func(T) string) {
	if len(before) == 0 {
		if len(after) > 0 {
			p.do("add", at, after)
		}
		return
	}
	kept, left := slices.Clone(before), make(map[string]bool, len(after))
	for i := range after {
		left[name(after[i])] = true
	}
	for i := len(before) - 1; i >= 0; i-- {
		if !left[name(before[i])] {
			p.do("remove", fmt.Sprintf("%s/%d", at, i), nil)
			kept = slices.Delete(kept, i, i+1)
		}
	}
	for i := range after {
		switch {
		case i >= len(kept):
			p.do("add", at+"/-", after[i])
		case !reflect.DeepEqual(kept[i], after[i]):
			p.do("replace", fmt.Sprintf("%s/%d", at, i), after[i])
		}
	}
}

// patchFront inserts what Apply put before the elements that were there.
func patchFront[T any](p *patch, at string, before, after []T) {
	added := len(after) - len(before)
	switch {
	case added <= 0:
	case len(before) == 0:
		p.do("add", at, after)
	default:
		for i := added - 1; i >= 0; i-- {
			p.do("add", at+"/0", after[i])
		}
	}
}
