// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// largeInput is a pod with one emptyDir at /w, in a namespace with one policy.
func largeInput() Input {
	policies := []v1alpha1.VisionPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "team"}}}
	return Input{
		Namespace: "team", Policies: policies, Settings: Settings{Image: "runtime"},
		Compiled: compile.Compile(compile.Input{Namespace: "team", Policies: policies}),
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.InjectLabel: v1alpha1.InjectEnabled}, Annotations: map[string]string{}},
			Spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				Containers: []corev1.Container{{Name: "agent", VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/w"}}}},
			},
		},
	}
}

func directories(plan Plan) []string {
	var out []string
	for i, arg := range plan.Container.Args {
		if arg == "--workspace" {
			out = append(out, plan.Container.Args[i+1])
		}
	}
	return out
}

func told(plan Plan, part string) bool {
	return slices.ContainsFunc(plan.Notes, func(n Note) bool { return n.Reason == ReasonWorkspaceRefused && strings.Contains(n.Message, part) })
}

func TestOnlyTheFirstDirectoriesOfAnAnnotationCount(t *testing.T) {
	in := largeInput()
	var dirs []string
	for i := range maxAnnotated + 1 {
		dirs = append(dirs, fmt.Sprintf("/w/%03d", i))
	}
	in.Pod.Annotations[v1alpha1.WorkspacesAnnotation] = strings.Join(dirs, ",")
	plan := Decide(in)
	if diff := cmp.Diff(dirs[:maxAnnotated], directories(plan)); diff != "" {
		t.Errorf("workspaces (-want +got):\n%s", diff)
	}
	if !told(plan, "only the first 64 directories count") {
		t.Errorf("nobody is told: %v", plan.Notes)
	}
}

func TestADirectoryLongerThanAnyPathIsRefusedAndNotRepeated(t *testing.T) {
	in := largeInput()
	in.Pod.Annotations[v1alpha1.WorkspacesAnnotation] = "/w/a,/w" + strings.Repeat("/b", maxPath)
	plan := Decide(in)
	if got := directories(plan); !slices.Equal(got, []string{"/w/a"}) {
		t.Errorf("workspaces are %v", got)
	}
	if !told(plan, "a directory of 8194 bytes") {
		t.Errorf("nobody is told: %v", plan.Notes)
	}
}

func TestAContainerWithTooManyMountsHasNoWorkspace(t *testing.T) {
	in := largeInput()
	agent := &in.Pod.Spec.Containers[0]
	for i := range maxMounts - 1 {
		agent.VolumeMounts = append(agent.VolumeMounts, corev1.VolumeMount{Name: "work", MountPath: fmt.Sprintf("/m/%d", i)})
	}
	if got := len(directories(Decide(in))); got != maxMounts {
		t.Fatalf("%d mounts give %d workspaces", maxMounts, got)
	}
	agent.VolumeMounts = append(agent.VolumeMounts, corev1.VolumeMount{Name: "work", MountPath: "/one/more"})
	plan := Decide(in)
	if got := directories(plan); !plan.Inject || len(got) != 0 || !told(plan, "more than 256 volume mounts") {
		t.Errorf("injected %v, workspaces %v, told %v", plan.Inject, got, plan.Notes)
	}
}

func TestAVariableThatIsSetAgainIsCopiedAsOftenAsItIsSet(t *testing.T) {
	in := largeInput()
	agent := &in.Pod.Spec.Containers[0]
	agent.Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "$(B)"}, {Name: "UNUSED", Value: "x"}, {Name: "B", Value: "2"}, {Name: "A", Value: "1"}}
	agent.VolumeMounts[0].SubPathExpr = "$(A)"
	want := []corev1.EnvVar{agent.Env[0], agent.Env[1], agent.Env[3], agent.Env[4]}
	if diff := cmp.Diff(want, Decide(in).Container.Env); diff != "" {
		t.Errorf("the runtime's env (-want +got):\n%s", diff)
	}
}

// BenchmarkInjectHostile injects pods made to keep admission busy, each about as
// large as the API server takes.
func BenchmarkInjectHostile(b *testing.B) {
	annotated, mounted, volumes, chained := largeInput(), largeInput(), largeInput(), largeInput()
	var value strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&value, "/%x,", i+4096)
	}
	annotated.Pod.Annotations[v1alpha1.WorkspacesAnnotation] = value.String()
	agent := &mounted.Pod.Spec.Containers[0]
	for i := range 30_000 {
		agent.VolumeMounts = append(agent.VolumeMounts, corev1.VolumeMount{Name: "work", MountPath: fmt.Sprintf("/m%d", i)})
		volumes.Pod.Spec.Volumes = append(volumes.Pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i)})
	}
	agent = &chained.Pod.Spec.Containers[0]
	agent.VolumeMounts[0].SubPathExpr = "$(V0)"
	for i := range 30_000 {
		agent.Env = append(agent.Env, corev1.EnvVar{Name: fmt.Sprintf("V%d", i), Value: fmt.Sprintf("$(V%d)", i+1)})
	}
	for _, c := range []struct {
		name string
		in   Input
	}{{"directories", annotated}, {"mounts", mounted}, {"volumes", volumes}, {"variables", chained}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				Patch(c.in.Pod, Apply(c.in.Pod, Decide(c.in)))
			}
		})
	}
}
