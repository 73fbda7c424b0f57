// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"
)

// Missing takes in how many pods of a namespace asked for the runtime and run
// without it, and has the status of policies tell it. The zero value counts
// nothing until Setup has got it in its Options.
type Missing struct {
	mu     sync.Mutex
	router *routerReconciler
}

// bind makes the counts reach the status of policies.
func (m *Missing) bind(router *routerReconciler) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.router = router
}

// Count takes in all such pods of one namespace, by the ID of the profile that
// would serve them; none when there are none any more. The map must not be
// changed afterwards.
func (m *Missing) Count(namespace string, byProfile map[string]int32) {
	m.mu.Lock()
	router := m.router
	m.mu.Unlock()
	if router == nil || !router.tally.miss(namespace, byProfile, time.Now()) {
		return
	}
	router.alarm.ring(namespace, router.tally.every)
	router.alarm.ring(router.scope.OperatorNamespace, router.tally.every) // baselines
}
