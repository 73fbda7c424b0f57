// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/visionoperator/vision-operator/webhook/inject"
)

func TestAPodIsToldOfOnceForEachReason(t *testing.T) {
	var b book
	told := func(want bool, uid types.UID, f finding) {
		t.Helper()
		if got := b.note(uid, f); got != want {
			t.Errorf("sweep %d, pod %s, %s: told %t, want %t", b.sweep, uid, f.reason, got, want)
		}
	}
	missing, network := finding{reason: ReasonRuntimeMissing}, finding{reason: inject.ReasonHostNetwork}
	b.open()
	told(true, "a", missing)
	told(true, "b", network)
	told(false, "c", finding{reason: inject.ReasonHostNetwork, silent: true})
	b.close()
	b.open()
	told(false, "a", missing)
	told(true, "a", network)
	told(false, "b", network)
	told(true, "c", network) // no longer silent
	b.close()
	b.open()
	told(false, "a", missing) // as before, once more
	if f, ok := b.before("a"); !ok || f != missing {
		t.Errorf("got %+v, %t", f, ok)
	}
	b.close()
	if len(b.pods) != 1 {
		t.Errorf("pods that are gone are kept: %d", len(b.pods))
	}
	if _, ok := b.before("b"); ok {
		t.Error("a pod that was not seen is known")
	}
}

func TestNotTooManyPodsAreToldOfAtOnceAndNoneIsForgotten(t *testing.T) {
	var b book
	told := map[int]int{}
	for sweep := range 3 {
		b.open()
		for i := range eventsPerSweep + 50 {
			if b.note(types.UID(fmt.Sprint(i)), finding{reason: ReasonRuntimeMissing}) {
				told[i]++
			}
		}
		b.close()
		if want := min(eventsPerSweep*(sweep+1), eventsPerSweep+50); len(told) != want {
			t.Errorf("after sweep %d, %d pods were told of, want %d", sweep, len(told), want)
		}
	}
	for i, n := range told {
		if n != 1 {
			t.Errorf("pod %d was told of %d times", i, n)
		}
	}
}

func TestPodsAreCountedByReasonAndByProfile(t *testing.T) {
	c := newCounts()
	c.add("a", "policy/p", ReasonRuntimeMissing)
	c.add("a", "policy/p", inject.ReasonHostNetwork)
	c.add("a", "baseline/q", ReasonRuntimeMissing)
	c.add("b", "", "NoPolicy")
	want := counts{
		reasons:  map[string]map[inject.Reason]int{"a": {ReasonRuntimeMissing: 2, inject.ReasonHostNetwork: 1}, "b": {"NoPolicy": 1}},
		profiles: map[string]map[string]int32{"a": {"policy/p": 2, "baseline/q": 1}},
	}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(counts{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
