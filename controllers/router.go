// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// routerReconciler keeps one namespace's router and its policies' status. The
// name of a request is the namespace.
type routerReconciler struct {
	client            client.Client // cached
	live              client.Reader // not cached
	events            events.EventRecorder
	operatorNamespace string
	leftover          time.Duration
}

// Reconcile gathers, compiles, publishes and reports.
func (r *routerReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	g, err := r.gather(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	out := compile.Compile(g.input)
	published, publishing := r.publish(ctx, g, out.Document)
	stale, reporting := r.report(ctx, g.own, out.Policies, published)
	if err := errors.Join(publishing, reporting); err != nil {
		return reconcile.Result{}, err
	}
	if stale {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{RequeueAfter: published.again}, nil
}

func (r *routerReconciler) setup(mgr ctrl.Manager) error {
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	published := builder.WithPredicates(publishedByOthers())
	return ctrl.NewControllerManagedBy(mgr).
		Named("router").
		WithLogConstructor(namespaceLogger(mgr.GetLogger())).
		Watches(&v1alpha1.VisionPolicy{}, handler.EnqueueRequestsFromMapFunc(toNamespace), edited).
		Watches(&v1alpha1.VisionProvider{}, handler.EnqueueRequestsFromMapFunc(toNamespace), edited).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(toNamespace), published).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// namespaceLogger makes the logger of a request, whose name is a namespace and
// which the default constructor would log as an object without a namespace.
func namespaceLogger(base logr.Logger) func(*reconcile.Request) logr.Logger {
	base = base.WithValues("controller", "router")
	return func(req *reconcile.Request) logr.Logger {
		if req == nil {
			return base
		}
		return base.WithValues("namespace", req.Name)
	}
}

// toNamespace wakes the router of an object's namespace.
func toNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
}

// publishedByOthers passes events on the ConfigMaps that we publish, except
// those that our own writes cause. At the start all pass: a namespace may have
// stopped being served meanwhile.
func publishedByOthers() predicate.Predicate {
	others := func(object client.Object) bool {
		c, ok := object.(*corev1.ConfigMap)
		return ok && isPublished(c) && !writtenByUs(c)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return others(e.Object) || e.IsInInitialList && isPublished(e.Object)
		},
		UpdateFunc: func(e event.UpdateEvent) bool { return others(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isPublished(e.Object) },
	}
}

// isPublished reports whether an object has the name of one that we publish.
func isPublished(object client.Object) bool {
	return object.GetName() == router.ConfigMapName || object.GetName() == compile.EnvConfigMapName
}
