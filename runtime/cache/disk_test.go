// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/store"
)

var roomy = cache.Limits{TTL: time.Hour, MaxEntries: 300, MaxBytes: 4 << 20}

func openStore(t testing.TB, dir string, k *clock) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir, MaxBytes: 4 << 20, MaxEntries: 300, Now: k.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// restarted returns a cache that knows nothing but what lies in the directory.
func restarted(t testing.TB, dir string, k *clock) *cache.Cache {
	t.Helper()
	c := cache.New(roomy, k.Now)
	c.SetStore(openStore(t, dir, k))
	c.OnStoreError(func(err error) { t.Error(err) })
	return c
}

func TestAfterARestartTheStoreAnswersManyAtOnceWithoutACall(t *testing.T) {
	k, dir := newClock(), t.TempDir()
	before := restarted(t, dir, k)
	if !ask(t, before, "a", 5) || !ask(t, before, "b", 5) {
		t.Fatal("want a call for each")
	}
	var calls atomic.Int32
	after := restarted(t, dir, k)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			value, source, err := after.Do(context.Background(), keyOf("a"), func(context.Context) ([]byte, error) {
				calls.Add(1)
				return nil, errors.New("called")
			})
			if err != nil || string(value) != "aaaaa" || source != cache.Kept {
				t.Errorf("%q from %v, %v", value, source, err)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 0 || after.Len() != 1 {
		t.Errorf("%d calls, and %d values in memory", calls.Load(), after.Len())
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if ask(t, after, "a", 5) || !ask(t, after, "b", 5) {
		t.Error("want a from memory, and b, which nobody asked for, gone with the directory")
	}
}

func TestAFailureIsNotWrittenToTheStore(t *testing.T) {
	k, dir := newClock(), t.TempDir()
	bad := errors.New("bad")
	_, _, err := restarted(t, dir, k).Do(context.Background(), keyOf("a"), func(context.Context) ([]byte, error) { return []byte("x"), bad })
	if !errors.Is(err, bad) || !ask(t, restarted(t, dir, k), "a", 1) {
		t.Errorf("the failure was kept: %v", err)
	}
}

func TestAnEntryOnDiskLivesForItsTTL(t *testing.T) {
	for name, tc := range map[string]struct {
		later time.Duration
		fresh bool
	}{
		"at once":                       {0, true},
		"just before its time":          {time.Hour - 1, true},
		"at its time":                   {time.Hour, false},
		"when the clock went back":      {-1, false},
		"when the clock went far back":  {-30 * 24 * time.Hour, false},
		"when the clock went far ahead": {30 * 24 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			k, dir := newClock(), t.TempDir()
			ask(t, restarted(t, dir, k), "a", 1)
			k.now = k.now.Add(tc.later)
			c := restarted(t, dir, k)
			if ask(t, c, "a", 1) == tc.fresh {
				t.Errorf("want it fresh: %v", tc.fresh)
			}
			if again := restarted(t, dir, k); ask(t, again, "a", 1) {
				t.Error("what was asked for a moment ago is not on disk")
			}
		})
	}
}

func TestTheWayThroughTheDiskMakesNothingYounger(t *testing.T) {
	k, dir := newClock(), t.TempDir()
	ask(t, restarted(t, dir, k), "a", 1)
	k.now = k.now.Add(time.Hour - 1)
	c := restarted(t, dir, k)
	if ask(t, c, "a", 1) {
		t.Fatal("gone before its time")
	}
	k.now = k.now.Add(1)
	if !ask(t, c, "a", 1) {
		t.Error("memory took it for new")
	}
}

func TestAnEntryInMemoryIsNotEternalWhenTheClockGoesBack(t *testing.T) {
	k := newClock()
	c := cache.New(roomy, k.Now)
	ask(t, c, "a", 1)
	k.now = k.now.Add(-24 * time.Hour)
	if !ask(t, c, "a", 1) {
		t.Error("an entry from the future is used")
	}
}

func TestATornEntryIsAskedForAgain(t *testing.T) {
	k, dir := newClock(), t.TempDir()
	ask(t, restarted(t, dir, k), "a", 5)
	path := filepath.Join(dir, cache.EntryName(keyOf("a")))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		flipped := slices.Clone(whole)
		flipped[n] ^= 1
		for _, torn := range [][]byte{whole[:n], flipped} {
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			if !ask(t, restarted(t, dir, k), "a", 5) {
				t.Errorf("damaged at byte %d it is used: %q", n, torn)
			}
			if ask(t, restarted(t, dir, k), "a", 5) {
				t.Errorf("damaged at byte %d it was not replaced", n)
			}
		}
	}
}

func TestADiskThatFailsIsToldOnceAndFailsNoCall(t *testing.T) {
	k, dir := newClock(), filepath.Join(t.TempDir(), "cache")
	c := restarted(t, dir, k)
	var told []error
	c.OnStoreError(func(err error) { told = append(told, err) })
	breakIt := func() {
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	breakIt()
	for _, name := range []string{"a", "b", "c"} {
		if !ask(t, c, name, 1) || ask(t, c, name, 1) {
			t.Errorf("%s: want a call, then memory", name)
		}
	}
	if len(told) != 1 {
		t.Fatalf("told %v, want one failure", told)
	}
	if _, ok := errors.AsType[*store.Error](told[0]); !ok {
		t.Errorf("told %T", told[0])
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if !ask(t, c, "d", 1) || ask(t, restarted(t, dir, k), "d", 1) {
		t.Error("the disk is well again and not used")
	}
	breakIt()
	ask(t, c, "e", 1)
	if len(told) != 2 {
		t.Errorf("told %v, want the second failure too", told)
	}
}

func TestASlowDiskHoldsUpNobodyElse(t *testing.T) {
	writing, release := make(chan struct{}), make(chan struct{})
	slow, err := store.Open(store.Options{Dir: t.TempDir(), MaxBytes: 1 << 20, MaxEntries: 10, Now: func() time.Time {
		close(writing) // the time is asked for while the file is written
		<-release
		return time.Now()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	c := cache.New(roomy, nil)
	ask(t, c, "a", 1)
	c.SetStore(slow)
	var wg sync.WaitGroup
	wg.Go(func() { ask(t, c, "b", 1) })
	<-writing
	if ask(t, c, "a", 1) || ask(t, c, "b", 1) || c.Len() != 2 {
		t.Error("want both from memory")
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, _, err = c.Do(ctx, keyOf("c"), func(context.Context) ([]byte, error) {
		cancel()
		return nil, errors.New("bad")
	})
	if err == nil {
		t.Error("another key's call was not made")
	}
	close(release)
	wg.Wait()
}

func TestTheStoreMayComeAndGo(t *testing.T) {
	k, dir := newClock(), t.TempDir()
	c := cache.New(roomy, k.Now)
	ask(t, c, "a", 1) // memory only
	s := openStore(t, dir, k)
	c.SetStore(s)
	ask(t, c, "b", 1)
	c.SetStore(nil)
	ask(t, c, "c", 1)
	if ask(t, c, "b", 1) {
		t.Error("memory lost what the store had too")
	}
	if want := []string{cache.EntryName(keyOf("b"))}; !slices.Equal(s.Names(), want) {
		t.Errorf("the store holds %v, want %v", s.Names(), want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.SetStore(s)
	c.OnStoreError(func(err error) { t.Errorf("a store that was closed is told of: %v", err) })
	if !ask(t, c, "d", 1) || ask(t, c, "d", 1) {
		t.Error("a closed store fails a call")
	}
}

func TestTheStoreHasTheLimitsOfTheCache(t *testing.T) {
	k, dir := newClock(), t.TempDir()
	c := restarted(t, dir, k)
	for i := range 10 {
		ask(t, c, fmt.Sprint("n", i), 1)
	}
	s := openStore(t, dir, k)
	c = cache.New(cache.Limits{}, k.Now)
	c.SetStore(s)
	if s.Len() != 10 {
		t.Fatalf("a cache without limits yet emptied its store down to %d", s.Len())
	}
	c.SetLimits(cache.Limits{TTL: time.Hour, MaxEntries: 7, MaxBytes: 1 << 20})
	if s.Len() != 7 {
		t.Errorf("%d entries, want 7", s.Len())
	}
	c.SetLimits(cache.Limits{TTL: time.Hour, MaxEntries: 7, MaxBytes: 3 * store.Size(1)})
	if s.Len() != 3 {
		t.Errorf("%d entries, want 3", s.Len())
	}
	second := openStore(t, t.TempDir(), k)
	c.SetStore(second)
	for i := range 10 {
		ask(t, c, fmt.Sprint("m", i), 1)
	}
	if second.Len() != 3 {
		t.Errorf("a store that came later has %d entries, want 3", second.Len())
	}
	huge := 3 * int(store.Size(1))
	c.OnStoreError(func(err error) { t.Errorf("a value over the limit is told of: %v", err) })
	if !ask(t, c, "x", huge) || !ask(t, c, "y", huge-300) || ask(t, c, "y", huge-300) || second.Has(cache.EntryName(keyOf("x"))) {
		t.Error("want x nowhere, and y in memory")
	}
}

// BenchmarkKeptInTheStore reads a value of 2 KiB from disk: each cache is new.
func BenchmarkKeptInTheStore(b *testing.B) {
	dir, k := b.TempDir(), newClock()
	key := keyOf("a")
	fn := func(context.Context) ([]byte, error) { return make([]byte, 2048), nil }
	_, _, _ = restarted(b, dir, k).Do(context.Background(), key, fn)
	s := openStore(b, dir, k)
	b.ReportAllocs()
	for b.Loop() {
		c := cache.New(roomy, k.Now)
		c.SetStore(s)
		if _, source, err := c.Do(context.Background(), key, fn); source != cache.Kept {
			b.Fatal("not kept", err)
		}
	}
}
