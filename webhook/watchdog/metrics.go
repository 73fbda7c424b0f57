// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/visionoperator/vision-operator/webhook/inject"
)

// Outcomes of an eviction that was tried.
const (
	outcomeEvicted  = "evicted"
	outcomeBlocked  = "blocked"     // a PodDisruptionBudget does not allow it now
	outcomeRefused  = "refused"     // the API server refuses the eviction, or a pod such as its owner would make
	outcomeNoEffect = "no_effect"   // the pod would be made without the runtime again
	outcomeFailed   = "failed"      // no answer
	outcomeGone     = "gone_before" // somebody else was faster
)

var (
	podsWithoutRuntime = newPodsWithoutRuntime()
	evictions          = newEvictions()
)

func newPodsWithoutRuntime() *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "vision_operator_pods_without_runtime",
		Help: "Pods that asked for the vision runtime and run without it, by namespace and reason; told by the replica that leads.",
	}, []string{"namespace", "reason"})
	metrics.Registry.MustRegister(g)
	return g
}

func newEvictions() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vision_operator_evictions_total",
		Help: "Evictions of pods that run without the vision runtime, by outcome: evicted, blocked, refused, no_effect, gone_before or failed.",
	}, []string{"outcome"})
	for _, outcome := range []string{outcomeEvicted, outcomeBlocked, outcomeRefused, outcomeNoEffect, outcomeGone, outcomeFailed} {
		c.WithLabelValues(outcome)
	}
	metrics.Registry.MustRegister(c)
	return c
}

// expose tells counts as metrics: those of before that are not among them are
// taken away, the others are never absent meanwhile.
func expose(before, now map[string]map[inject.Reason]int) {
	for namespace, reasons := range now {
		for reason, n := range reasons {
			podsWithoutRuntime.WithLabelValues(namespace, string(reason)).Set(float64(n))
		}
	}
	for namespace, reasons := range before {
		for reason := range reasons {
			if now[namespace][reason] == 0 {
				podsWithoutRuntime.DeleteLabelValues(namespace, string(reason))
			}
		}
	}
}
