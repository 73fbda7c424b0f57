// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/probe"
)

// Resolved is a resolved.
type Resolved struct {
	Picture        *injection.Picture
	Facts          probe.Facts
	SHA256, Reason string
}

// Resolve is resolve by the limits in use.
func (e *Engine) Resolve(ctx context.Context, plan *injection.Plan, r *message.Request) ([]Resolved, func(), *fault.Fault) {
	found, release, bad := e.resolve(ctx, plan, r, &e.snapshot.Load().profile.Limits)
	out := make([]Resolved, len(found))
	for i, f := range found {
		out[i] = Resolved{f.picture, f.facts, f.sha256, f.reason}
	}
	return out, release, bad
}

// HoldWhole is an image that is held whole while it is pinned.
func (e *Engine) HoldWhole(ctx context.Context) (release func(), err error) {
	return e.options.Pins.Lock(ctx, wholeImages)
}
