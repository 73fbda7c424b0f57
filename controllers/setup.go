// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers is the rim of the control plane: it gathers objects,
// calls compile, publishes each namespace's router and reports verdicts as
// conditions. It holds no rule about policies or providers; those are in
// compile, which is pure.
//
// There are three controllers. The router controller's key is a namespace: one
// reconcile reads its policies, providers and ConfigMaps, writes at most two
// ConfigMaps and the status of the policies that changed. The provider
// controller's key is a provider: it reads the one Secret key that the provider
// names and writes the provider's status. The probe controller's key is a
// provider as well: it probes the endpoints of those that ask for it (package
// reach), wakes the provider controller when one is seen otherwise than before,
// and writes nothing.
//
// What a reconcile returns:
//
//	a mistake in an object               condition False, no error, no requeue: an edit wakes it
//	a missing or broken reference        condition False, no error, no requeue: the watch wakes it
//	a Secret (never watched, see below)  condition, RequeueAfter
//	an endpoint that is probed           RequeueAfter, with jitter; a condition when it is seen otherwise
//	a ConfigMap that is not ours         condition False, RequeueAfter: such ConfigMaps are not watched
//	injected pods of a former namespace  RequeueAfter until they are gone
//	a namespace that is being deleted    nothing to do
//	an object newer than the cache's     RequeueAfter, 100 ms: the cache follows
//	any other failure of the API         the error, tried again with backoff
//
// Secrets are neither cached nor watched: to list or watch them is to read them
// all. A key is read by name, again after Intervals.CredentialRetry while it is
// not usable and after Intervals.CredentialRefresh when it is.
package controllers

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/reach"
)

// workers is how many namespaces, and how many providers, are reconciled at
// once; never two of one name.
const workers = 4

// Options are what the controllers need beside a manager.
type Options struct {
	// OperatorNamespace is where baselines may live.
	OperatorNamespace string
	// Intervals may be left zero.
	Intervals Intervals
	prober    prober // a *reach.Prober on the real network when nil
}

// Intervals are how long to wait for what cannot be watched. Zero means the default.
type Intervals struct {
	// CredentialRetry is the wait before a key that is not usable is read again: 1 minute.
	CredentialRetry time.Duration
	// CredentialRefresh is the wait before a usable key is read again: 10 minutes.
	CredentialRefresh time.Duration
	// Leftover is the wait before injected pods of a namespace without a policy
	// are looked for again, and before a ConfigMap that is not ours is: 1 minute.
	Leftover time.Duration
	// Probe, when it is not zero, stands in the place of every provider's spec.probe.interval.
	Probe time.Duration
}

func (i Intervals) withDefaults() Intervals {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&i.CredentialRetry, time.Minute}, {&i.CredentialRefresh, 10 * time.Minute}, {&i.Leftover, time.Minute}} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return i
}

// Setup adds the controllers to a manager. The manager's cache and client
// must have been made with CacheOptions and ClientOptions.
func Setup(mgr ctrl.Manager, options Options) error {
	options.Intervals = options.Intervals.withDefaults()
	router := &routerReconciler{
		client:            mgr.GetClient(),
		live:              mgr.GetAPIReader(),
		events:            mgr.GetEventRecorder(v1alpha1.ManagedBy),
		operatorNamespace: options.OperatorNamespace,
		leftover:          options.Intervals.Leftover,
	}
	if err := router.setup(mgr); err != nil {
		return fmt.Errorf("setting up the router controller: %w", err)
	}
	return setupProviders(mgr, options)
}

// setupProviders adds the controllers that a provider's status comes from.
func setupProviders(mgr ctrl.Manager, options Options) error {
	if options.prober == nil {
		options.prober = reach.New(reach.Options{})
	}
	seen, sight := make(chan event.GenericEvent), newSight()
	provider := &providerReconciler{
		client:    mgr.GetClient(),
		live:      mgr.GetAPIReader(),
		events:    mgr.GetEventRecorder(v1alpha1.ManagedBy),
		sight:     sight,
		seen:      seen,
		intervals: options.Intervals,
	}
	if err := provider.setup(mgr); err != nil {
		return fmt.Errorf("setting up the provider controller: %w", err)
	}
	probe := &probeReconciler{
		client:   mgr.GetClient(),
		prober:   options.prober,
		sight:    sight,
		changed:  seen,
		interval: options.Intervals.Probe,
		under:    map[string]int{},
	}
	if err := probe.setup(mgr); err != nil {
		return fmt.Errorf("setting up the probe controller: %w", err)
	}
	return nil
}

// CacheOptions keep the cache small: both kinds without their managed fields,
// and of ConfigMaps only our own. Secrets and pods never enter it.
func CacheOptions() cache.Options {
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	strip := cache.TransformStripManagedFields()
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1alpha1.VisionProvider{}: {Transform: strip},
		&v1alpha1.VisionPolicy{}:   {Transform: strip},
		&corev1.ConfigMap{}:        {Label: ours}, // its managed fields tell who edited it
	}}
}

// ClientOptions make the client read Secrets and pods from the API server
// itself: a cached read would start a watch on all of them.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Pod{}}}}
}
