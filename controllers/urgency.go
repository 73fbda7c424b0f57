// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// elsewhere is the priority of a namespace that an edit in another one
// concerns. It stands between an object's own namespace, 0, and what is found at
// the start, handler.LowPriority.
const elsewhere = handler.LowPriority / 2

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ownFirst wakes the namespaces that find names, the object's own before the
// others: whoever edits a policy does not wait until the edit of a baseline has
// gone through all of a cluster's namespaces.
func ownFirst(find handler.MapFunc) handler.EventHandler {
	all := handler.EnqueueRequestsFromMapFunc(find)
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) { all.Create(ctx, e, rank(q, e.Object)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) { all.Update(ctx, e, rank(q, e.ObjectNew)) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) { all.Delete(ctx, e, rank(q, e.Object)) },
	}
}

// rank is a queue that takes requests at the priority they have for an object.
func rank(q requests, object client.Object) requests {
	if ranked, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		return ranking{PriorityQueue: ranked, own: object.GetNamespace()}
	}
	return q
}

type ranking struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	own string
}

// Add queues a request at the priority that its namespace has.
func (r ranking) Add(req reconcile.Request) {
	if req.Name == r.own {
		r.PriorityQueue.Add(req)
		return
	}
	r.AddWithOpts(priorityqueue.AddOpts{Priority: new(elsewhere)}, req)
}
