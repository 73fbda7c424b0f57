// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// noted reports whether a step found a reason.
func noted(plan Plan, reason Reason) bool {
	return slices.ContainsFunc(plan.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.Notes, func(n Note) bool { return n.Reason == reason })
	})
}

func TestMountsAtOneWorkspaceConflictUnlessTheyAreTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		agent, other corev1.VolumeMount
		conflict     bool
	}{
		"the same volume":                           {corev1.VolumeMount{Name: "work"}, corev1.VolumeMount{Name: "work"}, false},
		"the same, read-only there":                 {corev1.VolumeMount{Name: "work"}, corev1.VolumeMount{Name: "work", ReadOnly: true}, false},
		"another volume":                            {corev1.VolumeMount{Name: "work"}, corev1.VolumeMount{Name: "more"}, true},
		"another directory of the volume":           {corev1.VolumeMount{Name: "work", SubPath: "a"}, corev1.VolumeMount{Name: "work", SubPath: "b"}, true},
		"a directory that only the other one takes": {corev1.VolumeMount{Name: "work"}, corev1.VolumeMount{Name: "work", SubPath: "b"}, true},
		"another expression":                        {corev1.VolumeMount{Name: "work", SubPathExpr: "a"}, corev1.VolumeMount{Name: "work", SubPathExpr: "b"}, true},
		"the same expression":                       {corev1.VolumeMount{Name: "work", SubPathExpr: "a"}, corev1.VolumeMount{Name: "work", SubPathExpr: "a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := largeInput()
			c.agent.MountPath, c.other.MountPath = "/w", "/w/"
			in.Pod.Spec.Volumes = append(in.Pod.Spec.Volumes, corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			in.Pod.Spec.Containers = []corev1.Container{
				{Name: "agent", VolumeMounts: []corev1.VolumeMount{c.agent}}, {Name: "other", VolumeMounts: []corev1.VolumeMount{c.other}},
			}
			if plan := Decide(in); noted(plan, ReasonWorkspaceConflict) != c.conflict || plan.Inject == c.conflict {
				t.Errorf("injected %v, found %v", plan.Inject, plan.Steps)
			}
		})
	}
}

func TestAReadOnlyClaimIsAWorkspaceOnlyWhereThePolicyListsIt(t *testing.T) {
	in := largeInput()
	in.Pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c", ReadOnly: true}}
	if got := directories(Decide(in)); len(got) != 0 {
		t.Errorf("without a list, workspaces are %v", got)
	}
	shape := in.Compiled.Pods["policy/default"]
	shape.Workspaces = []string{"/w"}
	in.Compiled.Pods["policy/default"] = shape
	if got := directories(Decide(in)); !slices.Equal(got, []string{"/w"}) {
		t.Errorf("with a list, workspaces are %v", got)
	}
}

func TestSharedProcessesAreTellableApartByUser(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		pod, agent, other *int64
		hostPID, share    bool
		told              bool
	}{
		"nothing is shared":                  {agent: new(int64(1000))},
		"the agent is the runtime's user":    {agent: new(int64(1000)), share: true, told: true},
		"the same with the node's processes": {agent: new(int64(1000)), hostPID: true, told: true},
		"nobody knows who is who":            {share: true, told: true},
		"the policy's user beside others":    {pod: new(int64(1000)), other: new(int64(1001)), agent: new(int64(1002)), share: true, told: true},
		"root, with a runtime that is not":   {other: new(int64(0)), share: true, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := largeInput()
			spec := &in.Pod.Spec
			spec.HostPID = c.hostPID
			if c.share {
				spec.ShareProcessNamespace = &yes
			}
			spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: c.pod}
			spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: c.agent}
			spec.Containers = append(spec.Containers, corev1.Container{Name: "other", SecurityContext: &corev1.SecurityContext{RunAsUser: c.other}})
			if plan := Decide(in); noted(plan, ReasonSharedProcesses) != c.told {
				t.Errorf("told %v, want %v: %v", !c.told, c.told, plan.Notes)
			}
		})
	}
}

// TestOnlyRootAndTheRuntimesUserReachIntoIt has pods without a workspace, where the
// runtime is nobody's user but the policy's.
func TestOnlyRootAndTheRuntimesUserReachIntoIt(t *testing.T) {
	yes := true
	for theirs, told := range map[int64]bool{0: true, 1000: true, 1001: false} {
		in := largeInput()
		in.Pod.Spec.Volumes = nil
		in.Pod.Spec.Containers = []corev1.Container{{Name: "agent", SecurityContext: &corev1.SecurityContext{RunAsUser: &theirs}}}
		in.Pod.Spec.ShareProcessNamespace = &yes
		shape := in.Compiled.Pods["policy/default"]
		shape.RunAsUser = new(int64(1000))
		in.Compiled.Pods["policy/default"] = shape
		if got := noted(Decide(in), ReasonSharedProcesses); got != told {
			t.Errorf("user %d beside the runtime's 1000: told %v, want %v", theirs, got, told)
		}
	}
}

func TestThePolicyIsObeyedBeforeTheOperatorAndBothBeforeTheDefaults(t *testing.T) {
	in := largeInput()
	list := func(name corev1.ResourceName, value string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Limits: corev1.ResourceList{name: resource.MustParse(value)}}
	}
	in.Settings.Resources = list(corev1.ResourceMemory, "300Mi")
	in.Settings.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("3")
	shape := in.Compiled.Pods["policy/default"]
	shape.Resources = list(corev1.ResourceMemory, "400Mi")
	in.Compiled.Pods["policy/default"] = shape
	got := Decide(in).Container.Resources
	memory, cpu := got.Limits[corev1.ResourceMemory], got.Limits[corev1.ResourceCPU]
	if memory.String() != "400Mi" || cpu.String() != "3" || len(got.Requests) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestAConfigMapOfOursUnderAPrefixIsTheUsersOwnSource(t *testing.T) {
	in := largeInput()
	users := corev1.EnvFromSource{Prefix: "X_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: compile.EnvConfigMapName}}}
	in.Pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{users}
	after, _ := inject(in)
	if got := after.Spec.Containers[0].EnvFrom; len(got) != 2 || !isSource(got[0], compile.EnvConfigMapName) || got[1].Prefix != "X_" {
		t.Errorf("got %v, want ours without a prefix before it", got)
	}
}

func TestVolumesOfAnOlderInjectionAreMadeAnew(t *testing.T) {
	in := largeInput()
	before, plan := inject(in)
	older := before.DeepCopy()
	older.Annotations[v1alpha1.InjectionAnnotation] = `{"hash":"sha256:old"}`
	for i := range older.Spec.Volumes {
		if v := &older.Spec.Volumes[i]; v.Name == cacheVolume {
			v.EmptyDir.SizeLimit = nil
		}
	}
	if diff := cmp.Diff(before, Apply(older, plan)); diff != "" {
		t.Errorf("the pod (-made anew +mended):\n%s", diff)
	}
}

func TestARatioForPodsIsAskedOfAPodWithResourcesAsAWhole(t *testing.T) {
	in := largeInput()
	memory := func(value string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(value)}
	}
	in.Pod.Spec.Resources = &corev1.ResourceRequirements{Requests: memory("100Mi"), Limits: memory("100Mi")}
	in.LimitRanges = []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Max: memory("1Gi")}, {Type: corev1.LimitTypePod, MaxLimitRequestRatio: memory("2")},
	}}}}
	got := Decide(in).Container.Resources
	if request, limit := got.Requests[corev1.ResourceMemory], got.Limits[corev1.ResourceMemory]; !request.IsZero() || limit.String() != "100Mi" {
		t.Errorf("the runtime has %v, want no request of its own, and the pod's limit", got)
	}
}

func TestAStepIsWhatItsWorstFindingIs(t *testing.T) {
	in := withTwoProviders(t, v1alpha1.AdmissionWarn)
	in.MissingKeys = map[Key]Note{}
	for _, key := range Decide(in).Keys {
		in.MissingKeys[key] = Note{Reason: v1alpha1.ReasonSecretNotFound, Message: "gone"}
	}
	for _, step := range Decide(in).Steps {
		if step.Check == "Credentials" && (step.Outcome != Failed || len(step.Notes) != 2) {
			t.Errorf("got %s %v, want Failed with a lack and then a word", step.Outcome, step.Notes)
		}
	}
}
