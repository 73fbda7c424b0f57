// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/visionoperator/vision-operator/webhook/inject"
)

// exposed are the values of the metric of a namespace, by reason.
func exposed(t *testing.T, namespace string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]float64
	for _, family := range families {
		if family.GetName() != "vision_operator_pods_without_runtime" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["namespace"] != namespace {
				continue
			}
			if found == nil {
				found = map[string]float64{}
			}
			found[labels["reason"]] = m.GetGauge().GetValue()
		}
	}
	return found
}

func TestAMetricThatIsNoLongerTrueIsTakenAway(t *testing.T) {
	const namespace = "of-the-metric"
	first := map[string]map[inject.Reason]int{namespace: {ReasonRuntimeMissing: 2, inject.ReasonHostNetwork: 1}}
	second := map[string]map[inject.Reason]int{namespace: {ReasonRuntimeMissing: 3}}
	expose(nil, first)
	if got := exposed(t, namespace); len(got) != 2 || got["RuntimeMissing"] != 2 || got["HostNetwork"] != 1 {
		t.Errorf("got %v", got)
	}
	expose(first, second)
	if got := exposed(t, namespace); len(got) != 1 || got["RuntimeMissing"] != 3 {
		t.Errorf("got %v", got)
	}
	expose(second, nil)
	if got := exposed(t, namespace); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
