// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package thread

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a time that tests move.
type clock struct{ now time.Time }

func (c *clock) table(o Options) *Table {
	c.now = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return c.now }
	return New(o)
}

func call(n int) Call {
	return Call{ID: fmt.Sprintf("call_%d", n), Name: "view_image", Arguments: `{"path":"a.png"}`}
}

func wantKnown(t *testing.T, table *Table, known ...int) {
	t.Helper()
	for n := range 10 {
		want := false
		for _, k := range known {
			want = want || k == n
		}
		if got, ok := table.Find(call(n).ID, ""); ok != want || ok && got != call(n) {
			t.Errorf("call %d: %+v, known %v; want %v", n, got, ok, want)
		}
	}
}

func TestACallIsKnownForADay(t *testing.T) {
	var c clock
	table := c.table(Options{})
	table.remember([]Call{call(1)})
	c.now = c.now.Add(24*time.Hour - 1)
	table.remember([]Call{call(2)})
	wantKnown(t, table, 1, 2)
	c.now = c.now.Add(1)
	wantKnown(t, table, 2)
	if table.Len() != 1 {
		t.Errorf("%d calls are held", table.Len())
	}
	c.now = c.now.Add(-time.Hour)
	wantKnown(t, table)
}

func TestThreadsThatShareAnIDHaveTheirOwnCalls(t *testing.T) {
	var c clock
	table := c.table(Options{})
	of := func(arguments, response, conversation string) Call {
		return Call{ID: "call_1", Name: "view_image", Arguments: arguments, Response: response, Conversation: conversation}
	}
	one, two, kept, newer := of("1", "resp_1", ""), of("2", "resp_2", ""), of("3", "resp_3", "conv_1"), of("4", "resp_4", "conv_1")
	steps := []struct {
		made Call
		want map[string]Call // by what requests go on from; of others none is known
	}{
		{one, map[string]Call{"resp_1": one, "resp_2": one, "": one, "resp_9": one}},
		{one, map[string]Call{"resp_1": one, "": one}}, // a stream tells of it twice
		{two, map[string]Call{"resp_1": one, "resp_2": two}},
		{kept, map[string]Call{"resp_1": one, "resp_2": two, "conv_1": kept, "resp_3": kept}},
		{newer, map[string]Call{"resp_1": one, "resp_2": two, "conv_1": newer, "resp_4": newer}},
	}
	for i, step := range steps {
		table.remember([]Call{step.made})
		for _, previous := range []string{"", "resp_1", "resp_2", "conv_1", "resp_4", "resp_9"} {
			want, known := step.want[previous]
			if i < 2 {
				want, known = one, true // nobody shares it
			}
			if got, ok := table.Find("call_1", previous); ok != known || got != want {
				t.Errorf("step %d, going on from %q: %+v, known %v", i, previous, got, ok)
			}
		}
	}
	want := int64(0)
	for _, call := range []Call{one, two, newer} {
		want += call.size()
	}
	if table.Len() != 3 || table.Bytes() != want {
		t.Errorf("%d calls of %d bytes, want %d", table.Len(), table.Bytes(), want)
	}
}

func TestWhatHasExpiredMakesRoomByItself(t *testing.T) {
	var c clock
	table := c.table(Options{TTL: time.Minute})
	table.remember([]Call{call(1), call(2)})
	c.now = c.now.Add(time.Minute)
	table.remember([]Call{call(3)})
	one := call(3)
	if table.Len() != 1 || table.Bytes() != one.size() {
		t.Errorf("%d calls of %d bytes are held", table.Len(), table.Bytes())
	}
}

func TestTheOldestGoWhenThereAreTooMany(t *testing.T) {
	var c clock
	table := c.table(Options{MaxEntries: 2})
	table.remember([]Call{call(1), call(2), call(1), call(3)})
	wantKnown(t, table, 1, 3)
	one := call(1)
	if table.Bytes() != 2*one.size() {
		t.Errorf("%d bytes are counted", table.Bytes())
	}
}

func TestTheOldestGoWhenTheyAreTooLong(t *testing.T) {
	var c clock
	one := call(1)
	table := c.table(Options{MaxBytes: 2*one.size() + 1})
	table.remember([]Call{call(1), call(2), call(3)})
	wantKnown(t, table, 2, 3)
	long := call(4)
	long.Arguments = strings.Repeat("x", int(2*one.size()))
	table.remember([]Call{long})
	if wantKnown(t, table); table.Bytes() != 0 {
		t.Errorf("%d bytes are counted", table.Bytes())
	}
}

func TestWhatWasAddedIsKnownForADayAndWithinBounds(t *testing.T) {
	var c clock
	table := c.table(Options{MaxEntries: 2})
	table.MarkAdded("a")
	c.now = c.now.Add(time.Hour)
	table.MarkAdded("b")
	if !table.Added("a") || !table.Added("b") || table.Added("c") {
		t.Error("what was marked is not told, or what was not is")
	}
	c.now = c.now.Add(23 * time.Hour)
	if table.Added("a") || !table.Added("b") {
		t.Error("marks do not expire after a day")
	}
	table.MarkAdded("c")
	table.MarkAdded("b")
	table.MarkAdded("d")
	if table.Added("c") || !table.Added("b") || !table.Added("d") {
		t.Error("it is not the oldest mark that goes")
	}
}

func TestATableIsSafeForConcurrentUse(t *testing.T) {
	table := New(Options{MaxEntries: 8})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 50 {
				tap := table.Tap("application/json", nil)
				_, _ = fmt.Fprintf(tap, `{"id":"r","output":[{"type":"function_call","call_id":"call_%d","name":"n","arguments":"{}"}]}`, n)
				_ = tap.Close()
				if got, ok := table.Find(call(n).ID, ""); !ok || got.Name != "n" {
					t.Errorf("call %d is %+v", n, got)
				}
				table.MarkAdded(got(n))
				table.Added(got(n))
			}
		})
	}
	all.Wait()
	if table.Len() != 8 {
		t.Errorf("%d calls are known", table.Len())
	}
}

func got(n int) string { return call(n).ID }
