// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/reach"
)

// providerReconciler keeps one provider's status. What a provider means to
// routers is the router controller's.
type providerReconciler struct {
	client    client.Client // cached
	live      client.Reader // not cached: Secrets
	events    events.EventRecorder
	sight     *sight
	seen      <-chan event.GenericEvent // providers whose endpoints are seen otherwise than before
	intervals Intervals
}

// Reconcile judges the provider and its key, and reports that and what is known
// of its endpoints.
func (r *providerReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.VisionProvider
	if err := r.client.Get(ctx, req.NamespacedName, &p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	verdict := judge(&p)
	key := notAccepted // what it names may not even be a Secret's name
	if verdict.Accepted.OK {
		var err error
		if key, err = r.readKey(ctx, &p); err != nil {
			return reconcile.Result{}, err
		}
	}
	reachable := reachableCondition(&p, verdict.Accepted, r.sight.known(req.NamespacedName, reach.Targets(&p)))
	status := providerStatus(&p, verdict, key, reachable, metav1.Now())
	if !equality.Semantic.DeepEqual(p.Status, status) {
		changed := p.DeepCopy()
		changed.Status = status
		stale, err := patchStatus(ctx, r.client, &p, changed)
		if err != nil || stale {
			return reconcile.Result{RequeueAfter: soon}, err
		}
		announce(r.events, changed, providerActions, p.Status.Conditions, status.Conditions)
	}
	return reconcile.Result{RequeueAfter: r.again(key)}, nil
}

// judge says what is to be said of a provider by itself.
func judge(p *v1alpha1.VisionProvider) compile.ProviderVerdict {
	in := compile.Input{Namespace: p.Namespace, Providers: []v1alpha1.VisionProvider{*p}}
	return compile.Compile(in).Providers[p.Namespace+"/"+p.Name]
}

func (r *providerReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("provider").
		For(&v1alpha1.VisionProvider{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.VisionProvider{}, echo(itself, ofStatus), builder.WithPredicates(statusNews())).
		WatchesRawSource(source.Channel(r.seen, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// again says when to read the key again: Secrets cannot be watched without
// reading them all.
func (r *providerReconciler) again(key credential) time.Duration {
	switch {
	case !key.read:
		return 0
	case key.reason == v1alpha1.ReasonResolved:
		return r.intervals.CredentialRefresh
	}
	return r.intervals.CredentialRetry
}

// providerStatus is what a provider's status should say.
func providerStatus(p *v1alpha1.VisionProvider, v compile.ProviderVerdict, key credential, reachable []metav1.Condition, now metav1.Time) v1alpha1.VisionProviderStatus {
	accepted := verdictCondition(v1alpha1.ConditionAccepted, v.Accepted)
	resolved := metav1.Condition{Type: v1alpha1.ConditionCredentialsResolved, Status: key.status, Reason: key.reason, Message: key.message}
	message := "the provider can be used"
	if len(v.Unprogrammed) > 0 {
		message = fmt.Sprintf("%s; %s", message, notObeyed(v.Unprogrammed))
	}
	conditions := append([]metav1.Condition{accepted, resolved}, reachable...)
	conditions = append(conditions, ready(message, conditions...))
	return v1alpha1.VisionProviderStatus{
		Conditions:                 stamp(p.Status.Conditions, p.Generation, now, conditions...),
		CredentialsResourceVersion: key.resourceVersion,
	}
}
