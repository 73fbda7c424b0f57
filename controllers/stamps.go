// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// sentStamp is the last stamp that was sent to a pod.
type sentStamp struct {
	stamp string
	// seen is the pod's resourceVersion before: while the cache shows it, the
	// stamp is on its way back.
	seen string
	// refusedAt is when it was refused; zero when it was not.
	refusedAt time.Time
}

// sentStamps are those of all pods, by namespace and UID.
type sentStamps struct {
	mu sync.Mutex
	in map[string]map[types.UID]sentStamp
}

func newSentStamps() *sentStamps { return &sentStamps{in: map[string]map[types.UID]sentStamp{}} }

// wants reports whether a pod is to be stamped now, or, when the stamp was
// refused, in how long it may be tried again.
func (s *sentStamps) wants(pod *metav1.PartialObjectMetadata, stamp string, refused time.Duration, now time.Time) (bool, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, has := s.in[pod.Namespace][pod.UID], pod.Annotations[v1alpha1.RouterDigestAnnotation]
	if sent.stamp != "" && sent.refusedAt.IsZero() && sent.seen == pod.ResourceVersion {
		has = sent.stamp
	}
	switch {
	case has == stamp:
		return false, 0
	case sent.stamp == stamp && !sent.refusedAt.IsZero():
		wait := sent.refusedAt.Add(refused).Sub(now)
		return wait <= 0, max(0, wait)
	}
	return true, 0
}

// has reports whether a pod has the stamp, or was sent it a moment ago.
func (s *sentStamps) has(pod *metav1.PartialObjectMetadata, stamp string) bool {
	wanted, wait := s.wants(pod, stamp, time.Hour, time.Now())
	return !wanted && wait == 0
}

// ours reports whether the stamp that a pod has is the last that was sent to it.
func (s *sentStamps) ours(pod *metav1.PartialObjectMetadata) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, ok := s.in[pod.Namespace][pod.UID]
	return ok && sent.stamp == pod.Annotations[v1alpha1.RouterDigestAnnotation]
}

// note keeps what is sent to a pod, and returns what was before.
func (s *sentStamps) note(pod *metav1.PartialObjectMetadata, stamp string) sentStamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.in[pod.Namespace]
	if of == nil {
		of = map[types.UID]sentStamp{}
		s.in[pod.Namespace] = of
	}
	before := of[pod.UID]
	of[pod.UID] = sentStamp{stamp: stamp, seen: pod.ResourceVersion}
	return before
}

// restore takes back what was noted.
func (s *sentStamps) restore(pod *metav1.PartialObjectMetadata, before sentStamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in[pod.Namespace][pod.UID] = before
}

// refuse notes that the API server refused a stamp.
func (s *sentStamps) refuse(pod *metav1.PartialObjectMetadata, stamp string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in[pod.Namespace][pod.UID] = sentStamp{stamp: stamp, refusedAt: at}
}

// keep drops the pods of a namespace that are not among those given.
func (s *sentStamps) keep(namespace string, pods []metav1.PartialObjectMetadata) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.in[namespace]
	delete(s.in, namespace)
	kept := make(map[types.UID]sentStamp, len(before))
	for i := range pods {
		if sent, ok := before[pods[i].UID]; ok {
			kept[pods[i].UID] = sent
		}
	}
	if len(kept) > 0 {
		s.in[namespace] = kept
	}
}
