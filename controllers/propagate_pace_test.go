// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// stampOrder tells the names of a number of pods as they get their first stamp.
func stampOrder(t *testing.T, pods watch.Interface, count int) []string {
	t.Helper()
	var names []string
	patience := time.After(time.Minute)
	for len(names) < count {
		select {
		case e := <-pods.ResultChan():
			pod, ok := e.Object.(*corev1.Pod)
			if ok && pod.Annotations[v1alpha1.RouterDigestAnnotation] != "" && !slices.Contains(names, pod.Name) {
				names = append(names, pod.Name)
			}
		case <-patience:
			t.Fatalf("%d of %d pods have a stamp", len(names), count)
		}
	}
	return names
}

func TestTheNewestPodsAreStampedFirstAndNoMoreThanTheRateAllows(t *testing.T) {
	const young = 3 * DefaultStampsPerSecond
	w := newWorld(t, quick)
	w.newPod("a-pod-that-was-there-before", "policy/agents")
	time.Sleep(1100 * time.Millisecond) // an age has whole seconds
	for i := range young {
		w.newPod(fmt.Sprintf("young-%02d", i), "policy/agents")
	}
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := watcher.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(w.namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	start := time.Now()
	w.create(goodProvider("local"), goodPolicy("agents"))
	order := stampOrder(t, pods, young+1)
	if order[young] != "a-pod-that-was-there-before" {
		t.Errorf("the oldest pod is number %d of %d", slices.Index(order, "a-pod-that-was-there-before")+1, len(order))
	}
	// A burst of a second's stamps comes at once, the others at the rate.
	if took, least := time.Since(start), time.Duration(young-DefaultStampsPerSecond)*time.Second/DefaultStampsPerSecond; took < least {
		t.Errorf("%d stamps took %v, want %v at least", young+1, took, least)
	}
}
