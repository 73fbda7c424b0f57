// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/reach"
)

const (
	// probesPerNamespace is how many of a namespace's providers are probed at
	// once, so that none can fill the budget with endpoints that do not answer.
	probesPerNamespace = 4
	// probeJitter is the most that is added to an interval, as a part of it.
	probeJitter = 0.2
)

// prober probes a provider's endpoints. *reach.Prober is one.
type prober interface {
	Probe(ctx context.Context, namespace string, targets []reach.Target) ([]reach.Result, error)
}

// probeReconciler probes the endpoints of each provider that asks for it, and
// wakes the provider controller when what is known of them changes. It writes
// nothing.
type probeReconciler struct {
	client   client.Client // cached
	prober   prober
	sight    *sight
	changed  chan<- event.GenericEvent
	interval time.Duration // in place of every provider's, when not 0

	mu    sync.Mutex
	under map[string]int // providers being probed, by namespace
}

// Reconcile probes one provider when its time has come.
func (r *probeReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.VisionProvider
	if err := r.client.Get(ctx, req.NamespacedName, &p); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.sight.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if p.Spec.Probe == nil || !judge(&p).Accepted.OK {
		r.sight.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	targets, interval := reach.Targets(&p), r.intervalOf(&p)
	if wait := r.sight.wait(req.NamespacedName, targets, interval, time.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if !r.enter(req.Namespace) {
		return reconcile.Result{RequeueAfter: soon + rand.N(time.Second)}, nil
	}
	results, err := r.prober.Probe(ctx, req.Namespace, targets)
	r.leave(req.Namespace)
	if err != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the operator ends
	}
	now := time.Now()
	if r.sight.record(req.NamespacedName, targets, results, now) {
		select {
		case r.changed <- event.GenericEvent{Object: &p}:
		case <-ctx.Done():
		}
	}
	return reconcile.Result{RequeueAfter: r.sight.wait(req.NamespacedName, targets, interval, now)}, nil
}

func (r *probeReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("probe").
		For(&v1alpha1.VisionProvider{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: reach.AtOnce}).
		Complete(r)
}

func (r *probeReconciler) intervalOf(p *v1alpha1.VisionProvider) time.Duration {
	if r.interval > 0 {
		return r.interval
	}
	return reach.Interval(p)
}

// enter takes one of a namespace's places; false when there is none.
func (r *probeReconciler) enter(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under[namespace] >= probesPerNamespace {
		return false
	}
	r.under[namespace]++
	return true
}

func (r *probeReconciler) leave(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under[namespace]--; r.under[namespace] == 0 {
		delete(r.under, namespace)
	}
}

// sight is what is known of the endpoints of every provider that is probed. It
// is lost when the operator ends; conditions last.
type sight struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]sighting
}

func newSight() *sight { return &sight{seen: map[types.NamespacedName]sighting{}} }

// known returns the results that hold for the targets; none when they were not probed.
func (s *sight) known(name types.NamespacedName, targets []reach.Target) []reach.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[name].of(targets)
}

// wait is how long the next probe of the targets has to wait at a time.
func (s *sight) wait(name types.NamespacedName, targets []reach.Target, interval time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[name].wait(targets, interval, now)
}

// record takes in what a probe found, and reports whether what is known has changed.
func (s *sight) record(name types.NamespacedName, targets []reach.Target, results []reach.Result, now time.Time) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[name], changed = s.seen[name].next(targets, results, rand.Float64()*probeJitter, now)
	return changed
}

func (s *sight) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, name)
}
