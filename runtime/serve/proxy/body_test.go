// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestOfThoseThatHoldSomeOneAloneWaitsForMore(t *testing.T) {
	var briefly []bool // whether each wait was bounded by us
	p := newProxy(Options{Hold: func(ctx context.Context, _ int64) (func(), error) {
		_, bounded := ctx.Deadline()
		briefly = append(briefly, bounded)
		return func() {}, nil
	}})
	take := func(x *trip) {
		t.Helper()
		if err := x.hold(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
	}
	one, other := &trip{proxy: p}, &trip{proxy: p}
	take(one)
	take(other)
	take(one)               // nobody waits
	p.growing <- struct{}{} // somebody waits
	take(other)
	take(&trip{proxy: p}) // holds nothing yet
	<-p.growing
	take(other)
	if want := []bool{false, false, false, true, false, false}; len(briefly) != len(want) {
		t.Fatalf("%v", briefly)
	} else {
		for i := range want {
			if briefly[i] != want[i] {
				t.Errorf("wait %d is bounded: %v", i, briefly[i])
			}
		}
	}
}

func TestNothingIsReadBehindAClosedGate(t *testing.T) {
	var g gate
	first, second := g.body(strings.NewReader("first"), 5), g.body(strings.NewReader("second"), 6)
	if got, err := io.ReadAll(first); err != nil || string(got) != "first" {
		t.Fatalf("%q, %v", got, err)
	}
	slow, let := make(chan struct{}), make(chan struct{})
	third := g.body(readerFunc(func(p []byte) (int, error) {
		close(slow)
		<-let
		return 0, io.EOF
	}), 1)
	go func() { _, _ = third.Read(make([]byte, 1)) }()
	<-slow
	closed := make(chan int64)
	go func() { closed <- g.close() }()
	select {
	case <-closed:
		t.Fatal("the gate is closed while something is read")
	case <-time.After(20 * time.Millisecond):
	}
	close(let)
	if sent := <-closed; sent != 5 {
		t.Errorf("%d bytes were sent", sent)
	}
	if n, err := first.Read(make([]byte, 8)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind its end: %d, %v", n, err)
	}
	if n, err := second.Read(make([]byte, 8)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("%d, %v", n, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestBuffersHaveRoomAndAreGivenBack(t *testing.T) {
	for n, want := range map[int64]int64{1: 4096, 4096: 4096, 4097: 8192, 1<<20 - 1: 1 << 20, 1 << 20: 1 << 20, 1<<20 + 1: 2 << 20, 4<<20 + 1: 4<<20 + 1} {
		if got := roomFor(n); got != want {
			t.Errorf("room for %d is %d, want %d", n, got, want)
		}
		x := &trip{}
		if buf := x.take(roomFor(n)); int64(len(buf)) != want {
			t.Errorf("a buffer for %d has %d", n, len(buf))
		}
		x.received.release()
	}
}
