// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/preflight"
)

// roomTimeout is how long a model request waits for room before it is sent away.
const roomTimeout = 10 * time.Second

const statusUnavailable = 503

// Hold waits until n bytes of model requests fit into what may be in flight at
// once, for ten seconds at most. Images that are looked at are counted apart. The
// error is a *fault.Fault.
func (e *Engine) Hold(ctx context.Context, n int64) (release func(), err error) {
	if n > e.options.MaxHeldBytes {
		f := fault.New(fault.BudgetExceeded, "BodyTooLarge", "the request has %s; the runtime holds at most %s at once", preflight.Size(n), preflight.Size(e.options.MaxHeldBytes)).
			With("body_bytes", n).With("max_body_bytes", e.options.MaxHeldBytes).With("limit", "max-in-flight-bytes").
			Hint("Shorten the conversation, or ask the platform team for more memory.")
		f.HTTPStatus = fault.StatusTooLarge
		return nil, f
	}
	if e.bodies.TryAcquire(n) {
		return func() { e.bodies.Release(n) }, nil
	}
	waiting, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	if err := e.bodies.Acquire(waiting, n); err != nil {
		return nil, noRoom(ctx, n, err)
	}
	return func() { e.bodies.Release(n) }, nil
}

func noRoom(ctx context.Context, n int64, err error) *fault.Fault {
	f := fault.New(fault.VisionAdapterUnavailable, "Busy", "there was no room for a request of %s in %s: too many are in flight", preflight.Size(n), roomTimeout).
		With("body_bytes", n).Hint("Call again in a moment.").Because(err)
	if errors.Is(ctx.Err(), context.Canceled) {
		f.Reason, f.Message = "Canceled", "the call ended before there was room for it"
	}
	f.HTTPStatus, f.Retryable, f.RetryAfter = statusUnavailable, true, time.Second
	return f
}
