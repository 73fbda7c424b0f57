// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// worlds are the inputs of all golden cases, for pods that are not theirs.
func worlds(t testing.TB) []Input {
	t.Helper()
	var out []Input
	for _, name := range goldenNames(t) {
		out = append(out, readGolden(t, filepath.Join(goldenFolder, name)))
	}
	return out
}

// checkUntouched fails when injection changed anything that is not its own: all
// that it may do is to add, and to replace what an earlier injection added.
func checkUntouched(t *testing.T, in Input) {
	t.Helper()
	after, _ := inject(in)
	before := in.Pod
	for what, labels := range map[string][2]map[string]string{
		v1alpha1.InjectedLabel:       {before.Labels, after.Labels},
		v1alpha1.InjectionAnnotation: {before.Annotations, after.Annotations},
	} {
		if !maps.Equal(without(labels[0], what), without(labels[1], what)) {
			t.Errorf("labels or annotations besides %s changed: %v became %v", what, labels[0], labels[1])
		}
	}
	named := func(c corev1.Container) bool { return c.Name == ContainerName }
	owned := func(v corev1.Volume) bool { return isOurVolume(v.Name) }
	left, right := before.DeepCopy(), after.DeepCopy()
	for _, pod := range []*corev1.Pod{left, right} {
		pod.Labels, pod.Annotations = nil, nil
		pod.Spec.InitContainers = append([]corev1.Container{}, slices.DeleteFunc(pod.Spec.InitContainers, named)...)
		pod.Spec.Volumes = append([]corev1.Volume{}, slices.DeleteFunc(pod.Spec.Volumes, owned)...)
	}
	right.Spec.ImagePullSecrets = right.Spec.ImagePullSecrets[:len(left.Spec.ImagePullSecrets)]
	for i := range right.Spec.Containers {
		user, c := &left.Spec.Containers[i], &right.Spec.Containers[i]
		added := c.Env[:len(c.Env)-len(user.Env)]
		for _, v := range added {
			if hasEnv(user.Env, v.Name) || len(user.EnvFrom) > 0 || !addedNames()[v.Name] {
				t.Errorf("container %q got variable %s", c.Name, v.Name)
			}
		}
		c.Env, c.EnvFrom = c.Env[len(added):], c.EnvFrom[len(c.EnvFrom)-len(user.EnvFrom):]
		for _, list := range []*corev1.Container{user, c} {
			list.Env, list.EnvFrom = append([]corev1.EnvVar{}, list.Env...), append([]corev1.EnvFromSource{}, list.EnvFrom...)
		}
	}
	left.Spec.ImagePullSecrets = append([]corev1.LocalObjectReference{}, left.Spec.ImagePullSecrets...)
	right.Spec.ImagePullSecrets = append([]corev1.LocalObjectReference{}, right.Spec.ImagePullSecrets...)
	if diff := cmp.Diff(left, right); diff != "" {
		t.Errorf("what the user set was changed (-before +after):\n%s", diff)
	}
}

func without(m map[string]string, key string) map[string]string {
	m = maps.Clone(m)
	delete(m, key)
	return m
}

// checkMountpoints fails when the container could not start: its workspaces are
// read-only, so what is mounted within one must have a directory there, and
// nothing but the subPaths of the container's own mounts is known to be there.
func checkMountpoints(t *testing.T, in Input) {
	t.Helper()
	_, plan := inject(in)
	type directory struct{ volume, at string }
	made := map[directory]bool{}
	mounts := plan.Container.VolumeMounts
	at := func(m *corev1.VolumeMount) string {
		if m.SubPathExpr != "" {
			return m.SubPathExpr
		}
		return m.SubPath
	}
	for i := range mounts {
		made[directory{mounts[i].Name, path.Clean(at(&mounts[i]))}] = true
	}
	for i := range mounts {
		outer := outerOf(mounts, mounts[i].MountPath)
		if outer == nil {
			continue
		}
		inside := strings.TrimPrefix(mounts[i].MountPath, outer.MountPath)
		if outer.SubPathExpr != "" {
			inside = literal(inside)
		}
		if want := (directory{outer.Name, path.Clean(strings.TrimPrefix(at(outer)+inside, "/"))}); !made[want] {
			t.Errorf("nothing makes %s of volume %s, on which %s is mounted", want.at, want.volume, mounts[i].MountPath)
		}
	}
}

func TestNothingOfTheUsersIsTouchedInAnyGoldenPod(t *testing.T) {
	for i, in := range worlds(t) {
		t.Run(goldenNames(t)[i], func(t *testing.T) {
			checkUntouched(t, in)
			checkMountpoints(t, in)
		})
	}
}

// TestAnyRandomPodInAnyWorld puts random pods among the objects of all golden cases.
func TestAnyRandomPodInAnyWorld(t *testing.T) {
	all := worlds(t)
	injected, nested := 0, 0
	for seed := range int64(500) {
		in := all[int(seed)%len(all)]
		in.Pod = randomPod(seed)
		checkIdempotent(t, in)
		checkPatch(t, in)
		checkUntouched(t, in)
		checkMountpoints(t, in)
		if _, plan := inject(in); plan.Inject {
			injected++
			if slices.ContainsFunc(plan.Container.VolumeMounts, func(m corev1.VolumeMount) bool { return within(m.MountPath, mountpointsDirectory) }) {
				nested++
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if injected < 100 || nested < 20 {
		t.Errorf("of 500 random pods %d were injected, %d with workspaces within workspaces: the generator has lost its reach", injected, nested)
	}
}
