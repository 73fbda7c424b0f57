// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestALeafOfANewCAIsServedOnlyAfterTheOverlapInEveryCABundle(t *testing.T) {
	now, refused := newClock(), false
	c := installed().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if refused {
				return errors.New("refused")
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	r := replica(t, c, now)
	mustSync(t, r)
	old := r.known
	byOld := func(want bool, when string) {
		t.Helper()
		if got := r.leaf.Leaf.CheckSignatureFrom(old.current()) == nil; got != want {
			t.Errorf("%s: the leaf is of the old CA: %v, want %v", when, got, want)
		}
		checkTrusted(t, c, r, now, "127.0.0.1")
	}
	now.Add(DefaultCALifetime / 3 * 2)
	refused = true
	for range 3 {
		if r.Sync(t.Context()) == nil {
			t.Fatal("the refusal is not told")
		}
		byOld(true, "while the caBundle cannot be patched")
		now.Add(2 * DefaultOverlap)
	}
	refused = false
	mustSync(t, r)
	byOld(true, "at the moment at which the caBundle has it")
	now.Add(DefaultOverlap - time.Second)
	mustSync(t, r)
	byOld(true, "before the overlap has passed")
	now.Add(time.Second)
	mustSync(t, r)
	byOld(false, "after the overlap")
}

func TestALeafThatIsDueDuringTheOverlapIsSignedByTheOldCA(t *testing.T) {
	now, c := newClock(), installed().Build()
	r := replica(t, c, now)
	mustSync(t, r)
	old := r.known
	now.Add(DefaultCALifetime / 3 * 2)
	mustSync(t, r)
	leaf := r.leaf
	r.options.Hosts = append(r.options.Hosts, "further.example") // one reason of several to sign at once
	now.Add(time.Minute)
	mustSync(t, r)
	if r.leaf == leaf || r.leaf.Leaf.CheckSignatureFrom(old.current()) != nil {
		t.Error("the leaf is not of the old CA, or was not renewed")
	}
	checkTrusted(t, c, r, now, "127.0.0.1", "further.example")
}

func TestALeafDoesNotOutliveItsCA(t *testing.T) {
	now := newClock().Now()
	ca := born(t, now, time.Hour)
	leaf, err := ca.sign(now, 2*time.Hour, []string{"webhook.example"})
	if err != nil {
		t.Fatal(err)
	}
	if !leaf.Leaf.NotAfter.Equal(ca.current().NotAfter) {
		t.Errorf("the leaf holds until %s, its CA until %s", leaf.Leaf.NotAfter, ca.current().NotAfter)
	}
}

func TestAReplicaOutlivesTheLossOfItsRightToReadTheSecret(t *testing.T) {
	now, refused := newClock(), false
	c := installed().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if refused && key == secretName {
				return errors.New("refused")
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	r, other := replica(t, c, now), replica(t, c, now)
	mustSync(t, r)
	mustSync(t, other)
	refused = true
	for range 4 {
		now.Add(DefaultLeafLifetime / 3 * 2)
		if r.Sync(t.Context()) == nil {
			t.Error("the refusal is not told")
		}
		checkTrusted(t, c, r, now, "127.0.0.1")
	}
	wipe(t, c)
	if r.Sync(t.Context()) == nil {
		t.Error("the refusal is not told")
	}
	checkTrusted(t, c, r, now, "127.0.0.1")

	// Meanwhile the other replica renews the CA: what the first cannot know stays.
	now.Add(DefaultCALifetime / 3 * 2)
	refused = false
	mustSync(t, other)
	refused = true
	if r.Sync(t.Context()) == nil {
		t.Error("the refusal is not told")
	}
	for i, bundle := range bundles(t, c) {
		if !slices.ContainsFunc(parseBundle(bundle), other.known.current().Equal) {
			t.Errorf("caBundle %d lacks the CA that the other replica made", i)
		}
	}
}

func TestClocksThatDifferByLessThanFiveMinutesDoNotMatter(t *testing.T) {
	ahead, behind := newClock(), newClock()
	ahead.Add(skew - time.Second)
	c := installed().Build()
	a, b := replica(t, c, ahead), replica(t, c, behind)
	mustSync(t, a)
	mustSync(t, b)
	for range 400 {
		checkTrusted(t, c, a, behind, "127.0.0.1") // an API server whose clock is behind
		checkTrusted(t, c, b, ahead, "127.0.0.1")
		ahead.Add(24 * time.Hour)
		behind.Add(24 * time.Hour)
		mustSync(t, a)
		checkTrusted(t, c, a, behind, "127.0.0.1")
		checkTrusted(t, c, b, ahead, "127.0.0.1")
		mustSync(t, b)
	}
}

func TestReplicasWhoseClocksDifferDoNotWriteAgainstEachOther(t *testing.T) {
	ahead, behind, writes := newClock(), newClock(), 0
	ahead.Add(skew - time.Second)
	c := installed().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	a, b := replica(t, c, ahead), replica(t, c, behind)
	a.options.CALifetime, b.options.CALifetime = 8*time.Hour, 8*time.Hour
	for range 15 * 60 {
		ahead.Add(time.Minute)
		behind.Add(time.Minute)
		mustSync(t, a)
		mustSync(t, b)
	}
	// Three CAs come and two go, in each of two configurations.
	if writes != 10 {
		t.Errorf("got %d patches in 15 hours, want 10", writes)
	}
}

func TestLifetimesWithWhichTrustCouldLapseAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		good    bool
	}{
		"the defaults":                        {good: true},
		"a day and an hour":                   {options: Options{CALifetime: 24 * time.Hour, LeafLifetime: time.Hour}, good: true},
		"seconds, looked at all the time":     {options: Options{CALifetime: time.Minute, LeafLifetime: 20 * time.Second, Overlap: 5 * time.Second, Interval: time.Second}, good: true},
		"a leaf that outlives its CA":         {options: Options{CALifetime: time.Hour, LeafLifetime: time.Hour}},
		"a CA that is gone after the overlap": {options: Options{CALifetime: 18 * time.Minute, LeafLifetime: 10 * time.Minute}},
		"a leaf that ends between two looks":  {options: Options{LeafLifetime: 3 * time.Minute}},
		"a lifetime below nothing":            {options: Options{LeafLifetime: -time.Hour}},
		"an overlap below nothing":            {options: Options{Overlap: -time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.options.Check()
			if _, ok := errors.AsType[*LifetimeError](err); ok == c.good || (err == nil) != c.good {
				t.Errorf("got %v", err)
			}
			c.options.Namespace = "vision-system"
			if _, made := New(nil, logr.Discard(), c.options); (made == nil) != c.good {
				t.Errorf("New: %v", made)
			}
		})
	}
}

func TestShortLifetimesAreRenewedInGoodTime(t *testing.T) {
	now, c := newClock(), installed().Build()
	r, err := New(c, logr.Discard(), Options{Namespace: "vision-system", Now: now.Now, CALifetime: time.Minute, LeafLifetime: 20 * time.Second, Overlap: 5 * time.Second, Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	cas, leaves := map[string]bool{}, map[string]bool{}
	for range 600 {
		mustSync(t, r)
		checkTrusted(t, c, r, now, "127.0.0.1")
		cas[r.known.current().SerialNumber.String()], leaves[r.leaf.Leaf.SerialNumber.String()] = true, true
		now.Add(time.Second)
		checkTrusted(t, c, r, now, "127.0.0.1")
	}
	if len(cas) < 14 || len(cas) > 18 || len(leaves) < 45 || len(leaves) > 80 {
		t.Errorf("got %d CAs and %d leaves in ten minutes", len(cas), len(leaves))
	}
}
