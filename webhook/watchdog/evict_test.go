// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// evicting evicts at once.
var evicting = Options{Evict: true, grace: time.Nanosecond}

// tries are how often an eviction had an outcome, in all tests.
func tries(t *testing.T, outcome string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "vision_operator_evictions_total" && m.GetLabel()[0].GetValue() == outcome {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no outcome %s", outcome)
	return 0
}

// tried waits until an outcome was had more often than before.
func tried(t *testing.T, outcome string, before float64) {
	t.Helper()
	eventually(t, "waiting for an eviction that is "+outcome, func() error {
		if now := tries(t, outcome); now <= before {
			return fmt.Errorf("there were %v", now)
		}
		return nil
	})
}

// makeWhileAway makes pods without the runtime, more than a second before anything else.
func (w *world) makeWhileAway(pods ...*corev1.Pod) {
	w.Helper()
	back := w.away()
	for _, pod := range pods {
		w.create(pod)
		if hasRuntime(pod) {
			w.Fatalf("pod %s has the runtime", pod.Name)
		}
	}
	back()
	time.Sleep(1100 * time.Millisecond) // creations are told in seconds
}

func TestNothingIsEvictedUnlessAskedFor(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.makeWhileAway(of(newOwner(), "h1", agent("one")))
	w.watch(Options{grace: time.Nanosecond})
	w.tells("one RuntimeMissing")
	w.sweeps()
	if !w.lives("one") {
		t.Error("the pod is gone")
	}
}

func TestALeaderEvictsNothingAtFirst(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.makeWhileAway(of(newOwner(), "h1", agent("one")))
	w.watch(Options{Evict: true}) // after a minute
	w.tells("one RuntimeMissing")
	w.sweeps()
	if !w.lives("one") {
		t.Error("the pod is gone")
	}
}

func TestOnlyPodsThatAreMadeAgainWithTheRuntimeAreEvicted(t *testing.T) {
	w := newWorld(t)
	w.serve()
	job, network := of(newOwner(), "h1", agent("job")), of(newOwner(), "h1", agent("network"))
	job.OwnerReferences[0].APIVersion, job.OwnerReferences[0].Kind = "batch/v1", "Job"
	network.Spec.HostNetwork = true
	stateful := of(newOwner(), "", agent("agent-0"))
	delete(stateful.Labels, "pod-template-hash")
	stateful.Labels["controller-revision-hash"], stateful.OwnerReferences[0].Kind = "r1", "StatefulSet"
	w.makeWhileAway(agent("bare"), job, network, stateful, of(newOwner(), "h1", agent("deployed")))
	before := tries(t, outcomeNoEffect)
	w.watch(evicting)
	w.gone("deployed")
	w.gone("agent-0")
	w.sweeps()
	if n := tries(t, outcomeNoEffect); n != before {
		t.Errorf("%v pods were tried in vain", n-before)
	}
	for _, name := range []string{"bare", "job", "network"} {
		if !w.lives(name) {
			t.Errorf("pod %s is gone", name)
		}
	}
	w.tells("bare RuntimeMissing", "job RuntimeMissing", "network HostNetwork", "agent-0 RuntimeMissing", "deployed RuntimeMissing",
		"agent-0 Evicted", "deployed Evicted")
	w.counts(3, map[string]float64{"RuntimeMissing": 2, "HostNetwork": 1})
}

func TestWhileNothingWouldBeInjectedNothingIsEvicted(t *testing.T) {
	w := newWorld(t)
	w.serve()
	back := w.away()
	defer back()
	w.create(of(newOwner(), "h1", agent("one")))
	before := tries(t, outcomeNoEffect)
	w.watch(evicting)
	tried(t, outcomeNoEffect, before)
	w.sweeps()
	if !w.lives("one") {
		t.Error("the pod is gone")
	}
	if n := tries(t, outcomeNoEffect); n != before+1 {
		t.Errorf("it was tried %v times", n-before)
	}
}

func TestAPodWhoseReplacementIsRefusedIsLeft(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.makeWhileAway(of(newOwner(), "h1", agent("one")))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	restrict := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`))
	if err := admin.Patch(t.Context(), ns, restrict); err != nil {
		t.Fatal(err)
	}
	before := tries(t, outcomeRefused)
	w.watch(evicting)
	tried(t, outcomeRefused, before)
	w.sweeps()
	if !w.lives("one") {
		t.Error("the pod is gone")
	}
}

func TestAPodThatTookTheNameOfAnotherIsNotEvictedForIt(t *testing.T) {
	w := newWorld(t)
	w.serve()
	first := of(newOwner(), "h1", agent("agent-0"))
	w.makeWhileAway(first)
	c, ok := candidateOf(first)
	if !ok {
		t.Fatal("it is no candidate")
	}
	e := &evictor{live: admin}
	if pod, err := e.fresh(t.Context(), c); err != nil || pod == nil || pod.UID != first.UID {
		t.Errorf("got %v (%v), want the pod", pod, err)
	}
	c.uid = "of-one-that-is-gone"
	if pod, err := e.fresh(t.Context(), c); err != nil || pod != nil {
		t.Errorf("got %v (%v), want no pod", pod, err)
	}
}

func TestADisruptionBudgetIsRespected(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.makeWhileAway(of(newOwner(), "h1", agent("guarded")))
	w.status("guarded", corev1.PodRunning) // a pod that is pending may always be evicted
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pod-template-hash": "h1"}}},
	}
	w.create(budget)
	allow := func(n int32) {
		t.Helper()
		// As the disruption controller does.
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: n, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
		if err := admin.Status().Update(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
	}
	before := tries(t, outcomeBlocked)
	w.watch(evicting) // the budget's status is behind: the API server asks to wait ten seconds
	tried(t, outcomeBlocked, before)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	allow(0)
	w.watch(evicting)
	tried(t, outcomeBlocked, before+1)
	w.sweeps()
	if n := tries(t, outcomeBlocked); n != before+2 {
		t.Errorf("it was tried %v times, want once a minute", n-before-1)
	}
	if !w.lives("guarded") {
		t.Fatal("the pod is gone")
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	allow(1)
	w.watch(evicting)
	w.gone("guarded")
}

func TestAPodThatIsMadeAgainWithoutTheRuntimeIsNeverEvicted(t *testing.T) {
	w := newWorld(t)
	w.serve()
	owner := newOwner()
	w.makeWhileAway(of(owner, "h1", agent("first")))
	w.watch(evicting)
	w.gone("first")
	w.makeWhileAway(of(owner, "h1", agent("second")), of(owner, "h2", agent("of-a-new-template")))
	w.gone("of-a-new-template")
	w.sweeps()
	if !w.lives("second") {
		t.Error("a pod that is newer than an eviction of its template is gone")
	}
	w.counts(1, map[string]float64{"RuntimeMissing": 1})
}

func TestTheOtherPodsOfATemplateFollowOnceOneWasMadeWithTheRuntime(t *testing.T) {
	w := newWorld(t)
	w.serve()
	owner := newOwner()
	w.makeWhileAway(of(owner, "h1", agent("a")), of(owner, "h1", agent("b")))
	w.watch(evicting)
	w.gone("a")
	w.sweeps()
	if !w.lives("b") {
		t.Fatal("the second pod is gone before the first one was made again")
	}
	w.create(of(newOwner(), "h1", agent("another-owners")), of(owner, "h2", agent("of-another-template")))
	w.sweeps()
	if !w.lives("b") {
		t.Fatal("the second pod is gone for a pod of others")
	}
	again := of(owner, "h1", agent("c"))
	w.create(again)
	if again.Labels[v1alpha1.InjectedLabel] != "true" {
		t.Fatal("the pod is made again without the runtime")
	}
	w.gone("b")
}

func TestNoMoreThanTenAreEvictedInAMinute(t *testing.T) {
	w := newWorld(t)
	w.serve()
	var pods []*corev1.Pod
	for i := range 14 {
		pods = append(pods, of(newOwner(), "h1", agent(fmt.Sprintf("agent-%02d", i))))
	}
	w.makeWhileAway(pods...)
	w.watch(evicting)
	left := func() (n int) {
		t.Helper()
		var list corev1.PodList
		if err := admin.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	eventually(t, "waiting for ten evictions", func() error {
		if n := left(); n > 4 {
			return fmt.Errorf("%d pods are left", n)
		}
		return nil
	})
	w.sweeps()
	if n := left(); n != 4 {
		t.Errorf("%d pods are left of 14, want 4", n)
	}
}
