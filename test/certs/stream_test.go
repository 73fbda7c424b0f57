// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// breath is the rest between two creations of a stream.
const breath = 25 * time.Millisecond

// stream is somebody who creates pods in a namespace, one after the other, all the time.
type stream struct {
	namespace string
	admin     client.Client
	mu        sync.Mutex
	tally     tally
}

// tally is what became of the pods.
type tally struct {
	created, injected int
	refusals          []error
	// lastLapse is when the last creation ended that was refused or not injected.
	lastLapse time.Time
}

// since is what came to pass after an earlier tally.
func (t tally) since(earlier tally) tally {
	return tally{t.created - earlier.created, t.injected - earlier.injected, t.refusals[len(earlier.refusals):], t.lastLapse}
}

// startStream starts to create; the function that it returns ends it.
func startStream(t *testing.T, admin client.Client, namespace string) (s *stream, stop func()) {
	t.Helper()
	s = &stream{namespace: namespace, admin: admin}
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopped:
				return
			case <-time.After(breath):
				s.create()
			}
		}
	}()
	return s, sync.OnceFunc(func() { close(stopped); <-ended })
}

func (s *stream) create() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "agent-", Labels: map[string]string{v1alpha1.InjectLabel: v1alpha1.InjectEnabled}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "agent", Image: "agent:1", VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/workspace"}}}},
			Volumes:    []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	err := s.admin.Create(context.Background(), pod)
	injected := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == inject.ContainerName })
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.tally.refusals = append(s.tally.refusals, err)
	case injected:
		s.tally.created++
		s.tally.injected++
		return
	default:
		s.tally.created++
	}
	s.tally.lastLapse = time.Now()
}

func (s *stream) now() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally
}
