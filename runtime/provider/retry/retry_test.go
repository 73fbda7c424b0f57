// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is an endpoint that answers each call by the next of its steps, and by
// the last one for ever; nil stands for an answer.
type script struct {
	steps []func(context.Context, provider.Request) error
	calls int
}

func (s *script) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	step := s.steps[min(s.calls, len(s.steps)-1)]
	s.calls++
	if step != nil {
		if err := step(ctx, req); err != nil {
			return provider.Reply{}, err
		}
	}
	return provider.Reply{Text: "seen"}, nil
}

type step = func(context.Context, provider.Request) error

// fails is a step that always gives the same, shared, fault.
func fails(f *fault.Fault) step {
	return func(context.Context, provider.Request) error { return f }
}

func status(code int) *fault.Fault {
	f := exchange.Failed("UpstreamStatus", code >= 500, "the provider failed with status %d", code)
	return f.With("upstream_status", code).Because(&exchange.StatusError{Status: code})
}

// limited is a 429 that asks to wait.
func limited(wait time.Duration) *fault.Fault {
	f := exchange.Failed("RateLimited", true, "the provider limits the rate of calls").Because(&exchange.StatusError{Status: 429})
	f.RetryAfter = wait
	return f
}

// ask makes one call and returns how long it took and its fault, nil for none.
func ask(ctx context.Context, t *testing.T, o *retry.Observer) (*fault.Fault, time.Duration) {
	t.Helper()
	start := time.Now()
	reply, err := o.Observe(ctx, provider.Request{})
	took := time.Since(start)
	if err == nil {
		if reply.Text != "seen" {
			t.Errorf("the reply is %+v", reply)
		}
		return nil, took
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		t.Fatalf("the error is %T", err)
	}
	return f, took
}

func TestWhatIsTriedAgain(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		steps    []step
		within   time.Duration // of the context; 0 is for ever
		calls    int
		min, max time.Duration
		reason   string // "" for an answer
	}{
		"an answer is returned at once":                         {[]step{nil}, 0, 1, 0, 0, ""},
		"a failure that passes":                                 {[]step{fails(status(500)), nil}, 0, 2, 100 * ms, 300 * ms, ""},
		"two failures that pass":                                {[]step{fails(status(500)), fails(exchange.Empty()), nil}, 0, 3, 300 * ms, 900 * ms, ""},
		"a failure that stays, three times":                     {[]step{fails(status(503))}, 0, 3, 300 * ms, 900 * ms, "UpstreamStatus"},
		"the last failure counts":                               {[]step{fails(status(503)), fails(exchange.Truncated())}, 0, 2, 100 * ms, 300 * ms, "Truncated"},
		"a refusal is final":                                    {[]step{fails(status(400))}, 0, 1, 0, 0, "UpstreamStatus"},
		"an error that is no fault is final":                    {[]step{func(context.Context, provider.Request) error { return errors.New("secret") }}, 0, 1, 0, 0, "Internal"},
		"a wait that is asked for":                              {[]step{fails(limited(7 * time.Second)), nil}, 0, 2, 7 * time.Second, 7 * time.Second, ""},
		"the longest wait that may be asked for":                {[]step{fails(limited(10 * time.Second)), nil}, 0, 2, 10 * time.Second, 10 * time.Second, ""},
		"a longer one ends the call":                            {[]step{fails(limited(10*time.Second + 1)), nil}, 0, 1, 0, 0, "RateLimited"},
		"a shorter one than ours does not hurry":                {[]step{fails(limited(ms)), nil}, 0, 2, 100 * ms, 300 * ms, ""},
		"a wait that ends before the deadline":                  {[]step{fails(limited(7 * time.Second)), nil}, 8 * time.Second, 2, 7 * time.Second, 7 * time.Second, ""},
		"a wait that ends with the deadline is not begun":       {[]step{fails(limited(7 * time.Second)), nil}, 7 * time.Second, 1, 0, 0, "RateLimited"},
		"a backoff that would end past the deadline is neither": {[]step{fails(status(500)), nil}, 50 * ms, 1, 0, 0, "UpstreamStatus"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if tc.within > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), tc.within)
				}
				defer cancel()
				endpoint := &script{steps: tc.steps}
				f, took := ask(ctx, t, retry.New(endpoint, retry.Options{Endpoint: "team/x@default"}))
				if endpoint.calls != tc.calls {
					t.Errorf("the endpoint was asked %d times, want %d", endpoint.calls, tc.calls)
				}
				if took < tc.min || took > tc.max {
					t.Errorf("the call took %v, want %v to %v", took, tc.min, tc.max)
				}
				if f == nil {
					if tc.reason != "" {
						t.Errorf("the call was answered, want %s", tc.reason)
					}
					return
				}
				if f.Reason != tc.reason || f.Details["attempts"] != tc.calls {
					t.Errorf("the fault is %s with %v, want %s", f.Reason, f.Details, tc.reason)
				}
			})
		})
	}
}

func TestTheFaultOfALongWaitSaysHowLong(t *testing.T) {
	endpoint := &script{steps: []step{fails(limited(time.Minute))}}
	if f, _ := ask(t.Context(), t, retry.New(endpoint, retry.Options{})); f.RetryAfter != time.Minute || !f.Retryable {
		t.Errorf("the fault is %+v", f)
	}
}

func TestASharedFaultIsNotChanged(t *testing.T) {
	shared := status(400)
	f, _ := ask(t.Context(), t, retry.New(&script{steps: []step{fails(shared)}}, retry.Options{}))
	if _, changed := shared.Details["attempts"]; changed {
		t.Error("the endpoint's own fault was changed")
	}
	if f.Details["upstream_status"] != 400 || f.Details["attempts"] != 1 || f.Message != shared.Message || !errors.Is(f, shared.Cause) {
		t.Errorf("the fault is %+v", f)
	}
}

func TestEachWaitIsJittered(t *testing.T) {
	waits := map[time.Duration]bool{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			_, took := ask(t.Context(), t, retry.New(&script{steps: []step{fails(status(500)), nil}}, retry.Options{}))
			waits[took] = true
		})
	}
	if len(waits) < 5 {
		t.Errorf("20 waits took only %d different times", len(waits))
	}
}

func TestACallerWhoLeaves(t *testing.T) {
	canceled := func(ctx context.Context) step {
		return func(context.Context, provider.Request) error {
			<-ctx.Done()
			return exchange.Failed("Canceled", true, "the call was cancelled").Because(ctx.Err())
		}
	}
	for name, tc := range map[string]struct {
		step  func(context.Context) step
		calls int
	}{
		"during an attempt":     {canceled, 1},
		"during the first wait": {func(context.Context) step { return fails(limited(time.Second)) }, 1},
		"as an attempt is refused": {func(ctx context.Context) step {
			return func(context.Context, provider.Request) error { <-ctx.Done(); return status(403) }
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(300*time.Millisecond, cancel)
				endpoint := &script{steps: []step{tc.step(ctx)}}
				f, took := ask(ctx, t, retry.New(endpoint, retry.Options{}))
				if f.Kind != fault.VisionObservationFailed || f.Reason != "Canceled" || !errors.Is(f, context.Canceled) || f.Details["attempts"] != tc.calls {
					t.Errorf("the fault is %+v", f)
				}
				if endpoint.calls != tc.calls || took != 300*time.Millisecond {
					t.Errorf("the endpoint was asked %d times in %v", endpoint.calls, took)
				}
			})
		})
	}
}

func TestADeadlineThatPassesDuringAnAttemptEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		endpoint := &script{steps: []step{func(ctx context.Context, _ provider.Request) error {
			<-ctx.Done()
			return exchange.Failed("Timeout", true, "the provider did not answer in time")
		}}}
		f, took := ask(ctx, t, retry.New(endpoint, retry.Options{}))
		if f.Reason != "Timeout" || !f.Retryable || endpoint.calls != 1 || took != time.Second {
			t.Errorf("the fault is %+v after %d calls and %v", f, endpoint.calls, took)
		}
	})
}

func TestPermissionForALargeReplyIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := func(ctx context.Context, req provider.Request) error {
			if err := req.BeforeLarge(ctx); err != nil {
				return exchange.Empty()
			}
			return exchange.Failed("Connection", true, "the body broke off")
		}
		asked := 0
		endpoint := &script{steps: []step{large}}
		_, err := retry.New(endpoint, retry.Options{}).Observe(t.Context(), provider.Request{BeforeLarge: func(context.Context) error {
			if asked++; asked == 1 {
				return errors.New("not now")
			}
			return nil
		}})
		if f := fault.As(err); f.Reason != "Connection" || asked != 2 || endpoint.calls != 3 {
			t.Errorf("permission was asked for %d times in %d calls: %v", asked, endpoint.calls, f)
		}
	})
}

func TestTheLogOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		secret := limited(2*time.Second).Because(errors.New("Bearer sk-very-secret")).With("note", "sk-very-secret")
		_, _ = ask(t.Context(), t, retry.New(&script{steps: []step{fails(secret), fails(exchange.Truncated())}},
			retry.Options{Endpoint: "team/x@eu", Logger: log}))
		want := "level=DEBUG msg=\"attempt failed\" endpoint=team/x@eu reason=RateLimited attempt=1 again=true wait=2s\n" +
			"level=DEBUG msg=\"attempt failed\" endpoint=team/x@eu reason=Truncated attempt=2 again=false wait=0s\n"
		if got := out.String(); got != want {
			t.Errorf("the log is\n%s\nwant\n%s", got, want)
		}
		if strings.Contains(out.String(), "secret") {
			t.Error("the log holds more than reasons")
		}
		out.Reset()
		ctx, cancel := context.WithCancel(t.Context())
		_, _ = ask(ctx, t, retry.New(&script{steps: []step{func(context.Context, provider.Request) error { cancel(); return exchange.Empty() }}},
			retry.Options{Endpoint: "team/x@eu", Logger: log}))
		if want, got := "level=DEBUG msg=\"attempt failed\" endpoint=team/x@eu reason=Empty attempt=1 again=false wait=0s\n", out.String(); got != want {
			t.Errorf("the log of a caller who left is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestTheFirstWaitCanBeChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &script{steps: []step{fails(status(500))}}
		if _, took := ask(t.Context(), t, retry.New(endpoint, retry.Options{Backoff: time.Second})); took < 1500*time.Millisecond || took > 4500*time.Millisecond {
			t.Errorf("the call took %v", took)
		}
	})
}

func TestEachAttemptIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(d time.Duration, then step) step {
			return func(ctx context.Context, req provider.Request) error {
				time.Sleep(d)
				if then == nil {
					return nil
				}
				return then(ctx, req)
			}
		}
		var told []retry.Attempt
		endpoint := &script{steps: []step{took(time.Second, fails(status(503))), took(2*time.Second, nil)}}
		o := retry.New(talkative{endpoint}, retry.Options{Endpoint: "team/x@main", Attempted: func(a retry.Attempt) { told = append(told, a) }})
		if f, _ := ask(t.Context(), t, o); f != nil {
			t.Fatal(f)
		}
		want := []retry.Attempt{
			{Endpoint: "team/x@main", Reason: "UpstreamStatus", Took: time.Second},
			{Endpoint: "team/x@main", Took: 2 * time.Second, Usage: provider.Usage{InputTokens: 7, OutputTokens: 3}},
		}
		if !slices.Equal(told, want) || o.CircuitOpen() {
			t.Errorf("told %+v; want %+v", told, want)
		}
	})
}

// talkative adds tokens to answers.
type talkative struct{ provider.Observer }

func (c talkative) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	reply, err := c.Observer.Observe(ctx, req)
	if err == nil {
		reply.Usage = provider.Usage{InputTokens: 7, OutputTokens: 3}
	}
	return reply, err
}
