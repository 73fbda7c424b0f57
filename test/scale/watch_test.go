// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// observer sees every router as the API server tells of it.
type observer struct {
	mu      sync.Mutex
	routers map[string]seen // by namespace
	changed chan struct{}   // closed at the next change
}

// seen is a router's document and when it was seen.
type seen struct {
	data string
	at   time.Time
}

// observe watches until the benchmark ends.
func observe(tb testing.TB) *observer {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	only := client.MatchingFields{"metadata.name": router.ConfigMapName}
	var list corev1.ConfigMapList
	if err := suite.admin.List(ctx, &list, only); err != nil {
		tb.Fatal(err)
	}
	events, err := suite.admin.Watch(ctx, &corev1.ConfigMapList{}, only, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: new(int64(3600))}})
	if err != nil {
		tb.Fatal(err)
	}
	o := &observer{routers: map[string]seen{}, changed: make(chan struct{})}
	for i := range list.Items {
		o.routers[list.Items[i].Namespace] = seen{list.Items[i].Data[router.Key], time.Now()}
	}
	go func() {
		defer events.Stop()
		for e := range events.ResultChan() {
			o.take(e)
		}
	}()
	return o
}

func (o *observer) take(e watch.Event) {
	cm, ok := e.Object.(*corev1.ConfigMap)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Type == watch.Deleted {
		delete(o.routers, cm.Namespace)
	} else {
		o.routers[cm.Namespace] = seen{cm.Data[router.Key], time.Now()}
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// await waits until the router of each of the namespaces is right, and returns
// when each came to be.
func (o *observer) await(tb testing.TB, wanted []string, right func(namespace, data string) bool) []time.Time {
	tb.Helper()
	timeout := time.After(5 * time.Minute)
	times := make([]time.Time, 0, len(wanted))
	for {
		var missing []string
		o.mu.Lock()
		next := o.changed
		for _, namespace := range wanted {
			if s, there := o.routers[namespace]; there && right(namespace, s.data) {
				times = append(times, s.at)
			} else {
				missing = append(missing, namespace)
			}
		}
		o.mu.Unlock()
		if wanted = missing; len(wanted) == 0 {
			return times
		}
		select {
		case <-next:
		case <-timeout:
			tb.Fatalf("%d routers are not right, the first is that of %s", len(wanted), wanted[0])
		}
	}
}

func everyNamespace() []string {
	names := make([]string, namespaces)
	for i := range names {
		names[i] = namespaceName(i)
	}
	return names
}

// allRight waits until every router is what the objects make of it.
func allRight(tb testing.TB, routers *observer) time.Time {
	tb.Helper()
	expected := grown.expected(tb)
	return slices.MaxFunc(routers.await(tb, everyNamespace(), func(ns, data string) bool { return data == expected[ns] }), time.Time.Compare)
}
