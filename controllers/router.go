// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/gather"
)

// baselineLag is how long the status of a baseline waits for more namespaces to
// tell what it came to there.
const baselineLag = time.Second

// routerReconciler keeps one namespace's router and its policies' status. The
// name of a request is the namespace.
type routerReconciler struct {
	client   client.Client // cached
	live     client.Reader // not cached
	events   events.EventRecorder
	scope    gather.Scope
	leftover time.Duration
	secrets  *secretVersions
	ledger   *ledger
	tally    *tally
	alarm    *alarm // its own
}

// Reconcile gathers, compiles, publishes and reports. Where it wrote a router it
// leaves the report to the reconcile that the router's coming back wakes: an edit
// that concerns many namespaces has all their routers first, which pods obey,
// and then their policies' status.
func (r *routerReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	g, err := r.gather(ctx, req.Name)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case g == nil:
		r.tell(req.Name, nil)
		return reconcile.Result{}, nil
	}
	out := compile.Compile(g.input)
	published, publishing := r.publish(ctx, g, out.Document)
	r.tell(req.Name, r.standings(g, out, published))
	if publishing == nil && published.written {
		return reconcile.Result{RequeueAfter: echoLag, Priority: new(told)}, nil
	}
	again, reporting := r.report(ctx, g, out, published)
	if err := errors.Join(publishing, reporting); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: earliest(published.again, again)}, nil
}

// tell enters what baselines came to in a namespace, and has their status follow.
func (r *routerReconciler) tell(namespace string, standings map[string]standing) {
	if r.ledger.record(namespace, standings) {
		r.alarm.ring(r.scope.OperatorNamespace, baselineLag)
	}
}

// standings are what the baselines that serve in a namespace came to there; none
// in one that is being deleted.
func (r *routerReconciler) standings(g *gathered, out compile.Output, published publication) map[string]standing {
	if g.terminating {
		return nil
	}
	standings := make(map[string]standing, len(out.Baselines))
	for i := range g.input.Policies {
		b := &g.input.Policies[i]
		v, serves := out.Baselines[b.Name]
		if !serves || b.Namespace == g.input.Namespace {
			continue
		}
		standings[b.Name] = standing{of: editionOf(b), refs: v.ResolvedRefs, programmed: programmed(v, published), route: v.DefaultRoute}
	}
	return standings
}

func (r *routerReconciler) setup(mgr ctrl.Manager) error {
	to := mapping{reader: r.client, scope: r.scope}
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("router").
		WithLogConstructor(namespaceLogger(mgr.GetLogger(), "router")).
		Watches(&v1alpha1.VisionPolicy{}, ownFirst(to.ofPolicy), edited).
		Watches(&v1alpha1.VisionPolicy{}, echo(to.ofNamespaced, ofStatus), builder.WithPredicates(statusNews())).
		Watches(&v1alpha1.VisionProvider{}, ownFirst(to.ofProvider), builder.WithPredicates(providerNews())).
		Watches(&corev1.ConfigMap{}, echo(to.ofNamespaced, ofPublished), builder.WithPredicates(publishedNews())).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(to.ofNamespace), builder.WithPredicates(namespaceNews())).
		WatchesRawSource(source.Func(r.alarm.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// namespaceLogger makes the logger of a request, whose name is a namespace and
// which the default constructor would log as an object without a namespace.
func namespaceLogger(base logr.Logger, controller string) func(*reconcile.Request) logr.Logger {
	base = base.WithValues("controller", controller)
	return func(req *reconcile.Request) logr.Logger {
		if req == nil {
			return base
		}
		return base.WithValues("namespace", req.Name)
	}
}
