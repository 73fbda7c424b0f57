// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/retry"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

// switched is an endpoint that does what it is told to at the time.
type switched struct {
	do    step
	calls atomic.Int32
}

func (s *switched) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	s.calls.Add(1)
	if s.do != nil {
		if err := s.do(ctx, req); err != nil {
			return provider.Reply{}, err
		}
	}
	return provider.Reply{Text: "seen"}, nil
}

// down is a failure of the server that is not tried again, so that each call is
// one attempt.
func down() *fault.Fault {
	f := status(500)
	f.Retryable = false
	return f
}

func failure(kind transport.Failure) *fault.Fault {
	return exchange.Failed("Connection", false, "the provider could not be reached").Because(&transport.Error{Host: "h", Failure: kind})
}

func TestWhatOpensTheCircuit(t *testing.T) {
	for name, tc := range map[string]struct {
		fault *fault.Fault
		opens bool
	}{
		"status 500":                       {down(), true},
		"status 503":                       {status(503), true},
		"status 501":                       {status(501), true},
		"a timeout":                        {failure(transport.Timeout), true},
		"a connection that is lost":        {failure(transport.Connection), true},
		"a name without an address":        {failure(transport.Resolution), true},
		"a certificate that is not good":   {failure(transport.Untrusted), true},
		"a handshake that fails":           {failure(transport.Handshake), true},
		"a timeout that a proxy reports":   {exchange.Failed("Timeout", true, "x").Because(&exchange.StatusError{Status: 408}), true},
		"status 400":                       {status(400), false},
		"status 401":                       {exchange.Failed("Unauthorized", false, "x").Because(&exchange.StatusError{Status: 401}), false},
		"status 429":                       {limited(time.Minute), false},
		"an empty reply":                   {exchange.Empty(), false},
		"a reply that is no JSON":          {exchange.Failed("InvalidResponse", false, "x"), false},
		"a reply that is too large":        {failure(transport.TooLarge), false},
		"an address that is not called":    {failure(transport.Refusal), false},
		"a call that was cancelled below":  {failure(transport.Canceled), false},
		"a key that is not there":          {fault.New(fault.VisionAdapterUnavailable, "CredentialNotMounted", "x"), false},
		"a request that cannot be written": {exchange.Unwritable(errors.New("x")), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				endpoint := &switched{do: fails(tc.fault)}
				o := retry.New(endpoint, retry.Options{Endpoint: "team/x@eu"})
				for range 9 {
					f, _ := ask(t.Context(), t, o)
					if f.Reason == "CircuitOpen" {
						break
					}
				}
				f, _ := ask(t.Context(), t, o)
				if got := f.Reason == "CircuitOpen"; got != tc.opens {
					t.Errorf("the next call gave %s", f.Reason)
				}
				if calls := int(endpoint.calls.Load()); tc.opens && calls != retry.FailuresToOpen {
					t.Errorf("the endpoint was asked %d times before", calls)
				}
			})
		})
	}
}

func TestAnOpenCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &switched{do: fails(down())}
		o := retry.New(endpoint, retry.Options{Endpoint: "team/x@eu"})
		for range 5 {
			if f, _ := ask(t.Context(), t, o); f.Reason != "UpstreamStatus" {
				t.Fatalf("a call before gave %s", f.Reason)
			}
		}
		time.Sleep(12 * time.Second)
		f, took := ask(t.Context(), t, o)
		if f.Kind != fault.VisionAdapterUnavailable || f.Reason != "CircuitOpen" || !f.Retryable || f.RetryAfter != 18*time.Second {
			t.Errorf("the fault is %+v", f)
		}
		if took != 0 || endpoint.calls.Load() != 5 {
			t.Errorf("the call took %v, and the endpoint was asked %d times", took, endpoint.calls.Load())
		}
		if f.Details["last_reason"] != "UpstreamStatus" || f.Details["attempts"] != nil || !strings.Contains(f.Message, "team/x@eu") {
			t.Errorf("the fault says %q with %v", f.Message, f.Details)
		}
		if e, ok := errors.AsType[*exchange.StatusError](f); !ok || e.Status != 500 {
			t.Errorf("the cause is %v", f.Cause)
		}
	})
}

func TestACircuitThatOpensDuringACallEndsItWithItsOwnFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &switched{do: fails(status(503))}
		o := retry.New(endpoint, retry.Options{})
		_, _ = ask(t.Context(), t, o) // three attempts
		f, took := ask(t.Context(), t, o)
		if f.Reason != "UpstreamStatus" || f.Details["attempts"] != 2 || endpoint.calls.Load() != 5 || took > 300*time.Millisecond {
			t.Errorf("the fault is %s with %v after %d calls and %v", f.Reason, f.Details, endpoint.calls.Load(), took)
		}
	})
}

func TestACircuitThatOthersOpenDuringAWaitEndsTheCallWithItsOwnFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &switched{do: fails(limited(5 * time.Second))}
		o := retry.New(endpoint, retry.Options{})
		var f *fault.Fault
		var group sync.WaitGroup
		group.Go(func() { f, _ = ask(t.Context(), t, o) })
		synctest.Wait()
		endpoint.do = fails(down())
		for range 5 {
			_, _ = ask(t.Context(), t, o)
		}
		group.Wait()
		if f.Reason != "RateLimited" || f.Details["attempts"] != 1 || endpoint.calls.Load() != 6 {
			t.Errorf("the fault is %s with %v after %d calls", f.Reason, f.Details, endpoint.calls.Load())
		}
	})
}

func TestFailuresThatAreNotInARowDoNotOpenTheCircuit(t *testing.T) {
	for name, between := range map[string]step{"an answer": nil, "a refusal": fails(status(400))} {
		t.Run(name, func(t *testing.T) {
			endpoint := &switched{}
			o := retry.New(endpoint, retry.Options{})
			for i := range 20 {
				endpoint.do = fails(down())
				if i%5 == 4 {
					endpoint.do = between
				}
				if f, _ := ask(t.Context(), t, o); f != nil && f.Reason == "CircuitOpen" {
					t.Fatalf("call %d found the circuit open", i)
				}
			}
		})
	}
}

func TestWhatSaysNothingDoesNotBreakARow(t *testing.T) {
	endpoint := &switched{}
	o := retry.New(endpoint, retry.Options{})
	for range 5 {
		endpoint.do = fails(failure(transport.Refusal))
		_, _ = ask(t.Context(), t, o)
		endpoint.do = fails(down())
		_, _ = ask(t.Context(), t, o)
	}
	if f, _ := ask(t.Context(), t, o); f.Reason != "CircuitOpen" {
		t.Errorf("the next call gave %s", f.Reason)
	}
}

func TestCallersWhoLeaveDoNotOpenTheCircuit(t *testing.T) {
	for name, limit := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"by cancelling": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
		"by their own deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				endpoint := &switched{do: func(ctx context.Context, _ provider.Request) error {
					<-ctx.Done()
					return failure(transport.Timeout)
				}}
				o := retry.New(endpoint, retry.Options{})
				for range 10 {
					ctx, cancel := limit(t.Context())
					if f, _ := ask(ctx, t, o); f.Reason == "CircuitOpen" {
						t.Error("the circuit is open")
					}
					cancel()
				}
			})
		})
	}
}

// opened returns an Observer whose circuit was opened and may be tried now.
func opened(t *testing.T, endpoint *switched, log *slog.Logger) *retry.Observer {
	t.Helper()
	o := retry.New(endpoint, retry.Options{Endpoint: "team/x@eu", Logger: log})
	endpoint.do = fails(down())
	for range 5 {
		_, _ = ask(t.Context(), t, o)
	}
	time.Sleep(retry.OpenFor + 1)
	return o
}

func TestTheTrialOfACircuit(t *testing.T) {
	for name, tc := range map[string]struct {
		trial  step
		closes bool
	}{
		"an answer closes it":       {nil, true},
		"a refusal closes it":       {fails(status(404)), true},
		"a failure opens it again":  {fails(down()), false},
		"a rate limit closes it":    {fails(limited(time.Hour)), true},
		"no connection opens it":    {fails(failure(transport.Connection)), false},
		"nonsense is an answer too": {fails(exchange.Failed("InvalidResponse", false, "x")), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				endpoint := &switched{}
				o := opened(t, endpoint, nil)
				endpoint.do = tc.trial
				if f, _ := ask(t.Context(), t, o); f != nil && f.Reason == "CircuitOpen" {
					t.Fatal("the trial was not let through")
				}
				endpoint.do = nil
				f, _ := ask(t.Context(), t, o)
				if closed := f == nil; closed != tc.closes {
					t.Fatalf("the call after the trial gave %v", f)
				}
				if !tc.closes && (f.Reason != "CircuitOpen" || f.RetryAfter != retry.OpenFor) {
					t.Errorf("the call after the trial gave %+v", f)
				}
			})
		})
	}
}

func TestOnlyOneCallIsOnTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &switched{}
		o := opened(t, endpoint, nil)
		release := make(chan struct{})
		endpoint.do = func(context.Context, provider.Request) error { <-release; return nil }
		var group sync.WaitGroup
		group.Go(func() {
			if f, _ := ask(t.Context(), t, o); f != nil {
				t.Errorf("the trial gave %v", f)
			}
		})
		synctest.Wait()
		for range 3 {
			if f, _ := ask(t.Context(), t, o); f == nil || f.Reason != "CircuitOpen" || f.RetryAfter != time.Second {
				t.Errorf("a call beside the trial gave %+v", f)
			}
		}
		close(release)
		group.Wait()
		if calls := endpoint.calls.Load(); calls != 6 {
			t.Errorf("the endpoint was asked %d times", calls)
		}
	})
}

func TestATrialThatEndsWithoutAnOutcomeLeavesRoomForTheNext(t *testing.T) {
	panics := func(context.Context, provider.Request) error { panic("a defect") }
	for name, trial := range map[string]step{
		"cancelled":        func(ctx context.Context, _ provider.Request) error { <-ctx.Done(); return failure(transport.Canceled) },
		"nothing was sent": fails(failure(transport.Refusal)),
		"panicked":         panics,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				endpoint := &switched{}
				o := opened(t, endpoint, nil)
				endpoint.do = trial
				for range 3 {
					func() {
						defer func() { _ = recover() }()
						ctx, cancel := context.WithCancel(t.Context())
						time.AfterFunc(time.Second, cancel)
						defer cancel()
						if f, _ := ask(ctx, t, o); f.Reason == "CircuitOpen" {
							t.Error("the trial was not let through")
						}
					}()
				}
				endpoint.do = fails(down())
				if f, _ := ask(t.Context(), t, o); f.Reason == "CircuitOpen" {
					t.Error("the next call was not let through")
				}
				if f, _ := ask(t.Context(), t, o); f.Reason != "CircuitOpen" {
					t.Errorf("the next call was no trial: the one after it gave %s", f.Reason)
				}
			})
		})
	}
}

func TestTheHintOfAnOpenCircuitIsThatOfItsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &switched{do: fails(failure(transport.Untrusted).Hint("Check the caBundle."))}
		o := retry.New(endpoint, retry.Options{})
		for range 5 {
			_, _ = ask(t.Context(), t, o)
		}
		if f, _ := ask(t.Context(), t, o); f.RecoveryHint != "Check the caBundle." {
			t.Errorf("the hint is %q", f.RecoveryHint)
		}
	})
}

func TestTheLogOfACircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		endpoint := &switched{}
		o := opened(t, endpoint, log)
		endpoint.do = nil
		_, _ = ask(t.Context(), t, o)
		want := fmt.Sprintln(`level=WARN msg="circuit opened" endpoint=team/x@eu reason=UpstreamStatus for=30s`) +
			fmt.Sprintln(`level=INFO msg="circuit closed" endpoint=team/x@eu`)
		if got := out.String(); got != want {
			t.Errorf("the log is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestManyCallsAtOnceOfAnEndpointThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &switched{do: fails(status(503))}
		o := retry.New(endpoint, retry.Options{})
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if f, _ := ask(t.Context(), t, o); f == nil || !f.Retryable {
					t.Errorf("a call gave %v", f)
				}
			})
		}
		group.Wait()
		if f, _ := ask(t.Context(), t, o); f.Reason != "CircuitOpen" {
			t.Errorf("the next call gave %s", f.Reason)
		}
		if calls := endpoint.calls.Load(); calls > 100 {
			t.Errorf("the endpoint was asked %d times", calls)
		}
	})
}
