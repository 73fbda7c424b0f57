// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/visionoperator/vision-operator/runtime/discovery"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// discover asks those endpoints for their models whose lists may matter to a
// choice: in most cases none.
func (l *look) discover(ctx context.Context, in selection.Input) router.Discovered {
	var targets []discovery.Target
	for _, need := range selection.NeedsDiscovery(in) {
		c := l.snapshot.client(clientID(need.Provider, need.Endpoint))
		if c == nil || c.wire == nil {
			continue
		}
		interval, _ := time.ParseDuration(need.Provider.Discovery.Interval) // judged by router.Validate
		targets = append(targets, discovery.Target{
			Provider: need.Provider, Endpoint: need.Endpoint.Name, Key: c.digest, Lister: c.wire, Interval: interval,
		})
	}
	return l.engine.models.Models(ctx, targets)
}
