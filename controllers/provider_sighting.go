// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/reach"
)

// sighting is what is known of one provider's endpoints. Zero: nothing.
type sighting struct {
	targets []reach.Target
	results []reach.Result
	at      time.Time
	// jitter is added to the interval that follows, as a part of it.
	jitter float64
	// doubted: the last probe found worse than the one before, and is not
	// believed until another does, too.
	doubted bool
}

// of returns the results if they are those of the targets.
func (s sighting) of(targets []reach.Target) []reach.Result {
	if !slices.Equal(s.targets, targets) {
		return nil
	}
	return s.results
}

// wait is the time that is left before the next probe. Endpoints that were
// edited, and news that are doubted, wait for the least interval only.
func (s sighting) wait(targets []reach.Target, interval time.Duration, now time.Time) time.Duration {
	if s.at.IsZero() {
		return 0
	}
	if s.doubted || !slices.Equal(s.targets, targets) {
		interval = min(interval, reach.MinInterval)
	}
	interval += time.Duration(float64(interval) * s.jitter)
	return max(0, s.at.Add(interval).Sub(now))
}

// next is the sighting after a probe, and whether what is known has changed. An
// endpoint that answered a moment ago is given a second chance: one lost packet
// is no news.
func (s sighting) next(targets []reach.Target, results []reach.Result, jitter float64, now time.Time) (sighting, bool) {
	before := s.of(targets)
	n := sighting{targets: targets, results: results, at: now, jitter: jitter}
	if before != nil && !s.doubted && worse(before, results) {
		n.results, n.doubted = before, true
	}
	return n, !slices.Equal(before, n.results)
}

// worse reports whether one that answered does so no more.
func worse(before, after []reach.Result) bool {
	for i, r := range after {
		if reach.Status(r.Reason) != metav1.ConditionTrue && reach.Status(before[i].Reason) == metav1.ConditionTrue {
			return true
		}
	}
	return false
}

// reachableCondition is the condition Reachable of a provider; none without
// spec.probe. Before the first probe after a start of the operator, what the
// status says of the same generation holds.
func reachableCondition(p *v1alpha1.VisionProvider, accepted compile.Verdict, known []reach.Result) []metav1.Condition {
	old := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReachable)
	switch {
	case p.Spec.Probe == nil:
		return nil
	case !accepted.OK:
		return []metav1.Condition{unknown(v1alpha1.ConditionReachable, v1alpha1.ReasonNotAccepted, "the provider is not accepted")}
	case known != nil:
		return []metav1.Condition{reach.Condition(known)}
	case old != nil && old.ObservedGeneration == p.Generation:
		return []metav1.Condition{*old}
	}
	return []metav1.Condition{unknown(v1alpha1.ConditionReachable, v1alpha1.ReasonNotProbed, "the endpoints have not been probed yet")}
}
