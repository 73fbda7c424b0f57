// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Outcomes of a stamp.
const (
	stampWritten = "written" // the pod has it
	stampRefused = "refused" // the API server or an admission policy refused it
	stampFailed  = "failed"  // no answer; it is tried again
)

// podStamps counts the writes that tell injected pods of a new router.
var podStamps = newPodStamps()

func newPodStamps() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vision_operator_pod_stamps_total",
		Help: "Annotations written on injected pods, through their status, to tell of a new router or key, by outcome: written, refused or failed.",
	}, []string{"outcome"})
	for _, outcome := range []string{stampWritten, stampRefused, stampFailed} {
		c.WithLabelValues(outcome)
	}
	metrics.Registry.MustRegister(c)
	return c
}
