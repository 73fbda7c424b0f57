// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
)

func TestARequestForWhichThereIsNoRoomIsToldToComeAgain(t *testing.T) {
	r := newRig(t)
	all, err := r.engine.Hold(t.Context(), engine.DefaultMaxHeldBytes)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = r.engine.Hold(ctx, 1)
	if f := fault.As(err); err == nil || f.Reason != "Busy" || f.HTTPStatus != 503 || !f.Retryable || f.RetryAfter <= 0 {
		t.Errorf("beside all that there is: %+v", f)
	}
	all()
	one, err := r.engine.Hold(t.Context(), 1)
	must(t, err)
	one()
}

func TestARequestForWhichThereCanBeNoRoomIsRefusedAtOnce(t *testing.T) {
	r := newRig(t)
	_, err := r.engine.Hold(t.Context(), engine.DefaultMaxHeldBytes+1)
	if f := fault.As(err); err == nil || f.Kind != fault.BudgetExceeded || f.HTTPStatus != 413 || f.Retryable {
		t.Errorf("over all that there is: %+v", f)
	}
}
