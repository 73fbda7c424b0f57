// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// serving asks the agent again and again until it is told to stop, and returns
// how many of its looks failed, and the first that did.
func (w *world) serving(ctx context.Context, pod *corev1.Pod) (stop func() (looks, failed int, first error)) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var looks, failed int
	var first error
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			status, answer, err := w.call(ctx, pod, "/view", map[string]string{"path": given, "prompt": "Read all text."})
			if ctx.Err() != nil {
				return
			}
			looks++
			if err != nil || status != http.StatusOK {
				failed++
				first = errors.Join(first, fmt.Errorf("look %d: HTTP %d %s %w", looks, status, answer, err))
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() (int, int, error) { cancel(); <-done; return looks, failed, first }
}

// theOperatorIsKilled deletes all pods of the control plane at once: running agents
// go on, and whatever comes later is served by the pods that follow.
func (w *world) theOperatorIsKilled(t *testing.T) {
	pod := w.agent(t, team)
	stop := w.serving(t.Context(), pod)
	for _, component := range []string{"operator", "webhook"} {
		for _, p := range w.pods(t, operatorNamespace, "app.kubernetes.io/component", component) {
			if err := w.Delete(t.Context(), &p, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.rolledOut(t, operatorNamespace, "vision-operator")
	w.rolledOut(t, operatorNamespace, "vision-operator-webhook")
	if looks, failed, first := stop(); failed > 0 {
		t.Errorf("%d of %d looks failed: %v", failed, looks, first)
	} else {
		w.figure(t, "operator and webhook killed: the agent looked %d times meanwhile, and saw each time", looks)
	}
	took := w.obeyed(t, pod, tight, http.StatusBadRequest)
	w.obeyed(t, pod, generous, http.StatusOK)
	w.figure(t, "the first edit after that was obeyed after %s", took.Round(time.Millisecond))
}

// theKubeletRestarts stops the node's kubelet and starts it again.
func (w *world) theKubeletRestarts(t *testing.T) {
	if w.node == "" {
		t.Log("NOT RUN: the cluster is not one of hack/cluster, so its kubelet is not ours to restart")
		return
	}
	pod := w.agent(t, team)
	stop := w.serving(t.Context(), pod)
	if out, err := w.command(t.Context(), "", "hack/cluster/restart", "kubelet"); err != nil {
		t.Fatal(err, out)
	}
	time.Sleep(5 * time.Second)
	if looks, failed, first := stop(); failed > looks/2 {
		t.Errorf("%d of %d looks failed: %v", failed, looks, first)
	}
	eventually(t, time.Minute, func() error {
		node := &corev1.Node{}
		if err := w.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && time.Since(c.LastHeartbeatTime.Time) < time.Hour {
				return nil
			}
		}
		return fmt.Errorf("the node is not ready: %v", node.Status.Conditions)
	})
	after := w.agent(t, team)
	if after.UID != pod.UID || restarts(after) != restarts(pod) {
		t.Errorf("the runtime restarted with the kubelet: %d after %d", restarts(after), restarts(pod))
	}
	w.obeyed(t, after, tight, http.StatusBadRequest)
	w.obeyed(t, after, generous, http.StatusOK)
}

func restarts(pod *corev1.Pod) int32 {
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Name == "vision-runtime" {
			return s.RestartCount
		}
	}
	return -1
}

// theRuntimeRunsOutOfMemory lets the kernel kill the runtime for its memory limit.
// Its container comes back alone, and finds what it had persisted.
func (w *world) theRuntimeRunsOutOfMemory(t *testing.T) {
	if w.node == "" {
		t.Log("NOT RUN: the cluster is not one of hack/cluster, so its cgroups cannot be reached")
		return
	}
	pod := w.agent(t, team)
	before := restarts(pod)
	if out, err := w.command(t.Context(), "", "hack/cluster/exhaust", team, pod.Name, "vision-runtime"); err != nil {
		t.Fatal(err, out)
	}
	eventually(t, 2*time.Minute, func() error {
		now := w.agent(t, team)
		if now.UID != pod.UID || restarts(now) != before+1 {
			return fmt.Errorf("the runtime restarted %d times, want %d", restarts(now), before+1)
		}
		return nil
	})
	now := w.agent(t, team)
	for _, s := range now.Status.InitContainerStatuses {
		if s.Name == "vision-runtime" && (s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.Reason != "OOMKilled") {
			t.Errorf("the runtime ended by %+v, want OOMKilled", s.LastTerminationState.Terminated)
		}
	}
	for _, s := range now.Status.ContainerStatuses {
		if s.RestartCount != 0 {
			t.Errorf("the agent's container %s restarted too", s.Name)
		}
	}
	eventually(t, 30*time.Second, func() error {
		status, answer, err := w.call(t.Context(), now, "/view", map[string]string{"path": given, "prompt": "Read all text."})
		if err != nil || status != http.StatusOK || !strings.Contains(answer, `"cached":true`) {
			return fmt.Errorf("want the observation from the persisted cache, got %s", said(status, answer, err))
		}
		return nil
	})
}

// theWebhookIsDownDuringARollout says what becomes of pods that are created then.
func (w *world) theWebhookIsDownDuringARollout(t *testing.T) {
	const enforced = "team-enforced"
	w.apply(t, "enforced.yaml")
	w.giveScreenshot(t, enforced)
	w.scale(t, operatorNamespace, "vision-operator-webhook", 0)
	eventually(t, time.Minute, func() error {
		if n := len(w.pods(t, operatorNamespace, "app.kubernetes.io/component", "webhook")); n > 0 {
			return fmt.Errorf("%d pods of the webhook are left", n)
		}
		return nil
	})
	manifest := w.kubectl(t, "", "-n", team, "get", "deployment", "agent", "-o", "json")
	copyOf := func(namespace, name string) {
		d := &appsv1.Deployment{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "agent"}, d); err != nil {
			t.Fatal(err, manifest)
		}
		made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: *d.Spec.DeepCopy()}
		made.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		made.Spec.Template.Labels["app"] = name
		if err := w.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	copyOf(team, "blind")
	copyOf(enforced, "held")
	w.rolledOut(t, team, "blind")
	blind := w.pods(t, team, "app", "blind")[0]
	if blind.Labels[v1alpha1.InjectedLabel] != "" {
		t.Error("a pod was injected by nobody")
	}
	w.toldBy(t, team, "ReplicaSet|Pod", "blind", "without the vision runtime", time.Minute)
	w.toldBy(t, enforced, "ReplicaSet", "held", "failed calling webhook", time.Minute)
	if n := len(w.pods(t, enforced, "app", "held")); n != 0 {
		t.Errorf("%d pods were created in a namespace that enforces the runtime", n)
	}
	w.scale(t, operatorNamespace, "vision-operator-webhook", 2)
	w.rolledOut(t, operatorNamespace, "vision-operator-webhook")
	eventually(t, 3*time.Minute, func() error { // the ReplicaSet's own back-off
		pods := w.pods(t, enforced, "app", "held")
		if len(pods) != 1 {
			return fmt.Errorf("%d pods in the namespace that enforces the runtime", len(pods))
		}
		return nil
	})
	for namespace, name := range map[string]string{team: "blind", enforced: "held"} {
		if err := w.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) scale(t *testing.T, namespace, name string, replicas int) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if err := w.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))); err != nil {
		t.Fatal(err)
	}
}

// toldBy waits for an Event about an object whose name begins so.
func (w *world) toldBy(t *testing.T, namespace, kinds, name, says string, patience time.Duration) {
	t.Helper()
	eventually(t, patience, func() error {
		list := &eventsv1.EventList{}
		if err := w.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if slices.Contains(strings.Split(kinds, "|"), e.Regarding.Kind) && strings.HasPrefix(e.Regarding.Name, name) && strings.Contains(e.Note, says) {
				return nil
			}
		}
		return fmt.Errorf("no Event about a %s %s in %s says %q", kinds, name, namespace, says)
	})
}
