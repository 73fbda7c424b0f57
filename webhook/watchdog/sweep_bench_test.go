// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"fmt"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// BenchmarkSweep looks for pods without the runtime among 10,000 of a real API
// server, in one namespace that opted in: with none of them, with ten, and with
// all of a namespace of 10,000.
func BenchmarkSweep(b *testing.B) {
	const many, few = 10_000, 10
	suite.Need(b)
	for name, test := range map[string]struct{ injected, missing int }{
		"none of 10,000": {many, 0},
		"10 of 10,000":   {many - few, few},
		"all of 10,000":  {0, many},
	} {
		b.Run(name, func(b *testing.B) {
			w := fleet(b, test.injected, test.missing)
			if _, err := w.sweep(b.Context()); err != nil { // the first one is always paged
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s, err := w.sweep(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				found := 0
				for _, reasons := range s.counts.reasons {
					for _, n := range reasons {
						found += n
					}
				}
				if found != test.missing {
					b.Fatalf("found %d pods, want %d", found, test.missing)
				}
			}
		})
	}
}

// fleet makes a namespace with pods and a watchdog over it.
func fleet(b *testing.B, injected, missing int) *watchdog {
	b.Helper()
	fast := rest.CopyConfig(cluster.Config)
	fast.QPS, fast.WarningHandler = -1, rest.NoWarnings{}
	c, err := client.New(fast, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	namespace, err := envtest.CreateNamespace(b.Context(), admin, "fleet-")
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range serving() {
		o.SetNamespace(namespace)
		if err := c.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	owner := newOwner()
	var group sync.WaitGroup
	numbers := make(chan int)
	for range 16 {
		group.Go(func() {
			for i := range numbers {
				pod := of(owner, "h1", agent(fmt.Sprintf("agent-%05d", i)))
				pod.Namespace = namespace
				delete(pod.Labels, v1alpha1.InjectLabel) // the namespace opts in afterwards, so that no webhook is called
				if i < injected {
					pod.Labels[v1alpha1.InjectedLabel] = "true"
				}
				if err := c.Create(b.Context(), pod); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range injected + missing {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	optIn := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.InjectLabel+`":"`+v1alpha1.InjectEnabled+`"}}}`))
	if err := c.Patch(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, optIn); err != nil {
		b.Fatal(err)
	}
	scope := gather.Scope{OperatorNamespace: operatorNamespace, Namespaces: []string{namespace}}
	return &watchdog{
		Options: Options{Scope: scope, Count: func(string, map[string]int32) {},
			Decider: &webhook.Decider{Cached: c, Live: c, Scope: scope, Settings: inject.Settings{Image: runtimeImage}}},
		cached: c, finder: finder{live: c, page: pageSize}, events: &events.FakeRecorder{}, log: logr.Discard(),
	}
}
