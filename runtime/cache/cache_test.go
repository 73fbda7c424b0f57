// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// overhead is what an entry counts beside its value.
const overhead = 256

// clock is a clock that tests move.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{now: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)} }

func keyOf(name string) cache.Key { return cache.Fields{Prompt: name}.Key() }

// ask asks for a value, and tells whether a call was made for it.
func ask(t *testing.T, c *cache.Cache, name string, size int) bool {
	t.Helper()
	called := false
	value, source, err := c.Do(context.Background(), keyOf(name), func(context.Context) ([]byte, error) {
		called = true
		return bytes.Repeat([]byte(name[:1]), size), nil
	})
	if err != nil || len(value) != size {
		t.Fatalf("asking for %s gave %d bytes and %v", name, len(value), err)
	}
	if called != (source == cache.Called) {
		t.Errorf("called is %v and the source is %v", called, source)
	}
	return called
}

func TestAKeptValueIsNotAskedForAgain(t *testing.T) {
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 10, MaxBytes: 1 << 20}, nil)
	if !ask(t, c, "a", 5) || ask(t, c, "a", 5) {
		t.Error("want a call, then none")
	}
}

func TestAnEntryLivesForItsTTL(t *testing.T) {
	k := newClock()
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 10, MaxBytes: 1 << 20}, k.Now)
	ask(t, c, "a", 5)
	k.now = k.now.Add(time.Hour - 1)
	if ask(t, c, "a", 5) {
		t.Error("gone before its time")
	}
	k.now = k.now.Add(1)
	if !ask(t, c, "a", 5) {
		t.Error("kept over its time: using an entry must not make it younger")
	}
	k.now = k.now.Add(time.Minute)
	c.SetLimits(cache.Limits{TTL: time.Minute, MaxEntries: 10, MaxBytes: 1 << 20})
	if !ask(t, c, "a", 5) {
		t.Error("a shorter TTL does not count for what is there")
	}
}

func TestTheLeastRecentlyUsedGoesAtTheLimitOfEntries(t *testing.T) {
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 2, MaxBytes: 1 << 20}, nil)
	ask(t, c, "a", 1)
	ask(t, c, "b", 1)
	ask(t, c, "a", 1)
	ask(t, c, "c", 1)
	if c.Len() != 2 || ask(t, c, "a", 1) || !ask(t, c, "b", 1) {
		t.Error("want a kept and b gone")
	}
}

func TestBytesAreBoundedAndCounted(t *testing.T) {
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 100, MaxBytes: 3 * (overhead + 100)}, nil)
	for _, name := range []string{"a", "b", "c"} {
		ask(t, c, name, 100)
	}
	if got := c.Bytes(); got != 3*(overhead+100) {
		t.Errorf("three entries count %d bytes", got)
	}
	ask(t, c, "d", 101)
	if c.Len() != 2 || c.Bytes() != 2*overhead+201 || !ask(t, c, "a", 100) {
		t.Errorf("%d entries of %d bytes after one too many", c.Len(), c.Bytes())
	}
	ask(t, c, "huge", 3*(overhead+100))
	if !ask(t, c, "huge", 3*(overhead+100)) {
		t.Error("a value over the limit was kept")
	}
	c.SetLimits(cache.Limits{TTL: time.Hour, MaxEntries: 100, MaxBytes: overhead})
	if c.Len() != 0 || c.Bytes() != 0 {
		t.Errorf("%d entries of %d bytes after the limit fell", c.Len(), c.Bytes())
	}
}

func TestAFailureIsNotKept(t *testing.T) {
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 2, MaxBytes: 1 << 20}, nil)
	bad := errors.New("bad")
	if _, _, err := c.Do(context.Background(), keyOf("a"), func(context.Context) ([]byte, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Errorf("the failure became %v", err)
	}
	if !ask(t, c, "a", 1) {
		t.Error("the failure was kept")
	}
}

func TestAPanicIsAFailureWithoutItsValue(t *testing.T) {
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 2, MaxBytes: 1 << 20}, nil)
	_, _, err := c.Do(context.Background(), keyOf("a"), func(context.Context) ([]byte, error) { panic("secret") })
	p, ok := errors.AsType[*cache.PanicError](err)
	if !ok || bytes.Contains(p.Stack, []byte("secret")) {
		t.Errorf("the panic became %v", err)
	}
	if !ask(t, c, "a", 1) {
		t.Error("the key is stuck after a panic")
	}
}

func TestEqualRequestsShareOneCallAndOneWhoLeavesTakesNothing(t *testing.T) {
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 2, MaxBytes: 1 << 20}, nil)
	var calls atomic.Int32
	began, release := make(chan struct{}), make(chan struct{})
	fn := func(ctx context.Context) ([]byte, error) {
		calls.Add(1)
		close(began)
		select {
		case <-release:
			return []byte("seen"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	leader, leave := context.WithCancel(context.Background())
	gone := make(chan error)
	go func() {
		_, _, err := c.Do(leader, keyOf("a"), fn)
		gone <- err
	}()
	<-began
	var wg sync.WaitGroup
	joined := make(chan struct{}, 20)
	for range 20 {
		wg.Go(func() {
			joined <- struct{}{}
			value, source, err := c.Do(context.Background(), keyOf("a"), fn)
			if err != nil || string(value) != "seen" || source == cache.Called {
				t.Errorf("a joiner got %q, %v, %v", value, source, err)
			}
		})
	}
	for range 20 {
		<-joined
	}
	for c.Waiting(keyOf("a")) != 21 {
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the one who left got %v", err)
	}
	close(release)
	wg.Wait()
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestACallThatNobodyWaitsForIsCancelledAndMakesWay(t *testing.T) {
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 2, MaxBytes: 1 << 20}, nil)
	type contextKey struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), contextKey{}, "trace"))
	ended, block := make(chan error, 1), make(chan struct{})
	_, _, err := c.Do(ctx, keyOf("a"), func(ctx context.Context) ([]byte, error) {
		if ctx.Value(contextKey{}) != "trace" {
			t.Error("the context's values are lost")
		}
		cancel()
		<-ctx.Done()
		ended <- ctx.Err()
		<-block // slow to end: a new request must not wait for it
		return nil, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(<-ended, context.Canceled) {
		t.Errorf("the caller got %v", err)
	}
	if !ask(t, c, "a", 1) {
		t.Error("a new request joined a cancelled call")
	}
	close(block)
}

func TestEveryFieldIsInTheKey(t *testing.T) {
	base := cache.Fields{"image", "prompt", "provider", "endpoint", "digest", "model", "schema", "policy"}
	seen := map[cache.Key]string{base.Key(): "base"}
	for name, change := range map[string]func(*cache.Fields){
		"image":         func(f *cache.Fields) { f.ImageSHA256 = "x" },
		"prompt":        func(f *cache.Fields) { f.Prompt = "x" },
		"provider":      func(f *cache.Fields) { f.Provider = "x" },
		"endpoint":      func(f *cache.Fields) { f.Endpoint = "x" },
		"digest":        func(f *cache.Fields) { f.EndpointDigest = "x" },
		"model":         func(f *cache.Fields) { f.Model = "x" },
		"schema":        func(f *cache.Fields) { f.Schema = "x" },
		"policy":        func(f *cache.Fields) { f.Policy = "x" },
		"running along": func(f *cache.Fields) { f.Prompt, f.Provider = "promptp", "rovider" },
	} {
		f := base
		change(&f)
		if other, ok := seen[f.Key()]; ok {
			t.Errorf("the keys of %s and %s are equal", name, other)
		}
		seen[f.Key()] = name
	}
	same := base
	if base.Key() != same.Key() {
		t.Error("equal fields have different keys")
	}
}

func BenchmarkKept(b *testing.B) {
	c := cache.New(cache.Limits{TTL: time.Hour, MaxEntries: 1024, MaxBytes: 1 << 30}, nil)
	keys := make([]cache.Key, 1024)
	fn := func(context.Context) ([]byte, error) { return make([]byte, 2048), nil }
	for i := range keys {
		keys[i] = keyOf(fmt.Sprint("k", i))
		_, _, _ = c.Do(context.Background(), keys[i], fn)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, source, _ := c.Do(context.Background(), keys[i%len(keys)], fn); source != cache.Kept {
			b.Fatal("not kept")
		}
		i++
	}
}
