// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retry makes an Observer of one endpoint patient: it asks again after
// a failure that may pass, within bounds, and stops asking an endpoint that
// keeps failing until that had time to recover. It sits above the protocols and
// not among the HTTP decorators, since an unfinished body and an empty reply
// are seen only there.
package retry

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// The bounds of one call.
const (
	// Attempts is how often an endpoint is asked at most.
	Attempts = 3
	// Backoff is the wait after the first attempt; after the second it is twice
	// that. Each is stretched or shrunk by up to a half, so that callers who
	// failed together do not come back together.
	Backoff = 200 * time.Millisecond
	// MaxRetryAfter is the longest wait that an endpoint may ask for and still be
	// asked again by the same call.
	MaxRetryAfter = 10 * time.Second
)

// Options describe the endpoint that is asked.
type Options struct {
	// Endpoint names it in logs and faults, such as "team/openai@default".
	Endpoint string
	// Logger gets a line for each attempt that failed (debug), and when the
	// circuit opens (warn) and closes (info); nil discards them.
	Logger *slog.Logger
	// Backoff replaces the constant of that name; 0 leaves it.
	Backoff time.Duration
	// Attempted is told of each attempt that ended, from any goroutine, and
	// returns at once; nil tells nobody.
	Attempted func(Attempt)
}

// Attempt is one question to an endpoint, as metrics count it.
type Attempt struct {
	// Endpoint is Options.Endpoint.
	Endpoint string
	// Reason is that of the fault, a CamelCase word; empty for an answer.
	Reason string
	Took   time.Duration
	// Usage is what the endpoint says of its answer.
	Usage provider.Usage
}

// Observer is a provider.Observer that asks another one, up to Attempts times.
// Observers for the same endpoint must be one and the same, so that they share
// its circuit. It is safe for concurrent use.
type Observer struct {
	next    provider.Observer
	circuit *circuit
	backoff time.Duration
	log     *slog.Logger

	endpoint  string
	attempted func(Attempt)
}

var _ provider.Observer = (*Observer)(nil)

// New returns an Observer that asks next, which is one endpoint's.
func New(next provider.Observer, o Options) *Observer {
	log := slog.New(slog.DiscardHandler)
	if o.Logger != nil {
		log = o.Logger.With("endpoint", o.Endpoint)
	}
	backoff := Backoff
	if o.Backoff > 0 {
		backoff = o.Backoff
	}
	attempted := o.Attempted
	if attempted == nil {
		attempted = func(Attempt) {}
	}
	return &Observer{
		next: next, circuit: newCircuit(o.Endpoint, log), backoff: backoff, log: log,
		endpoint: o.Endpoint, attempted: attempted,
	}
}

// CircuitOpen reports whether the endpoint is not asked at the moment, because
// it keeps failing.
func (o *Observer) CircuitOpen() bool { return o.circuit.isOpen() }

// Observe asks until there is an answer, a failure that would come again, or
// no attempt or time left. It never waits past the context's deadline: a wait
// that does not fit ends the call at once. Errors are *fault.Fault: the last
// attempt's, with the number of attempts as the detail "attempts"; "Canceled"
// when the caller left; or vision_adapter_unavailable with reason "CircuitOpen"
// and the time left as RetryAfter, when the endpoint was not asked at all.
func (o *Observer) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	req.BeforeLarge = once(req.BeforeLarge)
	var last *fault.Fault
	for attempt := 1; ; attempt++ {
		leave, refused := o.circuit.enter()
		if refused != nil && last != nil {
			return provider.Reply{}, last // it opened while this call waited
		}
		if refused != nil {
			return provider.Reply{}, refused
		}
		reply, err := o.ask(ctx, req, leave)
		if err == nil {
			return reply, nil
		}
		last = counted(fault.As(err), attempt)
		wait, again := o.plan(ctx, last, attempt)
		o.log.DebugContext(ctx, "attempt failed", "reason", last.Reason, "attempt", attempt, "again", again, "wait", wait)
		if again {
			again = sleep(ctx, wait)
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return provider.Reply{}, canceled(ctx, last)
		}
		if !again {
			return provider.Reply{}, last
		}
	}
}

// ask is one attempt. The circuit hears of it even when next panics.
func (o *Observer) ask(ctx context.Context, req provider.Request, leave func(outcome, *fault.Fault)) (provider.Reply, error) {
	came, why := uncounted, (*fault.Fault)(nil)
	defer func() { leave(came, why) }()
	began := time.Now()
	reply, err := o.next.Observe(ctx, req)
	attempt := Attempt{Endpoint: o.endpoint, Took: time.Since(began), Usage: reply.Usage}
	if err != nil {
		why = fault.As(err)
		attempt.Reason = why.Reason
	}
	came = judge(ctx, err)
	o.attempted(attempt)
	return reply, err
}

// plan says whether to ask again after a failure, and after which wait.
func (o *Observer) plan(ctx context.Context, f *fault.Fault, attempt int) (wait time.Duration, again bool) {
	if !f.Retryable || attempt >= Attempts || ctx.Err() != nil || f.RetryAfter > MaxRetryAfter || o.circuit.isOpen() {
		return 0, false
	}
	wait = max(jittered(o.backoff*time.Duration(attempt)), f.RetryAfter)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return 0, false
	}
	return wait, true
}

// jittered is between half of d and one and a half of it.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }

// sleep waits for d, and reports whether the context lasted as long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// counted is a copy of f with the number of attempts among its details: the
// fault itself may be shared.
func counted(f *fault.Fault, attempts int) *fault.Fault {
	own := *f
	own.Details = maps.Clone(f.Details)
	return own.With("attempts", attempts)
}

// canceled is what a caller who left gets to hear, whatever the last attempt said.
func canceled(ctx context.Context, last *fault.Fault) *fault.Fault {
	if last.Reason == "Canceled" {
		return last
	}
	return exchange.Failed("Canceled", true, "the call was cancelled before the provider answered").
		With("attempts", last.Details["attempts"]).Because(ctx.Err())
}

// once makes a permission for a large reply, once given, good for all attempts.
func once(before func(context.Context) error) func(context.Context) error {
	if before == nil {
		return nil
	}
	granted := false
	return func(ctx context.Context) error {
		if granted {
			return nil
		}
		err := before(ctx)
		granted = err == nil
		return err
	}
}
