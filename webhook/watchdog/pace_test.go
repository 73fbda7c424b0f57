// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// at is a time on the clock of these tests.
func at(seconds int) time.Time { return time.Unix(int64(100_000+seconds), 0) }

func podOf(kind, apiVersion string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "agent-x", UID: "u", Labels: labels, CreationTimestamp: metav1.NewTime(at(0))}}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "agent", UID: "owner", Controller: new(true)}}
	}
	return pod
}

func TestWhoseOwnerMakesThemAnewMayBeEvicted(t *testing.T) {
	revision := map[string]string{"controller-revision-hash": "r1", "app": "x"}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want template // zero for none
	}{
		"a Deployment's, through its ReplicaSet": {podOf("ReplicaSet", "apps/v1", map[string]string{"pod-template-hash": "h1"}), template{"owner", "h1"}},
		"a ReplicaSet's alone":                   {podOf("ReplicaSet", "apps/v1", nil), template{"owner", ""}},
		"a StatefulSet's":                        {podOf("StatefulSet", "apps/v1", revision), template{"owner", "r1"}},
		"a DaemonSet's":                          {podOf("DaemonSet", "apps/v1", revision), template{"owner", "r1"}},
		"a Job's":                                {podOf("Job", "batch/v1", nil), template{}},
		"a ReplicaSet's of another group":        {podOf("ReplicaSet", "example.com/v1", nil), template{}},
		"nobody's":                               {podOf("", "", map[string]string{"pod-template-hash": "h1"}), template{}},
	} {
		t.Run(name, func(t *testing.T) {
			c, ok := candidateOf(test.pod)
			if ok != (test.want != template{}) || c.template != test.want {
				t.Errorf("got %+v, %t", c, ok)
			}
		})
	}
	owned := podOf("ReplicaSet", "apps/v1", nil)
	owned.OwnerReferences[0].Controller = nil
	if _, ok := candidateOf(owned); ok {
		t.Error("an owner that is no controller counts")
	}
}

func candidateNo(n int, of string, created int) candidate {
	name := fmt.Sprintf("pod-%02d", n)
	return candidate{namespace: "team", name: name, uid: types.UID(name), created: at(created), template: template{owner: types.UID(of)}}
}

func names(all []candidate) (names []string) {
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}

func TestOnePodOfATemplateIsTriedAndTheOldestFirst(t *testing.T) {
	all := []candidate{candidateNo(3, "a", 5), candidateNo(1, "b", 9), candidateNo(2, "a", 4), candidateNo(4, "c", 1)}
	var fresh trials
	if diff := cmp.Diff([]string{"pod-04", "pod-02", "pod-01"}, names(fresh.order(all, at(10)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPodThatIsNoOlderThanAnEvictionOfItsTemplateIsLeft(t *testing.T) {
	var done trials
	of := template{owner: "a"}
	done.take(of, at(100))
	done.evicted(of, at(101))
	all := []candidate{candidateNo(1, "a", 101), candidateNo(2, "a", 100), candidateNo(3, "a", 500)}
	if diff := cmp.Diff([]string{"pod-02"}, names(done.order(all, at(1000)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	done.take(of, at(200))
	done.evicted(of, at(201)) // it is the first eviction that counts
	if diff := cmp.Diff([]string{"pod-02"}, names(done.order(all, at(1000)))); diff != "" {
		t.Errorf("after another one (-want +got):\n%s", diff)
	}
	if got := done.proof(of); !got.Equal(at(201)) {
		t.Errorf("a pod made at %v is proof enough", got)
	}
	done.keep(nil)
	if got := done.order(all[:1], at(100_000)); len(got) != 0 {
		t.Errorf("that a pod was evicted is forgotten: %v", got)
	}
}

func TestATemplateThatCannotBeEvictedWaitsTwiceAsLongEachTime(t *testing.T) {
	var blocked trials
	of, all := template{owner: "a"}, []candidate{candidateNo(1, "a", 0)}
	now := 0
	for _, wait := range []int{60, 120, 240, 480, 960, 960} {
		if got := blocked.order(all, at(now)); len(got) != 1 {
			t.Fatalf("after %d s it may not be tried", now)
		}
		blocked.take(of, at(now))
		blocked.later(of, at(now))
		if got := blocked.order(all, at(now+wait-1)); len(got) != 0 {
			t.Errorf("after %d s it is tried before %d s passed", now, wait)
		}
		now += wait
	}
	blocked.keep(nil)
	if len(blocked.of) != 0 {
		t.Error("a template without pods is kept")
	}
}

func TestATemplateThatMustWaitHoldsNoOtherUp(t *testing.T) {
	var all []candidate
	var some trials
	for i := range 30 {
		all = append(all, candidateNo(i, fmt.Sprintf("owner-%02d", i), i))
	}
	tried := map[string]bool{}
	for minute := range 3 {
		now := at(120 * minute) // all that waited may be tried again
		for _, c := range some.order(all, now) {
			if !some.take(c.template, now) {
				break
			}
			some.later(c.template, now)
			tried[c.name] = true
		}
	}
	if len(tried) != 30 {
		t.Errorf("%d of 30 templates were tried in three minutes", len(tried))
	}
}

func TestAtMostTenAreTriedInAnyMinute(t *testing.T) {
	var all trials
	var taken []int
	for second := range 300 {
		for n := range 3 {
			if all.take(template{owner: types.UID(fmt.Sprint(second, n))}, at(second)) {
				taken = append(taken, second)
			}
		}
	}
	for i := range taken {
		if j := i + evictionsPerMinute; j < len(taken) && taken[j]-taken[i] < 60 {
			t.Fatalf("11 were tried from second %d to %d", taken[i], taken[j])
		}
	}
	if len(taken) != 5*evictionsPerMinute {
		t.Errorf("%d were tried in five minutes, want 50", len(taken))
	}
}
