// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Priorities of a namespace beside its own edits, at 0, and what is found at the
// start, at handler.LowPriority: first the routers, which pods obey.
const (
	// elsewhere is that of an edit in another namespace that concerns it.
	elsewhere = handler.LowPriority / 2
	// told is that of a report on the router that it has got.
	told = 2 * handler.LowPriority
	// again is that of a look at what has been reported.
	again = 3 * handler.LowPriority
)

// echoLag is how long a reconcile may take to write all statuses of a namespace;
// one that comes earlier sees some as they were.
const echoLag = time.Second

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ownFirst wakes the namespaces that find names, the object's own before the
// others: whoever edits a policy does not wait until the edit of a baseline has
// gone through all of a cluster's namespaces.
func ownFirst(find handler.MapFunc) handler.EventHandler {
	return ranked(find, func(o client.Object, req reconcile.Request) priorityqueue.AddOpts {
		if req.Name == o.GetNamespace() {
			return priorityqueue.AddOpts{}
		}
		return priorityqueue.AddOpts{Priority: new(elsewhere)}
	})
}

// echo wakes the namespaces that find names when an object comes back from the
// API server, as late as late says.
func echo(find handler.MapFunc, late func(client.Object) priorityqueue.AddOpts) handler.EventHandler {
	return ranked(find, func(o client.Object, _ reconcile.Request) priorityqueue.AddOpts { return late(o) })
}

// ofStatus has a status looked at once more, after all else, and once for all
// that one reconcile wrote: the cache then shows all of it, and most often it is
// as it shall be.
func ofStatus(client.Object) priorityqueue.AddOpts {
	return priorityqueue.AddOpts{Priority: new(again), After: echoLag}
}

// ofPublished has a ConfigMap that is as we wrote it reported, and one that others
// wrote put back at once.
func ofPublished(o client.Object) priorityqueue.AddOpts {
	if c, ok := o.(*corev1.ConfigMap); ok && writtenByUs(c) {
		return priorityqueue.AddOpts{Priority: new(told)}
	}
	return priorityqueue.AddOpts{}
}

// ranked wakes the namespaces that find names, each as rank says for an object
// that was created, deleted or made what it is.
func ranked(find handler.MapFunc, rank func(client.Object, reconcile.Request) priorityqueue.AddOpts) handler.EventHandler {
	all := handler.EnqueueRequestsFromMapFunc(find)
	over := func(q requests, o client.Object) requests {
		if inner, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			return ranking{PriorityQueue: inner, rank: func(req reconcile.Request) priorityqueue.AddOpts { return rank(o, req) }}
		}
		return q
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) { all.Create(ctx, e, over(q, e.Object)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) { all.Update(ctx, e, over(q, e.ObjectNew)) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) { all.Delete(ctx, e, over(q, e.Object)) },
	}
}

// ranking is a queue that takes each request as rank says.
type ranking struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	rank func(reconcile.Request) priorityqueue.AddOpts
}

// Add queues a request.
func (r ranking) Add(req reconcile.Request) { r.AddWithOpts(r.rank(req), req) }
