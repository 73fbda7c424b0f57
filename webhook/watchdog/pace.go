// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// evictionsPerMinute is how many pods may be evicted in any minute, and how
	// many are tried, in the whole cluster.
	evictionsPerMinute = 10
	// firstWait and longestWait bound the wait before a template is tried again
	// that could not be: a PodDisruptionBudget does not allow it now, or it would
	// not be injected. The wait doubles each time.
	firstWait, longestWait = time.Minute, 16 * time.Minute
)

// template is what pods are made from: one revision of one owner.
type template struct {
	owner types.UID
	hash  string
}

// candidate is a pod that may be evicted.
type candidate struct {
	namespace, name string
	uid             types.UID
	created         time.Time
	template        template
	// label is that of the pod which tells the template's hash; empty for none.
	label string
}

// replaced are the owners that make a pod anew after it was evicted, and make it
// from a template, by kind of group apps: a Job does not, and may count the
// eviction as a failure.
var replaced = map[string]bool{"ReplicaSet": true, "StatefulSet": true, "DaemonSet": true}

// hashLabels are the labels by which owners tell their templates' revisions apart.
var hashLabels = []string{"pod-template-hash", "controller-revision-hash"}

// candidateOf tells who would make a pod anew; false when nobody would.
func candidateOf(pod *corev1.Pod) (candidate, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || !replaced[owner.Kind] || groupOf(owner.APIVersion) != "apps" {
		return candidate{}, false
	}
	c := candidate{namespace: pod.Namespace, name: pod.Name, uid: pod.UID, created: pod.CreationTimestamp.Time, template: template{owner: owner.UID}}
	c.label, c.template.hash = hashOf(pod)
	return c, true
}

// hashOf is the label that tells a pod's template, and its value; empty for none.
func hashOf(pod *corev1.Pod) (label, hash string) {
	for _, name := range hashLabels {
		if value := pod.Labels[name]; value != "" {
			return name, value
		}
	}
	return "", ""
}

// trial is what was done with the pods of one template.
type trial struct {
	// first and last are when pods of it were evicted, by the API server's clock,
	// which counts seconds; zero for never.
	first, last time.Time
	// tried is when it was last tried, by ours, and retry when it may be again.
	tried, retry time.Time
	wait         time.Duration
}

// trials keep evictions within their bounds. The zero value is ready.
type trials struct {
	of map[template]*trial
	// recent are the last tries, the oldest first: at most evictionsPerMinute.
	recent []time.Time
}

// order sorts candidates in the order in which to try them, one of each template:
// those that were not tried for longest first, so that none that must wait holds
// others up. What may not be tried now is left out, and so is a pod that is not
// older than an eviction of its template: it was made anew, and lacks the runtime
// again.
func (t *trials) order(all []candidate, now time.Time) []candidate {
	var may []candidate
	seen := map[template]bool{}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for _, c := range all {
		was := t.of[c.template]
		if seen[c.template] || was != nil && (now.Before(was.retry) || !was.first.IsZero() && !c.created.Before(was.first)) {
			continue
		}
		seen[c.template] = true
		may = append(may, c)
	}
	tried := func(c candidate) time.Time {
		if was := t.of[c.template]; was != nil {
			return was.tried
		}
		return time.Time{}
	}
	slices.SortStableFunc(may, func(a, b candidate) int { return tried(a).Compare(tried(b)) })
	return may
}

// proof is since when a pod of the template must have been made with the runtime
// before another one is evicted; zero when none was evicted yet.
func (t *trials) proof(of template) time.Time {
	if was := t.of[of]; was != nil {
		return was.last
	}
	return time.Time{}
}

// take reports whether one more may be tried now, and counts it.
func (t *trials) take(of template, now time.Time) bool {
	t.recent = slices.DeleteFunc(t.recent, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	if len(t.recent) >= evictionsPerMinute {
		return false
	}
	t.recent = append(t.recent, now)
	if t.of == nil {
		t.of = map[template]*trial{}
	}
	if t.of[of] == nil {
		t.of[of] = &trial{}
	}
	t.of[of].tried = now
	return true
}

// evicted notes that a pod was evicted at a time of the API server.
func (t *trials) evicted(of template, at time.Time) {
	was := t.of[of]
	if was.first.IsZero() {
		was.first = at
	}
	was.last, was.wait, was.retry = at, 0, time.Time{}
}

// later notes that a pod could not be evicted now.
func (t *trials) later(of template, now time.Time) {
	was := t.of[of]
	was.wait = min(max(firstWait, 2*was.wait), longestWait)
	was.retry = now.Add(was.wait)
}

// keep forgets the templates of which no pod was evicted and none is there. Those
// of which one was are kept while the process lives.
func (t *trials) keep(all []candidate) {
	there := make(map[template]bool, len(all))
	for _, c := range all {
		there[c.template] = true
	}
	maps.DeleteFunc(t.of, func(of template, was *trial) bool { return was.first.IsZero() && !there[of] })
}
