// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/visionoperator/vision-operator/webhook/inject"
)

// eventsPerSweep is how many pods are told of in one sweep; the others are in
// later ones. They are counted at once all the same.
const eventsPerSweep = 200

// book remembers which pod was told of, and for what. The zero value is ready.
type book struct {
	pods  map[types.UID]*entry
	sweep int
	told  int // in this sweep
}

type entry struct {
	found finding
	told  []inject.Reason
	sweep int
}

// open begins a sweep.
func (b *book) open() {
	if b.pods == nil {
		b.pods = map[types.UID]*entry{}
	}
	b.sweep++
	b.told = 0
}

// note takes in what is the matter with a pod, and reports whether to tell it:
// once for each pod and reason, and not of too many at once.
func (b *book) note(pod types.UID, f finding) bool {
	e := b.pods[pod]
	if e == nil {
		e = &entry{}
		b.pods[pod] = e
	}
	e.found, e.sweep = f, b.sweep
	if f.silent || b.told >= eventsPerSweep {
		return false
	}
	for _, reason := range e.told {
		if reason == f.reason {
			return false
		}
	}
	b.told++
	e.told = append(e.told, f.reason)
	return true
}

// before is what was the matter with a pod in an earlier sweep.
func (b *book) before(pod types.UID) (finding, bool) {
	e := b.pods[pod]
	if e == nil {
		return finding{}, false
	}
	return e.found, true
}

// close ends a sweep that saw every pod: others are gone, or have the runtime.
func (b *book) close() {
	maps.DeleteFunc(b.pods, func(_ types.UID, e *entry) bool { return e.sweep != b.sweep })
}

// counts are what a sweep counted, by namespace: pods by reason, and by the
// profile that would serve them.
type counts struct {
	reasons  map[string]map[inject.Reason]int
	profiles map[string]map[string]int32
}

func newCounts() counts {
	return counts{reasons: map[string]map[inject.Reason]int{}, profiles: map[string]map[string]int32{}}
}

// add counts one pod; a profile is empty where none would serve it.
func (c counts) add(namespace, profile string, reason inject.Reason) {
	if c.reasons[namespace] == nil {
		c.reasons[namespace] = map[inject.Reason]int{}
	}
	c.reasons[namespace][reason]++
	if profile == "" {
		return
	}
	if c.profiles[namespace] == nil {
		c.profiles[namespace] = map[string]int32{}
	}
	c.profiles[namespace][profile]++
}
