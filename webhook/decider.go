// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// Decider decides on pods as the pod webhook does, for who has a pod and no
// admission request. It writes nothing.
type Decider struct {
	// Cached is asked first, and Live where what is cached does not serve the pod.
	Cached, Live client.Reader
	Scope        gather.Scope
	Settings     inject.Settings
}

// Decide is what would be done with a pod if it were created in a namespace now.
// An error says what could not be read.
func (d *Decider) Decide(ctx context.Context, pod *corev1.Pod, namespace string) (inject.Plan, error) {
	h := podHandler{cached: d.Cached, live: d.Live, scope: d.Scope, settings: d.Settings}
	return h.decide(ctx, pod, namespace)
}
