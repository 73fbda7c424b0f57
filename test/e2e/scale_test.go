// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

const (
	manyNamespaces = 50
	podsInEach     = 10
	crowdTier      = "e2e-crowd" // label of the namespaces that one baseline serves
)

// fiveHundredPods creates pods on fake nodes through the webhook, all served by one
// baseline, and edits that baseline.
func (w *world) fiveHundredPods(t *testing.T) {
	if w.node == "" {
		t.Log("NOT RUN: the cluster is not one of hack/cluster, so it has no fake nodes")
		return
	}
	if out, err := w.command(t.Context(), "", "hack/cluster/fake-nodes", "10"); err != nil {
		t.Fatal(err, out)
	}
	w.crowdMovesIn(t)
	start := time.Now()
	var wait sync.WaitGroup
	failures := make(chan error, manyNamespaces)
	for n := range manyNamespaces {
		wait.Go(func() {
			for i := range podsInEach {
				if err := w.Create(t.Context(), crowdPod(n, i)); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	took := time.Since(start)
	injected := &corev1.PodList{}
	if err := w.List(t.Context(), injected, client.MatchingLabels{"app": "crowd", v1alpha1.InjectedLabel: "true"}); err != nil {
		t.Fatal(err)
	}
	w.figure(t, "%d pods created through the webhook in %s, injected %d/%d", manyNamespaces*podsInEach, took.Round(time.Millisecond), len(injected.Items), manyNamespaces*podsInEach)
	if len(injected.Items) != manyNamespaces*podsInEach {
		t.Fail()
	}
	w.editsForAll(t)
	w.memory(t)
	w.crowdMovesOut(t)
}

func crowdNamespace(n int) string { return fmt.Sprintf("crowd-%02d", n) }

func crowdPod(n, i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("agent-%d", i), Namespace: crowdNamespace(n),
			Labels: map[string]string{"app": "crowd", v1alpha1.InjectLabel: v1alpha1.InjectEnabled},
		},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"type": "kwok"},
			Tolerations:  []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "agent", Image: "localhost/vision-e2e-agent:1",
				VolumeMounts: []corev1.VolumeMount{{Name: "workspace", MountPath: "/workspace"}},
			}},
			Volumes: []corev1.Volume{{Name: "workspace", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// crowdMovesIn makes the namespaces and the baseline that serves them.
func (w *world) crowdMovesIn(t *testing.T) {
	t.Helper()
	w.apply(t, "crowd.yaml")
	for n := range manyNamespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crowdNamespace(n), Labels: map[string]string{"tier": crowdTier}}}
		if err := w.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, func() error {
		routers := &corev1.ConfigMapList{}
		if err := w.List(t.Context(), routers, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
			return err
		}
		found := 0
		for _, cm := range routers.Items {
			if cm.Name == "vision-router" && len(cm.Namespace) == len(crowdNamespace(0)) && cm.Namespace[:6] == "crowd-" {
				found++
			}
		}
		if found != manyNamespaces {
			return fmt.Errorf("%d of %d routers are published", found, manyNamespaces)
		}
		return nil
	})
}

// editsForAll changes the baseline and waits until every router and every pod's stamp follow.
func (w *world) editsForAll(t *testing.T) {
	t.Helper()
	before := w.stamps(t)
	baseline := &v1alpha1.VisionPolicy{}
	baseline.Namespace, baseline.Name = operatorNamespace, "crowd"
	start := time.Now()
	if err := w.Patch(t.Context(), baseline, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"limits":{"image":{"maxBytes":1048576}}}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func() error {
		changed := 0
		for pod, stamp := range w.stamps(t) {
			if stamp != "" && stamp != before[pod] {
				changed++
			}
		}
		if changed != manyNamespaces*podsInEach {
			return fmt.Errorf("%d of %d pods were told of the edit", changed, manyNamespaces*podsInEach)
		}
		return nil
	})
	w.figure(t, "an edit of the baseline reached the stamps of all %d pods after %s", manyNamespaces*podsInEach, time.Since(start).Round(100*time.Millisecond))
}

// stamps are the router digests that the crowd's pods carry.
func (w *world) stamps(t *testing.T) map[string]string {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.List(t.Context(), list, client.MatchingLabels{"app": "crowd"}); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string, len(list.Items))
	for _, p := range list.Items {
		out[p.Namespace+"/"+p.Name] = p.Annotations[v1alpha1.RouterDigestAnnotation]
	}
	return out
}

// memory tells what the API server and the operator take, as the node sees it.
func (w *world) memory(t *testing.T) {
	t.Helper()
	out, err := w.command(t.Context(), "", "hack/cluster/in-node", "ps", "-eo", "comm,rss")
	if err != nil {
		t.Fatal(err)
	}
	w.figure(t, "resident memory in KiB:")
	for line := range strings.SplitSeq(out, "\n") {
		var name string
		var rss int
		if _, err := fmt.Sscan(line, &name, &rss); err == nil && (name == "kube-apiserver" || name == "vision-operator") {
			w.figure(t, "  %s %d", name, rss)
		}
	}
}

func (w *world) crowdMovesOut(t *testing.T) {
	t.Helper()
	if err := w.DeleteAllOf(t.Context(), &v1alpha1.VisionPolicy{}, client.InNamespace(operatorNamespace)); err != nil {
		t.Fatal(err)
	}
	for n := range manyNamespaces {
		if err := w.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(crowdNamespace(n)), client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		if err := w.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crowdNamespace(n)}}); err != nil {
			t.Fatal(err)
		}
	}
}
