// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

func TestPodsMadeWhileTheWebhookIsAwayAreToldOfUntilTheyAreMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.watch(Options{})
	back := w.away()
	plain, network := agent("plain"), agent("network")
	delete(plain.Labels, v1alpha1.InjectLabel)
	network.Spec.HostNetwork = true
	w.create(agent("one"), agent("two"), plain, network)
	told := w.tells("one RuntimeMissing", "two RuntimeMissing", "network HostNetwork")
	if text := told["one RuntimeMissing"]; !strings.Contains(text, "while the webhook could not be reached") || !strings.Contains(text, "delete it") {
		t.Errorf("the Event says %q", text)
	}
	if text := told["network HostNetwork"]; !strings.Contains(text, "hostNetwork") {
		t.Errorf("the Event says %q", text)
	}
	w.counts(3, map[string]float64{"RuntimeMissing": 2, "HostNetwork": 1})
	back()
	w.sweeps()
	w.counts(3, map[string]float64{"RuntimeMissing": 2, "HostNetwork": 1})

	for _, name := range []string{"one", "two"} {
		pod := agent(name)
		pod.Namespace = w.namespace
		if err := admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		again := agent(name)
		w.create(again)
		if !hasRuntime(again) {
			t.Errorf("pod %s was made without the runtime again", name)
		}
	}
	w.counts(1, map[string]float64{"HostNetwork": 1})
	w.tells("one RuntimeMissing", "two RuntimeMissing", "network HostNetwork")
}

func TestInANamespaceThatOptedInOnlyPodsThatDidNotOptOutCount(t *testing.T) {
	w := newWorld(t, v1alpha1.InjectLabel+"="+v1alpha1.InjectEnabled)
	w.serve()
	back := w.away()
	defer back()
	silent, out, asks, ended, ends := agent("silent"), agent("out"), agent("asks"), agent("ended"), agent("ends")
	delete(silent.Labels, v1alpha1.InjectLabel)
	out.Labels[v1alpha1.InjectLabel] = v1alpha1.InjectDisabled
	ends.Finalizers = []string{"example.com/wait"}
	w.create(silent, out, asks, ended, ends)
	w.status("ended", corev1.PodFailed)
	if err := admin.Delete(t.Context(), ends.DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		bare := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := admin.Patch(context.Background(), ends, bare); err != nil {
			t.Error(err)
		}
	})
	w.watch(Options{})
	w.tells("silent RuntimeMissing", "asks RuntimeMissing")
	w.counts(2, map[string]float64{"RuntimeMissing": 2})
	w.sweeps()
	w.tells("silent RuntimeMissing", "asks RuntimeMissing")
	w.status("asks", corev1.PodSucceeded)
	w.counts(1, map[string]float64{"RuntimeMissing": 1})
}

func TestWhereAPolicyIsSilentPodsThatCannotHaveTheRuntimeAreOnlyCounted(t *testing.T) {
	w := newWorld(t)
	objects := serving()
	objects[1].(*v1alpha1.VisionPolicy).Spec.Admission = &v1alpha1.Admission{Mode: new(v1alpha1.AdmissionOff)}
	w.create(objects...)
	network := agent("network")
	network.Spec.HostNetwork = true
	w.create(network)
	w.watch(Options{})
	w.counts(1, map[string]float64{"HostNetwork": 1})
	w.sweeps()
	w.tells()
}

func TestPodsOfANamespaceThatDidNotOptInAreNotLookedAt(t *testing.T) {
	w := newWorld(t)
	w.serve()
	plain := agent("plain")
	delete(plain.Labels, v1alpha1.InjectLabel)
	w.create(plain)
	decider := &fakeDecider{}
	w.watch(Options{Decider: decider})
	w.sweeps()
	w.tells()
	if n := decider.asked.Load(); n != 0 {
		t.Errorf("%d pods were decided on", n)
	}
}

func TestAReasonThatChangesIsToldAndOneThatPassesIsNot(t *testing.T) {
	w := newWorld(t)
	back := w.away()
	defer back()
	w.create(agent("early"))
	w.watch(Options{})
	w.tells("early NoPolicy")
	if got := exposed(t, w.namespace); got["NoPolicy"] != 1 {
		t.Errorf("the metric says %v", got)
	}
	w.serve()
	w.tells("early NoPolicy", "early RuntimeMissing")
	w.counts(1, map[string]float64{"RuntimeMissing": 1})
	w.status("early", corev1.PodSucceeded)
	w.counts(0, nil)
}

// fakeDecider gives a plan, or fails.
type fakeDecider struct {
	asked atomic.Int64
	fails atomic.Bool
}

func (f *fakeDecider) Decide(context.Context, *corev1.Pod, string) (inject.Plan, error) {
	f.asked.Add(1)
	if f.fails.Load() {
		return inject.Plan{}, errors.New("deciding: no answer")
	}
	return inject.Plan{Inject: true}, nil
}

func TestWhileADecisionFailsWhatWasFoundBeforeHolds(t *testing.T) {
	w := newWorld(t)
	w.serve()
	back := w.away()
	defer back()
	decider := &fakeDecider{}
	w.create(agent("one"))
	w.watch(Options{Decider: decider})
	w.tells("one RuntimeMissing")
	decider.fails.Store(true)
	asked := decider.asked.Load()
	w.create(agent("two"))
	w.sweeps()
	w.counts(1, map[string]float64{"RuntimeMissing": 1})
	w.tells("one RuntimeMissing")
	if decider.asked.Load() == asked {
		t.Error("nobody was asked to decide")
	}
	decider.fails.Store(false)
	w.tells("one RuntimeMissing", "two RuntimeMissing")
	w.counts(2, map[string]float64{"RuntimeMissing": 2})
}

func TestOneDecisionIsEnoughForAllPodsOfATemplate(t *testing.T) {
	w := newWorld(t)
	w.serve()
	back := w.away()
	defer back()
	owner := newOwner()
	for _, name := range []string{"a", "b", "c", "d"} {
		w.create(of(owner, "h1", agent(name)))
	}
	other := of(owner, "h1", agent("e"))
	other.Annotations = map[string]string{v1alpha1.PolicyAnnotation: "agents"}
	w.create(other)
	decider := &fakeDecider{}
	w.watch(Options{Decider: decider})
	w.counts(5, map[string]float64{"RuntimeMissing": 5})
	asked := decider.asked.Load()
	w.sweeps()
	if n := decider.asked.Load() - asked; n == 0 || n > 2*10 {
		t.Errorf("%d decisions in some six sweeps over five pods, two of which differ", n)
	}
}

func TestALookAtTheWholeClusterLeavesOutWhatTheWebhookDoesNotSee(t *testing.T) {
	asks, follows := newWorld(t), newWorld(t, v1alpha1.InjectLabel+"="+v1alpha1.InjectEnabled)
	back := asks.away()
	defer back()
	plain := func() *corev1.Pod {
		pod := agent("plain")
		pod.Labels = nil
		return pod
	}
	asks.create(agent("one"), plain())
	follows.create(agent("two"), plain())
	for _, unseen := range []string{operatorNamespace, metav1.NamespaceSystem} {
		pod := agent("unseen")
		pod.Namespace, pod.Spec.ServiceAccountName = unseen, "vision-operator"
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: unseen, Name: "vision-operator"}}
		if err := admin.Create(t.Context(), account); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		if err := admin.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); err != nil {
				t.Error(err)
			}
		})
	}
	w := &watchdog{
		Options: Options{Decider: &fakeDecider{}, Scope: gather.Scope{OperatorNamespace: operatorNamespace}, Count: func(string, map[string]int32) {}},
		cached:  admin, finder: finder{live: admin, page: pageSize}, events: &events.FakeRecorder{}, log: logr.Discard(),
	}
	s, err := w.sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer expose(s.counts.reasons, nil)
	for namespace, want := range map[string]int{asks.namespace: 1, follows.namespace: 2, operatorNamespace: 0, metav1.NamespaceSystem: 0} {
		if got := s.counts.reasons[namespace][ReasonRuntimeMissing]; got != want {
			t.Errorf("in %s %d pods were found, want %d", namespace, got, want)
		}
	}
}
