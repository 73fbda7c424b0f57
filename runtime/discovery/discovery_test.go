// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/discovery"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an endpoint that takes a while to list what it has at that time.
type server struct {
	mu     sync.Mutex
	has    []string // models that see
	fail   error
	panics bool
	deaf   bool // does not end with its context
	takes  time.Duration

	asked, now, most int
}

func (s *server) List(ctx context.Context) ([]provider.Listed, error) {
	s.mu.Lock()
	s.asked++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.now--; s.mu.Unlock() }()
	if s.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, fault.New(fault.VisionObservationFailed, "Timeout", "the provider did not answer in time").Because(ctx.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		panic("secret")
	}
	if s.fail != nil {
		return nil, s.fail
	}
	var list []provider.Listed
	for _, name := range s.has {
		list = append(list, provider.Listed{Name: name, ImageInput: provider.Yes})
	}
	return list, nil
}

func (s *server) set(edit func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit()
}

func (s *server) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func target(s *server) discovery.Target {
	return discovery.Target{Provider: &router.Provider{Name: "team/p"}, Endpoint: "e", Key: "k", Lister: s, Interval: time.Minute}
}

// names are the models that a Discovery tells of a target now.
func names(ctx context.Context, d *discovery.Discovery, t discovery.Target) string {
	var list []string
	for _, m := range d.Models(ctx, []discovery.Target{t})(t.Provider, t.Endpoint) {
		list = append(list, m.Name)
	}
	return strings.Join(list, " ")
}

// bubble runs a test with a clock of its own, and a Discovery that it closes.
func bubble(t *testing.T, o discovery.Options, fn func(*testing.T, *discovery.Discovery)) {
	synctest.Test(t, func(t *testing.T) {
		d := discovery.New(o)
		defer d.Close()
		fn(t, d)
	})
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q; want %q", what, got, want)
	}
}

func TestAListIsAskedForOnceAndStaysFreshForItsInterval(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{has: []string{"b", "a"}, takes: time.Second}
		began := time.Now()
		expect(t, "the first list", names(t.Context(), d, target(s)), "a b")
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %v for the first list", waited)
		}
		time.Sleep(59 * time.Second)
		s.set(func() { s.has = []string{"c"} })
		expect(t, "a fresh list", names(t.Context(), d, target(s)), "a b")
		synctest.Wait()
		if n := s.times(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestAnOldListIsToldAtOnceAndRefreshedBehindTheCaller(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{has: []string{"a"}, takes: time.Second}
		expect(t, "the first list", names(t.Context(), d, target(s)), "a")
		s.set(func() { s.has = []string{"b"} })
		time.Sleep(time.Minute)
		began := time.Now()
		for range 3 {
			expect(t, "the old list", names(t.Context(), d, target(s)), "a")
		}
		if time.Since(began) != 0 {
			t.Error("a caller waited for a refresh")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		expect(t, "the new list", names(t.Context(), d, target(s)), "b")
		if n := s.times(); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestH37OneModelsFailingProbeIsTheListersMatterAndTheOthersAreTold(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		broken := &server{fail: errors.New("no")}
		fine := &server{has: []string{"first", "third"}} // the second did not answer
		other := target(broken)
		other.Endpoint = "broken"
		found := d.Models(t.Context(), []discovery.Target{other, target(fine)})
		if got := found(other.Provider, "e"); len(got) != 2 || got[0].Name != "first" || got[1].Name != "third" {
			t.Errorf("told %v", got)
		}
		if got := found(other.Provider, "broken"); len(got) != 0 {
			t.Errorf("an endpoint that failed lists %v", got)
		}
	})
}

func TestH38WhenAllFailTheLastGoodListStays(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{has: []string{"a"}}
		expect(t, "the first list", names(t.Context(), d, target(s)), "a")
		s.set(func() { s.fail = errors.New("no") })
		for range 100 {
			time.Sleep(time.Minute)
			expect(t, "the last good list", names(t.Context(), d, target(s)), "a")
			synctest.Wait()
		}
		s.set(func() { s.fail, s.has = nil, []string{"b"} })
		time.Sleep(time.Minute)
		names(t.Context(), d, target(s))
		synctest.Wait()
		expect(t, "after it came back", names(t.Context(), d, target(s)), "b")
	})
}

func TestAFailureIsNotRepeatedBeforeItsTime(t *testing.T) {
	slow := fault.New(fault.VisionObservationFailed, "RateLimited", "slowly")
	slow.RetryAfter = 45 * time.Second
	later := fault.New(fault.VisionObservationFailed, "RateLimited", "much later")
	later.RetryAfter = time.Hour
	for name, tc := range map[string]struct {
		fail     error
		interval time.Duration
		after    time.Duration
	}{
		"half a minute":                                 {errors.New("no"), 10 * time.Minute, 30 * time.Second},
		"a shorter interval":                            {errors.New("no"), 10 * time.Second, 10 * time.Second},
		"as long as the endpoint asks for":              {slow, 10 * time.Minute, 45 * time.Second},
		"but no longer than a list would stay fresh":    {later, 10 * time.Minute, 10 * time.Minute},
		"half a minute where no interval is given, too": {errors.New("no"), 0, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
				s := &server{fail: tc.fail, has: []string{"a"}}
				at := target(s)
				at.Interval = tc.interval
				for range 3 {
					expect(t, "the list", names(t.Context(), d, at), "")
				}
				time.Sleep(tc.after - 1)
				names(t.Context(), d, at)
				if n := s.times(); n != 1 {
					t.Errorf("asked %d times before its time", n)
				}
				time.Sleep(time.Nanosecond)
				s.set(func() { s.fail = nil })
				expect(t, "after its time", names(t.Context(), d, at), "a")
			})
		})
	}
}

func TestH39ConcurrentCallersShareOneQuestion(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{has: []string{"a"}, takes: time.Second}
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() { expect(t, "the list", names(t.Context(), d, target(s)), "a") })
		}
		callers.Wait()
		if n := s.times(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestACallersLeavingDoesNotEndTheQuestion(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{has: []string{"a"}, takes: 3 * time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		expect(t, "to the caller that left", names(ctx, d, target(s)), "")
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("the caller left after %v", waited)
		}
		expect(t, "to the one that stayed", names(t.Context(), d, target(s)), "a")
		if waited := time.Since(began); waited != 3*time.Second || s.times() != 1 {
			t.Errorf("the other waited until %v, and %d were asked", waited, s.times())
		}
	})
}

func TestACallerWaitsNoLongerThanTheTimeout(t *testing.T) {
	for name, s := range map[string]*server{
		"that ends with its context": {takes: time.Hour},
		"that does not":              {takes: time.Hour, deaf: true},
	} {
		t.Run("for an endpoint "+name, func(t *testing.T) {
			bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
				began := time.Now()
				expect(t, "the list", names(t.Context(), d, target(s)), "")
				if waited := time.Since(began); waited != discovery.DefaultTimeout {
					t.Errorf("waited %v", waited)
				}
				names(t.Context(), d, target(s))
				if n := s.times(); n != 1 {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

func TestAnotherKeyForgetsTheList(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		before, after := &server{has: []string{"a"}}, &server{has: []string{"b"}, fail: errors.New("no")}
		expect(t, "before", names(t.Context(), d, target(before)), "a")
		moved := target(after)
		moved.Key = "other"
		expect(t, "after it moved to where nobody answers", names(t.Context(), d, moved), "")
		after.set(func() { after.fail = nil })
		time.Sleep(time.Minute)
		expect(t, "once that answers", names(t.Context(), d, moved), "b")
	})
}

func TestAnAnswerToTheKeyBeforeIsNotTaken(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		before, after := &server{has: []string{"a"}, takes: 5 * time.Second}, &server{has: []string{"b"}, takes: time.Second}
		moved := target(after)
		moved.Key = "other"
		go names(t.Context(), d, target(before))
		synctest.Wait()
		expect(t, "at once", names(t.Context(), d, moved), "b")
		time.Sleep(10 * time.Second)
		expect(t, "after the other's answer came", names(t.Context(), d, moved), "b")
	})
}

func TestManyEndpointsAreAskedAFewAtATimeAndDoNotMixUp(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		meter := &server{takes: time.Second}
		var targets []discovery.Target
		for i := range 24 {
			at := target(nil)
			at.Endpoint, at.Lister = fmt.Sprint("e", i), &named{meter, fmt.Sprint("m", i)}
			targets = append(targets, at)
		}
		found := d.Models(t.Context(), targets)
		for i, at := range targets {
			if got := found(at.Provider, at.Endpoint); len(got) != 1 || got[0].Name != fmt.Sprint("m", i) {
				t.Errorf("%s lists %v", at.Endpoint, got)
			}
		}
		if meter.most < 2 || meter.most > 8 {
			t.Errorf("%d were asked at the same time", meter.most)
		}
	})
}

// named lists one model, by the meter of all.
type named struct {
	*server
	name string
}

func (n *named) List(ctx context.Context) ([]provider.Listed, error) {
	_, err := n.server.List(ctx)
	return []provider.Listed{{Name: n.name}}, err
}

func TestWhatWasToldDoesNotChange(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{has: []string{"a"}}
		at := target(s)
		found := d.Models(t.Context(), []discovery.Target{at})
		s.set(func() { s.has = []string{"b"} })
		time.Sleep(time.Hour)
		names(t.Context(), d, at)
		synctest.Wait()
		expect(t, "now", names(t.Context(), d, at), "b")
		if got := found(at.Provider, "e"); len(got) != 1 || got[0].Name != "a" {
			t.Errorf("what was told before is now %v", got)
		}
	})
}

func TestDeclaredNamesAreLeftOutForThoseThatDeclareThem(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{has: []string{"a", "b", "c", "d"}}
		declares := target(s)
		declares.Provider = &router.Provider{Name: "team/p", Models: []router.Model{{Name: "d"}, {Name: "b"}, {Name: "x"}}}
		expect(t, "with a declaration", names(t.Context(), d, declares), "a c")
		expect(t, "without, once more", names(t.Context(), d, target(s)), "a b c d")
	})
}

func TestCloseEndsWhatIsUnderWayAndAsksNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := discovery.New(discovery.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s, slow := &server{has: []string{"a"}}, &server{takes: time.Hour}
		names(t.Context(), d, target(s))
		time.Sleep(time.Minute)
		s.set(func() { s.takes = time.Hour })
		expect(t, "while a refresh is under way", names(t.Context(), d, target(s)), "a")
		waiting := target(slow)
		waiting.Endpoint = "slow"
		told := make(chan string)
		go func() { told <- names(context.Background(), d, waiting) }()
		synctest.Wait()
		began := time.Now()
		d.Close()
		expect(t, "to a caller that waited", <-told, "")
		for range 20 {
			time.Sleep(time.Minute)
			expect(t, "after Close", names(t.Context(), d, target(s)), "a")
		}
		d.Close()
		if time.Since(began) != 20*time.Minute || s.times() != 2 || slow.times() != 1 || log.Len() > 0 {
			t.Errorf("took %v; asked %d and %d times; log: %s", time.Since(began), s.times(), slow.times(), log.String())
		}
	})
}

func TestTheLogNamesTheEndpointAndTheReasonAndNothingElse(t *testing.T) {
	var log bytes.Buffer
	bubble(t, discovery.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{fail: fault.New(fault.VisionObservationFailed, "Unauthorized", "at https://secret.example").Because(errors.New("key secret"))}
		names(t.Context(), d, target(s))
		time.Sleep(time.Minute)
		s.set(func() { s.fail, s.has = nil, []string{"a"} })
		names(t.Context(), d, target(s))
		time.Sleep(time.Minute)
		s.set(func() { s.panics = true })
		names(t.Context(), d, target(s))
		synctest.Wait()
	})
	for _, want := range []string{
		`endpoint=team/p@e kind=vision_observation_failed reason=Unauthorized`,
		`msg="models listed" endpoint=team/p@e models=1 left_out=0`,
		`msg="listing models panicked" endpoint=team/p@e`, `reason=Internal`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has not %q", want)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log tells too much: %s", log.String())
	}
}

func TestNobodyIsAskedWithoutALister(t *testing.T) {
	var log bytes.Buffer
	bubble(t, discovery.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, d *discovery.Discovery) {
		at := target(nil)
		at.Lister = nil
		expect(t, "the list", names(t.Context(), d, at), "")
		if got := d.Models(t.Context(), nil)(at.Provider, "e"); got != nil || log.Len() > 0 {
			t.Errorf("no target lists %v; log: %s", got, log.String())
		}
	})
}

func TestAListThatNobodyWantsForADayMakesRoomForAnother(t *testing.T) {
	bubble(t, discovery.Options{}, func(t *testing.T, d *discovery.Discovery) {
		s, other := &server{has: []string{"a"}}, &server{has: []string{"b"}}
		wants := func(endpoint string, s *server) string {
			at := target(s)
			at.Endpoint = endpoint
			return names(t.Context(), d, at)
		}
		wants("gone", s)
		wants("kept", s)
		time.Sleep(23 * time.Hour)
		wants("kept", s)
		time.Sleep(time.Hour)
		wants("new", other)
		s.set(func() { s.takes, s.has = time.Second, []string{"c"} })
		expect(t, "a list that was wanted an hour ago", wants("kept", s), "a")
		expect(t, "a list that was not, asked for anew", wants("gone", s), "c")
	})
}

func TestItsOwnClockTellsWhatIsOld(t *testing.T) {
	now := time.Now()
	bubble(t, discovery.Options{Now: func() time.Time { return now }}, func(t *testing.T, d *discovery.Discovery) {
		s := &server{has: []string{"a"}}
		names(t.Context(), d, target(s))
		time.Sleep(time.Hour)
		names(t.Context(), d, target(s))
		now = now.Add(time.Minute)
		names(t.Context(), d, target(s))
		synctest.Wait()
		if n := s.times(); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

func BenchmarkModelsAtHand(b *testing.B) {
	d := discovery.New(discovery.Options{})
	defer d.Close()
	s := &server{}
	for i := range discovery.MaxModels {
		s.has = append(s.has, fmt.Sprintf("model-%d", i))
	}
	at := target(s)
	at.Interval = time.Hour
	for i := range 64 {
		p := at.Provider
		p.Models = append(slices.Clip(p.Models), router.Model{Name: fmt.Sprintf("declared-%d", i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(d.Models(b.Context(), []discovery.Target{at})(at.Provider, "e")) != discovery.MaxModels {
			b.Fatal("the list is not there")
		}
	}
}
