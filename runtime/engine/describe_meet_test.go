// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestAnImageIsRequiredWhereverItIs(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	d := shown([]byte("no image"), "what")
	if _, bad := r.engine.DescribeAll(context.Background(), optional(d), d); bad == nil || bad.Kind != fault.InvalidToolInput {
		t.Errorf("got %+v", bad)
	}
}

func TestOfTwoTextsTheFirstIsShown(t *testing.T) {
	r := newRig(t)
	if first, second := r.engine.Show("key", "one"), r.engine.Show("key", "two"); first != "one" || second != "one" {
		t.Errorf("shown are %q and %q", first, second)
	}
}

// A request that waited for room finds what the one before it has shown, also
// where no observation is kept.
func TestWhoWaitedForRoomFindsWhatWasShown(t *testing.T) {
	r := newRig(t)
	r.startWith(func(o *engine.Options) { o.MaxHeldBytes = 1 << 20 }) // one look at a time
	r.use(func(d *router.Document) { d.Profiles[0].Cache.TTL = "1ns" })
	full, err := r.engine.FillLooks(context.Background())
	must(t, err)
	d, opened := shown(square(t, 8, 1), "what"), make(chan struct{}, 2)
	open := d.Open
	d.Open = func() (io.Reader, int64, error) { opened <- struct{}{}; return open() }
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { r.describe(d) })
	}
	<-opened
	<-opened // both have looked for the text in vain
	full()
	all.Wait()
	r.wantCalls(1)
}
