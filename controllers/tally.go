// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"sync"
	"time"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// tally counts the injected pods of every namespace by profile. What is told of
// it changes at most once in an interval, so that pods that come and go cost
// few writes of status.
type tally struct {
	every time.Duration

	mu sync.Mutex
	in map[string]*podCount
}

// podCount is one namespace's.
type podCount struct {
	// told is what status may say; nil until the first counts are an interval old.
	told, now map[string]v1alpha1.PodCounts
	// since is when now began to differ from told; zero when it does not.
	since time.Time
}

func newTally(every time.Duration) *tally { return &tally{every: every, in: map[string]*podCount{}} }

// set takes in a namespace's counts, and reports whether they differ from those before.
func (t *tally) set(namespace string, counts map[string]v1alpha1.PodCounts, at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.in[namespace]
	if c == nil {
		c = &podCount{}
		t.in[namespace] = c
	} else if maps.Equal(c.now, counts) {
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

// forget drops a namespace.
func (t *tally) forget(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.in, namespace)
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
	for name := range t.in {
		names = append(names, name)
	}
	t.mu.Unlock()
	known = true
	for _, name := range names {
		counts, w := t.of(name, at)
		known = known && counts != nil
		wait = earliest(wait, w)
		sum.Matched += counts[profile].Matched
		sum.Outdated += counts[profile].Outdated
	}
	return sum, known, wait
}
