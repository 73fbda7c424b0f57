// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// The webhook configurations name an address at which nobody listens.
func TestTheOperatorCountsPodsThatRunWithoutTheRuntimeUnlessToldNotTo(t *testing.T) {
	team := fresh("missing")
	admin := install(t, freeAddress(t))
	create(t, admin, namespace(team), sampleProvider(team), samplePolicy(team), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "agent", Labels: map[string]string{v1alpha1.InjectLabel: v1alpha1.InjectEnabled}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent:1"}}},
	})
	missing := func() int32 {
		t.Helper()
		var p v1alpha1.VisionPolicy
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "agents"}, &p); err != nil {
			t.Fatal(err)
		}
		if p.Status.Pods == nil {
			return 0
		}
		return p.Status.Pods.Missing
	}
	blind := startOperator(t, "--watchdog-interval", "0")
	blind.waitReady(t)
	waitFor(t, team, "Ready", "visionpolicy/agents")
	if err := blind.stop(); err != nil {
		t.Fatal(err)
	}
	if n := missing(); n != 0 || strings.Contains(blind.log.String(), "without the vision runtime") {
		t.Errorf("it counts %d pods:\n%s", n, blind.log)
	}
	watching := startOperator(t, "--watchdog-interval", "1s")
	for deadline := time.Now().Add(time.Minute); missing() != 1; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the pod is not counted:\n%s", watching.log)
		}
	}
	if n := strings.Count(watching.log.String(), "A pod runs without the vision runtime"); n != 1 {
		t.Errorf("the log tells of %d pods:\n%s", n, watching.log)
	}
	if err := watching.stop(); err != nil {
		t.Errorf("the operator ended with %v", err)
	}
	cleanLog(t, watching)
}
