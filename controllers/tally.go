// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"sync"
	"time"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// tally counts the pods of every namespace by profile: those that were injected,
// and those that run without the runtime. What is told of it changes at most once
// in an interval, so that pods that come and go cost few writes of status.
type tally struct {
	every time.Duration

	mu sync.Mutex
	in map[string]*podCount
}

// podCount is one namespace's.
type podCount struct {
	// injected is nil until they were counted: nothing is told before.
	injected map[string]v1alpha1.PodCounts
	missing  map[string]int32
	// told is what status may say; nil until the first counts are an interval old.
	told, now map[string]v1alpha1.PodCounts
	// since is when now began to differ from told; zero when it does not.
	since time.Time
}

func newTally(every time.Duration) *tally { return &tally{every: every, in: map[string]*podCount{}} }

// set takes in the counts of a namespace's injected pods, and reports whether
// what is to be told differs from before.
func (t *tally) set(namespace string, counts map[string]v1alpha1.PodCounts, at time.Time) bool {
	return t.change(namespace, at, func(c *podCount) { c.injected = counts })
}

// miss takes in how many pods of a namespace run without the runtime, and reports
// whether what is to be told differs from before.
func (t *tally) miss(namespace string, missing map[string]int32, at time.Time) bool {
	return t.change(namespace, at, func(c *podCount) { c.missing = missing })
}

func (t *tally) change(namespace string, at time.Time, edit func(*podCount)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.in[namespace]
	if c == nil {
		c = &podCount{}
		t.in[namespace] = c
	}
	edit(c)
	if c.injected == nil {
		if len(c.missing) == 0 {
			delete(t.in, namespace)
		}
		return false
	}
	counts := c.sum()
	if c.now != nil && maps.Equal(c.now, counts) {
		return false
	}
	c.now = counts
	switch {
	case c.told != nil && maps.Equal(c.told, counts):
		c.since = time.Time{}
	case c.since.IsZero():
		c.since = at
	}
	return true
}

// sum is what there is to tell.
func (c *podCount) sum() map[string]v1alpha1.PodCounts {
	counts := make(map[string]v1alpha1.PodCounts, len(c.injected)+len(c.missing))
	maps.Copy(counts, c.injected)
	for profile, n := range c.missing {
		of := counts[profile]
		of.Missing = n
		counts[profile] = of
	}
	return counts
}

// forget drops what is known of a namespace's injected pods.
func (t *tally) forget(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.in[namespace]
	if c == nil {
		return
	}
	if len(c.missing) == 0 {
		delete(t.in, namespace)
		return
	}
	*c = podCount{missing: c.missing}
}

// of is what status may say of a namespace's profiles at a time, nil when that is
// not known, and the wait until there is more to say; zero when there is not.
func (t *tally) of(namespace string, at time.Time) (counts map[string]v1alpha1.PodCounts, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.in[namespace]
	if c == nil {
		return nil, 0
	}
	if !c.since.IsZero() {
		if wait = c.since.Add(t.every).Sub(at); wait <= 0 {
			c.told, c.since, wait = c.now, time.Time{}, 0
		}
	}
	return c.told, wait
}

// total sums up one profile over namespaces; known when every one that counts
// has told.
func (t *tally) total(profile string, at time.Time) (sum v1alpha1.PodCounts, known bool, wait time.Duration) {
	t.mu.Lock()
	names := make([]string, 0, len(t.in))
	for name, c := range t.in {
		if c.injected != nil { // else no router is published there, and no policy serves
			names = append(names, name)
		}
	}
	t.mu.Unlock()
	known = true
	for _, name := range names {
		counts, w := t.of(name, at)
		known = known && counts != nil
		wait = earliest(wait, w)
		sum.Matched += counts[profile].Matched
		sum.Outdated += counts[profile].Outdated
		sum.Missing += counts[profile].Missing
	}
	return sum, known, wait
}
