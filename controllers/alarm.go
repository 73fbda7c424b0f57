// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// alarm wakes a namespace's reconcile after a while. Rung again before that, it
// rings once. It is silent until the controller starts, which then looks at
// every namespace anyway.
type alarm struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// start is a source of the controller.
func (a *alarm) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = queue
	return nil
}

func (a *alarm) ring(namespace string, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queue != nil {
		a.queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}, after)
	}
}

// earliest is the least of the waits that are not zero; zero when all are.
func earliest(waits ...time.Duration) time.Duration {
	var least time.Duration
	for _, w := range waits {
		if w > 0 && (least == 0 || w < least) {
			least = w
		}
	}
	return least
}
