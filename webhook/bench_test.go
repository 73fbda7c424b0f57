// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/test/measure"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// manyPolicies is a large cluster's: ten in each of 500 namespaces.
const manyPolicies, inEach = 5000, 10

// BenchmarkAdmissionHandler is a whole admission request but for TLS, answered from a cache
// that watches a real API server: decode, gather, compile, decide, apply, patch,
// encode. It tells the times of single requests, with few policies in the cache and
// with 5,000 more: of one client that asks again and again, and of 200 clients that
// each ask five times a second, which is 1,000 pods in a second.
func BenchmarkAdmissionHandler(b *testing.B) {
	few := newBenchHandler(b)
	for _, concurrency := range []int{1, 200} {
		b.Run(fmt.Sprintf("policies=1/clients=%d", concurrency), func(b *testing.B) { few.measure(b, concurrency) })
	}
	createPolicies(b)
	many := newBenchHandler(b)
	for _, concurrency := range []int{1, 200} {
		b.Run(fmt.Sprintf("policies=%d/clients=%d", manyPolicies, concurrency), func(b *testing.B) { many.measure(b, concurrency) })
	}
}

// benched is a handler and the namespace that its pods are created in.
type benched struct {
	http.Handler
	namespace string
}

func newBenchHandler(b *testing.B) *benched {
	b.Helper()
	suite.Need(b)
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	namespace, err := envtest.CreateNamespace(ctx, admin, "bench-")
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range []client.Object{keySecret("sk-bench"), provider(), policy(v1alpha1.AdmissionWarn)} {
		o.SetNamespace(namespace)
		if err := admin.Create(ctx, o); err != nil {
			b.Fatal(err)
		}
	}
	cached, err := cache.New(operator, cache.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = cached.Start(ctx) }()
	for name, kind := range informers() {
		if _, err := cached.GetInformer(ctx, kind); err != nil {
			b.Fatal(name, err)
		}
	}
	live, err := client.New(operator, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	decider := &Decider{Cached: cached, Live: live, Scope: gather.Scope{OperatorNamespace: operatorNamespace},
		Settings: inject.Settings{Image: "vision-runtime:v1"}, Keys: NewKeys(live)}
	return &benched{serve(&podHandler{scheme: scheme, decider: decider}, logr.Discard()), namespace}
}

// pause is how long each of several clients waits from one request to the next.
const pause = 200 * time.Millisecond

// measure sends b.N requests by so many clients. The times of several begin when the
// request is due, so that what waits for a processor counts.
func (h *benched) measure(b *testing.B, concurrency int) {
	body := reviewBody(b, h.namespace, typical(optIn))
	if got := answer(h, body); got.Code != http.StatusOK {
		b.Fatal(got.Body)
	}
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var wait sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	started, used := time.Now(), measure.CPU(b)
	for c := range min(concurrency, b.N) {
		wait.Go(func() {
			due := started.Add(pause * time.Duration(c) / time.Duration(concurrency))
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				if concurrency == 1 {
					due = time.Now()
				} else {
					time.Sleep(time.Until(due))
				}
				if got := answer(h, body); got.Code != http.StatusOK {
					b.Error(got.Body)
				}
				took[i] = time.Since(due)
				due = due.Add(pause)
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	used = measure.CPU(b) - used
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(measure.Percentile(took, 50).Microseconds()), "p50-µs")
	b.ReportMetric(float64(measure.Percentile(took, 99).Microseconds()), "p99-µs")
}

// typical is a pod as a Deployment of an agent makes it: with an owner, resources,
// probes and some environment.
func typical(labels ...string) *corev1.Pod {
	pod := agent(labels...)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "agent-6c9f7d5b8", UID: "6f3b7e0a-3f0e-4f5c-9d59-3a1f2c4b5d6e", Controller: new(true), BlockOwnerDeletion: new(true)}}
	pod.Labels["pod-template-hash"] = "6c9f7d5b8"
	pod.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"}
	c := &pod.Spec.Containers[0]
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	c.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
	healthz := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}
	c.ReadinessProbe, c.LivenessProbe = &corev1.Probe{ProbeHandler: healthz}, &corev1.Probe{ProbeHandler: healthz, InitialDelaySeconds: 10}
	for i := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("AGENT_SETTING_%d", i), Value: "a-value-of-usual-length"})
	}
	return pod
}

func createPolicies(b *testing.B) {
	b.Helper()
	var wait sync.WaitGroup
	work := make(chan int)
	for range 32 {
		wait.Go(func() {
			for n := range work {
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("crowd-%d", n)}}
				if err := admin.Create(context.Background(), ns); err != nil {
					b.Error(err)
				}
				for i := range inEach {
					p := policy(v1alpha1.AdmissionWarn)
					p.Namespace, p.Name = ns.Name, fmt.Sprintf("policy-%d", i)
					p.Spec.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Name}}
					if err := admin.Create(context.Background(), p); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	for n := range manyPolicies / inEach {
		work <- n
	}
	close(work)
	wait.Wait()
}
