// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// standing is what a baseline came to in one namespace that it serves.
type standing struct {
	// of is the object and generation that was compiled.
	of edition
	// refs and programmed are verdicts in the terms of ResolvedRefs and Programmed.
	refs, programmed compile.Verdict
	// route is the default route there; empty for none.
	route string
}

// edition is one generation of one object.
type edition struct {
	uid        types.UID
	generation int64
}

func editionOf(p *v1alpha1.VisionPolicy) edition { return edition{p.UID, p.Generation} }

// ledger holds the standing of baselines, by namespace and by baseline, and the
// ConfigMaps that were seen to be ours. It is empty when the operator starts, which
// then looks at every namespace.
type ledger struct {
	mu   sync.Mutex
	in   map[string]map[string]standing
	made map[types.NamespacedName]types.UID
}

func newLedger() *ledger {
	return &ledger{in: map[string]map[string]standing{}, made: map[types.NamespacedName]types.UID{}}
}

// own remembers a ConfigMap as ours; an empty uid forgets it.
func (l *ledger) own(namespace, name string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if uid == "" {
		delete(l.made, key)
		return
	}
	l.made[key] = uid
}

// owns reports whether a ConfigMap is one that was seen to be ours, whatever others
// made of its label and its data since.
func (l *ledger) owns(c *corev1.ConfigMap) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.UID != "" && l.made[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] == c.UID
}

// record takes in all standings of one namespace, and reports whether they differ
// from those before.
func (l *ledger) record(namespace string, standings map[string]standing) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if maps.Equal(l.in[namespace], standings) {
		return false
	}
	if l.in[namespace] = standings; len(standings) == 0 {
		delete(l.in, namespace)
	}
	return true
}

// knows reports whether a router of the namespace that a baseline is in was published.
func (l *ledger) knows(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.in[namespace] {
		if s.programmed.OK {
			return true
		}
	}
	return false
}

// standing is a baseline's in a namespace, if it is known.
func (l *ledger) standing(namespace, baseline string) (standing, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.in[namespace][baseline]
	return s, ok
}
