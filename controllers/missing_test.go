// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestPodsWithoutTheRuntimeAreToldWithTheInjectedOnes(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 0) }
	tally := newTally(10 * time.Second)
	told := func(seconds int64, want map[string]v1alpha1.PodCounts) {
		t.Helper()
		got, _ := tally.of("team", at(seconds))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", seconds, diff)
		}
	}
	if tally.miss("team", map[string]int32{"p": 2}, at(0)) {
		t.Error("something is to be told before the injected pods were counted")
	}
	told(20, nil)
	if _, known, _ := tally.total("p", at(20)); !known {
		t.Error("a namespace without a router makes a total unknown")
	}
	tally.set("team", map[string]v1alpha1.PodCounts{"p": {Matched: 3}, "q": {Matched: 1}}, at(20))
	both := map[string]v1alpha1.PodCounts{"p": {Matched: 3, Missing: 2}, "q": {Matched: 1}}
	told(30, both)
	if tally.miss("team", map[string]int32{"p": 2}, at(31)) {
		t.Error("equal counts are said to differ")
	}
	if !tally.miss("team", map[string]int32{"r": 1}, at(32)) {
		t.Error("other counts are said to be equal")
	}
	told(41, both)
	told(42, map[string]v1alpha1.PodCounts{"p": {Matched: 3}, "q": {Matched: 1}, "r": {Missing: 1}})
	if sum, _, _ := tally.total("r", at(42)); sum.Missing != 1 {
		t.Errorf("got the total %+v", sum)
	}
	tally.forget("team")
	told(60, nil)
	tally.miss("team", nil, at(60))
	if len(tally.in) != 0 {
		t.Errorf("a namespace without pods is kept: %+v", tally.in["team"])
	}
}

func TestPodsWithoutTheRuntimeAreCountedInThePolicysStatus(t *testing.T) {
	w := newWorld(t, quick)
	w.create(goodProvider("local"), goodPolicy("agents"))
	w.policyCondition("agents", v1alpha1.ConditionReady, "True", v1alpha1.ReasonReady)
	counts := func(want *v1alpha1.PodCounts) {
		t.Helper()
		w.eventually("waiting for the counts", func() error {
			var p v1alpha1.VisionPolicy
			if err := w.get(&p, "agents"); err != nil {
				return err
			}
			if diff := cmp.Diff(want, p.Status.Pods); diff != "" {
				return fmt.Errorf("(-want +got):\n%s", diff)
			}
			return nil
		})
	}
	counts(nil)
	w.missing.Count(w.namespace, map[string]int32{"policy/agents": 2, "policy/other": 7})
	counts(&v1alpha1.PodCounts{Missing: 2})
	w.newPod("one", "policy/agents")
	counts(&v1alpha1.PodCounts{Matched: 1, Missing: 2})
	w.missing.Count(w.namespace, nil)
	counts(&v1alpha1.PodCounts{Matched: 1})
}

func TestCountsThatNobodyTakesInAreDropped(*testing.T) {
	new(Missing).Count("team", map[string]int32{"policy/agents": 1})
	(*Missing)(nil).bind(nil)
}
