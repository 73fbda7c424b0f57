// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

func TestPodsThatEndedOrEndOrMirrorAFileAreNotWatched(t *testing.T) {
	mirror, ending := podOf("", "", nil), podOf("", "", nil)
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	ending.DeletionTimestamp = new(metav1.NewTime(at(9)))
	phase := func(p corev1.PodPhase) *corev1.Pod {
		pod := podOf("", "", nil)
		pod.Status.Phase = p
		return pod
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a new one":             {phase(""), true},
		"one that waits":        {phase(corev1.PodPending), true},
		"one that runs":         {phase(corev1.PodRunning), true},
		"one of unknown phase":  {phase(corev1.PodUnknown), true},
		"one that is done":      {phase(corev1.PodSucceeded), false},
		"one that failed":       {phase(corev1.PodFailed), false},
		"one that ends":         {ending, false},
		"one that mirrors":      {mirror, false},
		"one of a Deployment's": {podOf("ReplicaSet", "apps/v1", nil), true},
	} {
		if got := watched(test.pod); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestWhatIsTheMatterWithAPodIsWhatAdmissionWouldSay(t *testing.T) {
	network := inject.Note{Reason: inject.ReasonHostNetwork, Message: "with hostNetwork"}
	port := inject.Note{Reason: inject.ReasonPortCollision, Message: "port 8970"}
	space := inject.Note{Reason: inject.ReasonNoWorkspace, Message: "upload only"}
	steps := []inject.Step{{Check: "OptIn"}, {Check: "Workspaces", Outcome: inject.Noted, Notes: []inject.Note{space}},
		{Check: "HostNetwork", Outcome: inject.Failed, Notes: []inject.Note{network}}, {Check: "Ports", Outcome: inject.Failed, Notes: []inject.Note{port}}}
	const both = "with hostNetwork; PortCollision: port 8970"
	for name, test := range map[string]struct {
		plan inject.Plan
		want finding // zero for none
	}{
		"it would be injected": {inject.Plan{Inject: true}, finding{reason: ReasonRuntimeMissing, message: messageRuntimeMissing}},
		"it would be injected, for what it lacks": {inject.Plan{Inject: true, Notes: []inject.Note{port}, Steps: steps},
			finding{reason: ReasonRuntimeMissing, message: messageRuntimeMissing}},
		"it is left with warnings": {inject.Plan{Notes: []inject.Note{space, network, port}, Steps: steps}, finding{reason: inject.ReasonHostNetwork, message: both}},
		"it would be refused":      {inject.Plan{Deny: []inject.Note{network, port}, Steps: steps}, finding{reason: inject.ReasonHostNetwork, message: both}},
		"it is left silently":      {inject.Plan{Steps: steps}, finding{reason: inject.ReasonHostNetwork, message: both, silent: true}},
		"it does not ask any more": {inject.Plan{Steps: []inject.Step{{Check: "OptIn", Outcome: inject.Ended, Notes: []inject.Note{{Reason: inject.ReasonNotOptedIn}}}}}, finding{}},
	} {
		if got, ok := judge(test.plan); got != test.want || ok != (test.want != finding{}) {
			t.Errorf("%s: got %+v, %t", name, got, ok)
		}
	}
}

func TestPodsAreAlikeOnlyIfOneDecisionHoldsForAll(t *testing.T) {
	hashed := map[string]string{"pod-template-hash": "h1", "app": "x"}
	first := podOf("ReplicaSet", "apps/v1", hashed)
	edit := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := first.DeepCopy()
		change(pod)
		return pod
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"another pod of the template": {edit(func(p *corev1.Pod) { p.Name, p.UID = "other", "other" }), true},
		"another annotation":          {edit(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }), true},
		"another policy": {edit(func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1alpha1.PolicyAnnotation: "p"}
		}), false},
		"other workspaces": {edit(func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1alpha1.WorkspacesAnnotation: "/w"}
		}), false},
		"another label":     {edit(func(p *corev1.Pod) { p.Labels["app"] = "y" }), false},
		"another hash":      {edit(func(p *corev1.Pod) { p.Labels["pod-template-hash"] = "h2" }), false},
		"another owner":     {edit(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "o2" }), false},
		"another namespace": {edit(func(p *corev1.Pod) { p.Namespace = "other" }), false},
	} {
		if got := alike(test.pod) == alike(first); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	for name, pod := range map[string]*corev1.Pod{
		"a pod without an owner": podOf("", "", hashed),
		"a pod without a hash":   podOf("ReplicaSet", "apps/v1", map[string]string{"app": "x"}),
	} {
		if got := alike(pod); got != "" {
			t.Errorf("%s is like others: %q", name, got)
		}
	}
}

func TestANoteHasRoomInAnEvent(t *testing.T) {
	if got := note("short"); got != "short" {
		t.Errorf("got %q", got)
	}
	long := note(strings.Repeat("ä", maxNote))
	if len(long) > maxNote || !strings.HasSuffix(long, "ä…") || !utf8.ValidString(long) {
		t.Errorf("got %d bytes, that end in %q", len(long), long[len(long)-6:])
	}
}
