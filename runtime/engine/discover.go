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
func (l *look) discover(ctx context.Context) {
	l.needs = selection.NeedsDiscovery(l.input)
	l.input.Discovered = l.lists(ctx)
}

// relist asks those endpoints that may list a fallback which no provider
// declares, now that one is needed, and judges the fallbacks anew. Lists that do
// not come leave the fallbacks half of the time that is left.
func (l *look) relist(ctx context.Context) {
	if len(l.plan.Unlisted) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, l.until())
	defer cancel()
	l.needs = append(l.needs, l.plan.Unlisted...)
	l.input.Discovered = l.lists(ctx)
	l.plan = l.plan.Relist(l.input)
}

// lists are the models that the endpoints of l.needs list.
func (l *look) lists(ctx context.Context) router.Discovered {
	var targets []discovery.Target
	for _, need := range l.needs {
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
