// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

// The bounds of a circuit.
const (
	// FailuresToOpen is how many attempts in a row must find the endpoint down
	// for the circuit to open.
	FailuresToOpen = 5
	// OpenFor is how long an open circuit lets no attempt pass. After it one may,
	// on trial: its answer closes the circuit, its failure opens it again.
	OpenFor = 30 * time.Second
)

// outcome is what an attempt says about its endpoint.
type outcome int

const (
	// uncounted says nothing: the caller left, or nothing was sent.
	uncounted outcome = iota
	// up is an answer, be it a refusal or nonsense.
	up
	// down is no connection, no answer in time, or a failure of the server's own.
	down
)

// judge tells the outcome of an attempt that ended with err.
func judge(ctx context.Context, err error) outcome {
	if err == nil {
		return up
	}
	if ctx.Err() != nil {
		return uncounted
	}
	if e, ok := errors.AsType[*transport.Error](err); ok {
		switch e.Failure {
		case transport.Canceled, transport.Refusal:
			return uncounted
		case transport.TooLarge:
			return up
		}
		return down
	}
	if e, ok := errors.AsType[*exchange.StatusError](err); ok && e.Status >= 500 {
		return down
	}
	f := fault.As(err)
	switch {
	case f.Reason == "Timeout" || f.Reason == "Connection":
		return down
	case f.Kind != fault.VisionObservationFailed || f.Reason == "Internal" || f.Reason == "Canceled":
		return uncounted
	}
	return up
}

// The outcomes as the breaker counts them; up is nil.
var (
	errDown      = errors.New("the endpoint is down")
	errUncounted = errors.New("the attempt says nothing about the endpoint")
)

// circuit is the breaker of one endpoint.
type circuit struct {
	endpoint string
	log      *slog.Logger
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]
	last     atomic.Pointer[fault.Fault] // of the latest attempt that found it down
	opened   atomic.Pointer[time.Time]
}

func newCircuit(endpoint string, log *slog.Logger) *circuit {
	c := &circuit{endpoint: endpoint, log: log}
	c.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          endpoint,
		MaxRequests:   1, // on trial
		Timeout:       OpenFor,
		ReadyToTrip:   func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= FailuresToOpen },
		IsSuccessful:  func(err error) bool { return err == nil },
		IsExcluded:    func(err error) bool { return errors.Is(err, errUncounted) },
		OnStateChange: c.changed,
	})
	return c
}

// enter lets an attempt pass, which must end with leave, or says why not.
func (c *circuit) enter() (leave func(outcome, *fault.Fault), refused *fault.Fault) {
	done, err := c.breaker.Allow()
	if err != nil {
		return nil, c.refusal()
	}
	return func(came outcome, why *fault.Fault) {
		switch came {
		case up:
			done(nil)
		case down:
			c.last.Store(why)
			done(errDown)
		default:
			done(errUncounted)
		}
	}, nil
}

func (c *circuit) isOpen() bool { return c.breaker.State() == gobreaker.StateOpen }

// changed is called by the breaker, which is locked meanwhile.
func (c *circuit) changed(_ string, _, to gobreaker.State) {
	switch to {
	case gobreaker.StateOpen:
		now := time.Now()
		c.opened.Store(&now)
		c.log.Warn("circuit opened", "reason", c.last.Load().Reason, "for", OpenFor)
	case gobreaker.StateClosed:
		c.log.Info("circuit closed")
	}
}

// refusal is what a call gets that was not let through. It opened before, with a
// failure. While one attempt is on trial, the time left is not known: a second.
func (c *circuit) refusal() *fault.Fault {
	last := c.last.Load()
	f := fault.New(fault.VisionAdapterUnavailable, "CircuitOpen",
		"the endpoint %s keeps failing and is not called for a while", c.endpoint).
		Hint("%s", cmp.Or(last.RecoveryHint, "Wait, then call again, or name another model.")).
		With("last_reason", last.Reason).Because(last)
	f.Retryable = true
	f.RetryAfter = max(OpenFor-time.Since(*c.opened.Load()), time.Second)
	return f
}
