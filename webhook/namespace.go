// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceLabels reads a namespace's labels from the API server itself: the
// operator may get namespaces and not list them, and one GET for each pod that
// asks for the runtime buys that a label counts as soon as it is set.
func namespaceLabels(ctx context.Context, live client.Reader, name string) (map[string]string, error) {
	var ns corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: name}, &ns); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return ns.Labels, nil
}
