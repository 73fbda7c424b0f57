// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// patience is how many of the slowest endpoint's timeouts a whole call may
// take, second attempts and fallback models included.
const patience = 2

// grace is what a model gets on top of its share of a call's time, so that an
// endpoint that never answers runs into its own timeout, which its circuit
// counts, where that is as long as the share. It is shorter than any wait
// before a second attempt.
const grace = 50 * time.Millisecond

// answer asks the chosen model, and where the policy names fallbacks and the
// failure may pass, each of those in turn.
func (l *look) answer(ctx context.Context) (seen *observation.Observation, cached bool, bad *fault.Fault) {
	l.deadline = time.Now().Add(l.longest())
	seen, cached, bad = l.observe(ctx)
	for bad != nil && bad.Retryable && ctx.Err() == nil && time.Now().Before(l.deadline) {
		l.relist(ctx)
		l.plan = l.plan.FallBack()
		if l.plan.Choice == nil {
			break
		}
		seen, cached, bad = l.observe(ctx)
	}
	return seen, cached, bad
}

// until is when the chosen model must have answered. As long as a fallback is
// left, that is after half of the time that is left: a model that keeps its
// callers waiting must not take all of it.
func (l *look) until() time.Time {
	usable := func(f selection.Fallback) bool { return f.Usable() }
	if len(l.plan.Unlisted) > 0 || slices.ContainsFunc(l.plan.Fallbacks, usable) {
		left := time.Until(l.deadline)
		return l.deadline.Add(min(grace-left/2, 0))
	}
	return l.deadline
}

// longest is how long the whole call may take.
func (l *look) longest() time.Duration {
	longest := l.snapshot.clientOf(l.plan.Choice).timeout
	for i := range l.plan.Fallbacks {
		if f := &l.plan.Fallbacks[i]; f.Usable() {
			longest = max(longest, l.snapshot.clientOf(f.Choice).timeout)
		}
	}
	for _, need := range l.plan.Unlisted {
		if c := l.snapshot.client(clientID(need.Provider, need.Endpoint)); c != nil {
			longest = max(longest, c.timeout)
		}
	}
	return patience * longest
}
