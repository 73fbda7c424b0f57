// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/rest"
	"github.com/visionoperator/vision-operator/runtime/telemetry"
)

// inject says what to change in messages: it counts and logs what came of it, and
// turns a panic into a fault, as view does. Nothing of the messages is logged.
func (a *app) inject(ctx context.Context, r io.Reader, size int64) (answer rest.Answer, err error) {
	began := time.Now()
	outcome, reason := telemetry.Unchanged, ""
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, a.panicked("answering what to inject", p)
		}
		if err != nil {
			f := fault.As(err)
			outcome, reason = string(f.Kind), f.Reason
		}
		a.metrics.InjectEnded(outcome)
		a.log.Info("inject answered", "outcome", outcome, "reason", reason, "duration_ms", time.Since(began).Milliseconds())
	}()
	injected, err := a.engine.Inject(ctx, r, size)
	if err != nil {
		return nil, err
	}
	if reason = injected.Decision.Reason; injected.Decision.Inject {
		outcome = telemetry.Changed
	}
	return injected, nil
}
