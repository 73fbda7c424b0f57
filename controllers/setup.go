// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers is the rim of the control plane: it gathers objects,
// calls compile, publishes each namespace's router and reports verdicts as
// conditions. It holds no rule about policies or providers; those are in
// compile, which is pure.
//
// There are four controllers. The router controller's key is a namespace: one
// reconcile reads its labels, its policies, the baselines that match it, the
// providers that they refer to and its ConfigMaps; it writes at most three
// ConfigMaps and the status of the policies that changed. What wakes it is in
// mapping.go. A baseline's status is written with its own namespace: it sums up
// what the reconciles of the namespaces that it serves left in a ledger.
//
// The propagation controller's key is a namespace as well: it stamps injected
// pods with the digest of the published router and the versions of the Secrets
// that its providers name, so that nodes mount them anew at once, and counts the
// pods for the status of policies. The provider
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
//	a stamp that is refused              counted, RequeueAfter: the pod's node follows by itself meanwhile
//	an object newer than the cache's     RequeueAfter, 100 ms: the cache follows
//	a router that was just written       RequeueAfter, 1 s, to report it: its coming back wakes it sooner
//	any other failure of the API         the error, tried again with backoff
//
// Secrets are neither cached nor watched: to list or watch them is to read them
// all. A key is read by name, again after Intervals.CredentialRetry while it is
// not usable and after Intervals.CredentialRefresh when it is; for stamps only a
// Secret's metadata is.
package controllers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/controllers/reach"
)

// workers is how many namespaces, and how many providers, are reconciled at
// once; never two of one name. A reconcile waits for the API server most of the
// time, three writes one after another: of a provider that 200 namespaces use,
// an edit was in all routers after 8.6 s with 4 workers and after 1.7 s with 12.
const workers = 12

// Options are what the controllers need beside a manager.
type Options struct {
	// OperatorNamespace is where baselines may live.
	OperatorNamespace string
	// Namespaces are those to serve besides the operator's own; none stands for
	// all. The cache must hold them.
	Namespaces []string
	// RuntimeImage is the image that pods get today; a pod that was injected with
	// another one counts as outdated. Empty: images do not count.
	RuntimeImage string
	// StampsPerSecond is how many pods are told of new routers and keys in a second,
	// over all namespaces, at most MaxStampsPerSecond; 0 for DefaultStampsPerSecond.
	StampsPerSecond int
	// WithoutSecrets makes the controllers ask for no Secret: of every key it is
	// said that the operator may not read it.
	WithoutSecrets bool
	// Missing takes in, from who looks for them, the pods that run without the
	// runtime, for the status of policies; nil when nobody does.
	Missing *Missing
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
	// Pods is the least time between two writes of the counts of a policy's pods: 10 seconds.
	Pods time.Duration
	// Refused is the wait before a stamp that a pod refused is tried again: 10 minutes.
	Refused time.Duration
	// Probe, when it is not zero, stands in the place of every provider's spec.probe.interval.
	Probe time.Duration
}

func (i Intervals) withDefaults() Intervals {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&i.CredentialRetry, time.Minute}, {&i.CredentialRefresh, 10 * time.Minute}, {&i.Leftover, time.Minute},
		{&i.Pods, 10 * time.Second}, {&i.Refused, 10 * time.Minute}} {
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
	if err := setupRouters(mgr, options); err != nil {
		return err
	}
	return setupProviders(mgr, options)
}

// setupRouters adds the controllers that publish routers and tell pods of them.
func setupRouters(mgr ctrl.Manager, options Options) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.VisionPolicy{}, providersIndex, indexProviders)
	if err != nil {
		return fmt.Errorf("indexing policies by the providers that they refer to: %w", err)
	}
	scope := gather.Scope{OperatorNamespace: options.OperatorNamespace, Namespaces: options.Namespaces}
	secrets, pods := newSecretVersions(secretReader(mgr, options), options.Intervals), newTally(options.Intervals.Pods)
	router := &routerReconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		events:   mgr.GetEventRecorder(v1alpha1.ManagedBy),
		scope:    scope,
		leftover: options.Intervals.Leftover,
		secrets:  secrets,
		ledger:   newLedger(),
		tally:    pods,
		alarm:    &alarm{},
	}
	if err := router.setup(mgr); err != nil {
		return fmt.Errorf("setting up the router controller: %w", err)
	}
	options.Missing.bind(router)
	stamps := cmp.Or(options.StampsPerSecond, DefaultStampsPerSecond)
	propagation := &propagator{
		client:  mgr.GetClient(),
		pods:    mgr.GetCache(),
		secrets: secrets,
		scope:   scope,
		image:   options.RuntimeImage,
		limiter: flowcontrol.NewTokenBucketRateLimiter(float32(stamps), stamps),
		sent:    newSentStamps(),
		tally:   pods,
		router:  router.alarm,
		refused: options.Intervals.Refused,
	}
	if err := propagation.setup(mgr); err != nil {
		return fmt.Errorf("setting up the propagation controller: %w", err)
	}
	return nil
}

// setupProviders adds the controllers that a provider's status comes from.
func setupProviders(mgr ctrl.Manager, options Options) error {
	if options.prober == nil {
		options.prober = reach.New(reach.Options{})
	}
	seen, sight := make(chan event.GenericEvent), newSight()
	provider := &providerReconciler{
		client:    mgr.GetClient(),
		live:      secretReader(mgr, options),
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

// CacheOptions keep the cache small: both kinds without their managed fields;
// of ConfigMaps only our own; of namespaces, and of the injected pods that have
// not ended, the metadata that is used. Secrets never enter it.
func CacheOptions() cache.Options {
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	injected := labels.SelectorFromSet(labels.Set{v1alpha1.InjectedLabel: "true"})
	strip := cache.TransformStripManagedFields()
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1alpha1.VisionProvider{}: {Transform: strip},
		&v1alpha1.VisionPolicy{}:   {Transform: strip},
		&corev1.ConfigMap{}:        {Label: ours}, // its managed fields tell who edited it
		&corev1.Namespace{}:        {Transform: trimNamespace},
		&corev1.Pod{}:              {Label: injected, Field: unfinished.Selector, Transform: trimPod},
	}}
}

// ClientOptions make the client read Secrets and pods from the API server
// itself: a cached read would start a watch on all Secrets, and on more of pods
// than their metadata.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Pod{}}}}
}
