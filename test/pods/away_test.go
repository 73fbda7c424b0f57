// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/inject"
	"github.com/visionoperator/vision-operator/webhook/watchdog"
)

// sweepEvery is how often the test's watchdog looks.
const sweepEvery = 100 * time.Millisecond

// unlabelled is an agent that does not ask for the runtime.
func unlabelled(name string) *corev1.Pod {
	pod := agent()
	pod.Name = name
	delete(pod.Labels, v1alpha1.InjectLabel)
	return pod
}

func TestPodsThatNobodyAskedForNeverReachTheWebhook(t *testing.T) {
	plain, opted, strict := newServedTeam(t), newServedTeam(t, optIn), newServedTeam(t, enforced)
	before := calls(t)
	plain.make(unlabelled("one"), unlabelled("two"))
	strict.make(unlabelled("one"))
	out := unlabelled("out")
	out.Labels[v1alpha1.InjectLabel] = v1alpha1.InjectDisabled
	opted.make(out)
	for _, namespace := range []string{operatorNamespace, metav1.NamespaceSystem} {
		asks := agent()
		asks.Namespace = namespace
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
		if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), account)); err != nil {
			t.Fatal(err)
		}
		if err := admin.Create(t.Context(), asks, client.DryRunAll); err != nil || runtimeOf(asks) != nil {
			t.Errorf("in %s: %v, or the pod was injected", namespace, err)
		}
	}
	pod := unlabelled("changed")
	plain.make(pod)
	pod.Labels[v1alpha1.InjectLabel] = v1alpha1.InjectEnabled // too late
	if err := plain.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if n := calls(t) - before; n != 0 {
		t.Errorf("the webhook was called %v times", n)
	}
	opted.make(unlabelled("asks"))
	if n := calls(t) - before; n != 1 {
		t.Errorf("the webhook was called %v times for a pod of a namespace that asks, want once", n)
	}
}

func TestWhileTheWebhookIsStoppedPodsAreCreatedOrRefusedAsTheirNamespaceSays(t *testing.T) {
	free, opted := newServedTeam(t), newServedTeam(t, optIn)
	strict, both := newServedTeam(t, enforced), newServedTeam(t, enforced, optIn)
	watchOver(t, free, opted, strict, both)
	stopWebhooks(t)
	back := func() {
		if err := startWebhooks(inject.Settings{Image: runtimeImage}); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { back() }()
	before := calls(t)

	one, two := agent(), agent()
	two.Name = "second"
	free.make(one, two, unlabelled("plain"))
	silent := unlabelled("silent")
	opted.make(silent)
	for _, pod := range []*corev1.Pod{one, two, silent} {
		if runtimeOf(pod) != nil {
			t.Errorf("pod %s has the runtime", pod.Name)
		}
	}
	strict.make(unlabelled("plain"))
	strict.refusedUnreached(agent(), "pods-enforced.visionoperator.dev")
	both.refusedUnreached(unlabelled("silent"), "namespaced-pods-enforced.visionoperator.dev")
	both.refusedUnreached(agent(), "pods-enforced.visionoperator.dev")
	if n := calls(t) - before; n != 0 {
		t.Errorf("a stopped webhook was called %v times", n)
	}

	free.reports("agent", "second")
	opted.reports("silent")
	strict.reports()

	back()
	back = func() {}
	strict.injects(agent())
	both.injects(unlabelled("silent"))
	for _, name := range []string{"agent", "second"} {
		again := agent()
		again.Name, again.Namespace = name, free.namespace
		if err := free.Delete(t.Context(), again, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		free.injects(again)
	}
	eventually(t, "waiting for the end of the reports", func() error { return free.counted(0) })
}

// refusedUnreached sees that the API server refuses a pod since it does not reach a webhook.
func (u *team) refusedUnreached(pod *corev1.Pod, hook string) {
	u.Helper()
	err := u.try(pod)
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `failed calling webhook "`+hook+`"`) {
		u.Errorf("got %v, want the API server's refusal for %s", err, hook)
	}
	if err := u.Get(u.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}); !apierrors.IsNotFound(err) {
		u.Errorf("got %v, want that the pod is not there", err)
	}
}

// watchOver starts the controllers and the watchdog over some teams, as the
// replica that leads has them, until the test ends.
func watchOver(t *testing.T, teams ...*team) {
	t.Helper()
	scope := gather.Scope{OperatorNamespace: operatorNamespace}
	cached := controllers.CacheOptions()
	cached.DefaultNamespaces = map[string]cache.Config{operatorNamespace: {}}
	for _, u := range teams {
		scope.Namespaces = append(scope.Namespaces, u.namespace)
		cached.DefaultNamespaces[u.namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(operator, ctrl.Options{
		Scheme: scheme, Cache: cached, Client: controllers.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	missing, settings := &controllers.Missing{}, webhook.Options{Runtime: inject.Settings{Image: runtimeImage}}
	err = errors.Join(
		controllers.Setup(mgr, controllers.Options{OperatorNamespace: operatorNamespace, Namespaces: scope.Namespaces, Missing: missing,
			Intervals: controllers.Intervals{Pods: 2 * sweepEvery}}),
		watchdog.Setup(mgr, watchdog.Options{Decider: webhook.NewDecider(mgr, scope, settings), Scope: scope, Count: missing.Count, Interval: sweepEvery}),
	)
	if err != nil {
		t.Fatal(err)
	}
	running := start(mgr)
	t.Cleanup(func() {
		if err := running.end(); err != nil {
			t.Errorf("the watchdog ended with %v", err)
		}
	})
}

// reports waits until the watchdog has reported these pods of the team's, and no
// others: by an Event each, the policy's status and the metric.
func (u *team) reports(pods ...string) {
	u.Helper()
	eventually(u.T, "waiting for the watchdog's report", func() error {
		var list eventsv1.EventList
		if err := admin.List(u.Context(), &list, client.InNamespace(u.namespace)); err != nil {
			return err
		}
		told := map[string]bool{}
		for _, e := range list.Items {
			if e.Regarding.Kind == "Pod" && e.Reason == string(watchdog.ReasonRuntimeMissing) && strings.Contains(e.Note, "webhook could not be reached") {
				told[e.Regarding.Name] = true
			}
		}
		if got := slices.Sorted(maps.Keys(told)); !slices.Equal(got, pods) {
			return fmt.Errorf("Events are at %q, want %q", got, pods)
		}
		return u.counted(len(pods))
	})
}

// counted has a complaint when the policy's status or the metric count otherwise.
func (u *team) counted(want int) error {
	var p v1alpha1.VisionPolicy
	if err := admin.Get(u.Context(), client.ObjectKey{Namespace: u.namespace, Name: "agents"}, &p); err != nil {
		return err
	}
	if got := p.Status.Pods; got == nil && want > 0 || got != nil && got.Missing != int32(want) {
		return fmt.Errorf("the status counts %+v, want %d missing", got, want)
	}
	labels := fmt.Sprintf("namespace=%s;reason=%s;", u.namespace, watchdog.ReasonRuntimeMissing)
	if got := series(u.T, "vision_operator_pods_without_runtime")[labels]; got != float64(want) {
		return fmt.Errorf("the metric says %v, want %d", got, want)
	}
	return nil
}
