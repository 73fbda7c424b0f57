// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// Injection is the value of v1alpha1.InjectionAnnotation, as JSON.
type Injection struct {
	// Profile is the profile in the router document that serves the pod.
	Profile string `json:"profile"`
	// Hash is the Plan's.
	Hash string `json:"hash"`
	// Image is the runtime's image, as this project asked for it.
	Image string `json:"image,omitempty"`
	// Keys are the keys that are mounted, named by compile.KeyName.
	Keys []string `json:"keys,omitempty"`
}

// ParseInjection reads the annotation of an injected pod.
func ParseInjection(value string) (Injection, error) {
	var i Injection
	if err := json.Unmarshal([]byte(value), &i); err != nil {
		return Injection{}, &AnnotationError{Err: err}
	}
	return i, nil
}

// AnnotationError is an annotation that is not what injection writes.
type AnnotationError struct{ Err error }

// Error names the annotation.
func (e *AnnotationError) Error() string {
	return "reading annotation " + v1alpha1.InjectionAnnotation + ": " + e.Err.Error()
}

// Unwrap is the decoder's error.
func (e *AnnotationError) Unwrap() error { return e.Err }

// injectionOf is what an earlier injection left on a pod.
func injectionOf(pod *corev1.Pod) (Injection, bool) {
	value, ok := pod.Annotations[v1alpha1.InjectionAnnotation]
	if !ok {
		return Injection{}, false
	}
	i, err := ParseInjection(value)
	return i, err == nil && i.Hash != ""
}

// Apply returns the pod that a plan makes; the argument is not changed. A plan
// that does not inject gives an equal pod.
//
// A container that an earlier Apply of the same plan put there is left as it is,
// since another webhook may have rewritten its image meanwhile; so are its
// volumes. Only what is missing is completed.
func Apply(pod *corev1.Pod, plan Plan) *corev1.Pod {
	out := pod.DeepCopy()
	if !plan.Inject {
		return out
	}
	before, ok := injectionOf(pod)
	same := ok && before.Hash == plan.Hash
	applyContainer(&out.Spec, &plan, same)
	if ok && !same {
		dropStaleVolumes(&out.Spec, &plan)
	}
	applyVolumes(&out.Spec, &plan, same)
	applyPullSecrets(&out.Spec, plan.PullSecrets)
	for i := range out.Spec.Containers {
		withAgentEnv(&out.Spec.Containers[i], &plan)
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[v1alpha1.InjectedLabel] = "true"
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	if !same || before.Profile != plan.Profile {
		out.Annotations[v1alpha1.InjectionAnnotation] = annotation(plan)
	}
	return out
}

func annotation(plan Plan) string {
	data, err := json.Marshal(Injection{Profile: plan.Profile, Hash: plan.Hash, Image: plan.Container.Image, Keys: mountedKeys(plan.Volumes)})
	if err != nil {
		// Strings are always JSON.
		panic("inject: encoding the annotation: " + err.Error())
	}
	return string(data)
}

// mountedKeys names the keys among a plan's volumes.
func mountedKeys(volumes []corev1.Volume) []string {
	var names []string
	for i := range volumes {
		if volumes[i].Name != secretsVolume || volumes[i].Projected == nil {
			continue
		}
		for _, source := range volumes[i].Projected.Sources {
			for _, item := range source.Secret.Items {
				names = append(names, compile.KeyName(item.Path, source.Secret.Name, item.Key))
			}
		}
	}
	return names
}

// applyContainer appends the container after the pod's own init containers, or
// replaces an outdated one where it stands.
func applyContainer(spec *corev1.PodSpec, plan *Plan, same bool) {
	i := slices.IndexFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == ContainerName })
	switch {
	case i < 0:
		spec.InitContainers = append(spec.InitContainers, *plan.Container.DeepCopy())
	case !same:
		spec.InitContainers[i] = *plan.Container.DeepCopy()
	}
}

// dropStaleVolumes removes what an earlier injection added and this one does not want.
func dropStaleVolumes(spec *corev1.PodSpec, plan *Plan) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		wanted := slices.ContainsFunc(plan.Volumes, func(w corev1.Volume) bool { return w.Name == v.Name })
		return isOurVolume(v.Name) && !wanted
	})
}

// applyVolumes adds the volumes that are missing and replaces outdated ones.
func applyVolumes(spec *corev1.PodSpec, plan *Plan, same bool) {
	for j := range plan.Volumes {
		want := &plan.Volumes[j]
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == want.Name })
		switch {
		case i < 0:
			spec.Volumes = append(spec.Volumes, *want.DeepCopy())
		case !same:
			spec.Volumes[i] = *want.DeepCopy()
		}
	}
}

func applyPullSecrets(spec *corev1.PodSpec, names []string) {
	for _, name := range names {
		ref := corev1.LocalObjectReference{Name: name}
		if !slices.Contains(spec.ImagePullSecrets, ref) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, ref)
		}
	}
}
