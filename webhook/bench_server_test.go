// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// perRound is how many pods each side creates before it is the other's turn: in
// short turns, both meet the same machine.
const perRound = 64

// BenchmarkAdmissionThroughTheAPIServer creates the same pods in two namespaces of one
// real API server: in one our webhook injects them, in the other a webhook that does
// nothing is asked. An operation is one pod in each. Pods that several clients create
// at once give the ratio of the two throughputs, the median of the rounds'; pods
// created one by one give what our webhook adds to the time of a single one.
func BenchmarkAdmissionThroughTheAPIServer(b *testing.B) {
	sides := newSides(b)
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { sides.race(b, clients) })
	}
}

// sides are two namespaces in which pods are created.
type sides struct {
	client.Client
	ours, nothing string
	made          atomic.Int64
}

func newSides(b *testing.B) *sides {
	b.Helper()
	if err := startAll(); err != nil {
		b.Fatal(err)
	}
	config := rest.CopyConfig(cluster.Config)
	config.QPS, config.WarningHandlerWithContext = -1, &warned{}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	s := &sides{Client: c, ours: benchNamespace(b), nothing: benchNamespace(b)}
	for _, o := range []client.Object{keySecret("sk-bench"), provider(), policy(v1alpha1.AdmissionWarn)} {
		o.SetNamespace(s.ours)
		if err := c.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	asked := installNothing(b, s.nothing)
	if err := eventually(func() error { // until the API server and the caches have heard of all
		ours, theirs := s.pod(s.ours), s.pod(s.nothing)
		if err := errors.Join(c.Create(b.Context(), ours, client.DryRunAll), c.Create(b.Context(), theirs, client.DryRunAll)); err != nil {
			return err
		}
		if runtimeOf(ours) == nil || runtimeOf(theirs) != nil || asked.Load() == 0 {
			return fmt.Errorf("ours is injected: %v, theirs: %v, the other webhook was asked %d times", runtimeOf(ours) != nil, runtimeOf(theirs) != nil, asked.Load())
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	return s
}

func benchNamespace(b *testing.B) string {
	b.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := createNamespace(b.Context(), ns); err != nil {
		b.Fatal(err)
	}
	return ns.Name
}

// installNothing lets the API server ask a webhook that allows every pod of a
// namespace, and is otherwise served and configured as ours is. It returns the count
// of its calls.
func installNothing(b *testing.B, namespace string) *atomic.Int64 {
	b.Helper()
	asked := &atomic.Int64{}
	server := httptest.NewUnstartedServer(serve(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		asked.Add(1)
		return admission.Allowed("")
	}), logr.Discard()))
	server.EnableHTTP2 = true
	server.StartTLS()
	b.Cleanup(server.Close)
	conf := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := readManifest("mutating.yaml", conf); err != nil {
		b.Fatal(err)
	}
	hook := conf.Webhooks[0]
	hook.Name = "nothing.example.com"
	hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	hook.ObjectSelector = nil
	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	conf = &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "nothing"}, Webhooks: []admissionregistrationv1.MutatingWebhook{hook}}
	if err := admin.Create(b.Context(), conf); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := admin.Delete(context.Background(), conf); err != nil {
			b.Error(err)
		}
	})
	return asked
}

// pod is a new pod of one side. Only in ours does it ask for the runtime; in the
// other it carries a label of the same length.
func (s *sides) pod(namespace string) *corev1.Pod {
	pod := agent("example.com/do-not-inject=" + v1alpha1.InjectEnabled)
	if namespace == s.ours {
		pod = agent(optIn)
	}
	pod.Namespace, pod.Name = namespace, fmt.Sprintf("agent-%d", s.made.Add(1))
	return pod
}

// race creates b.N pods on each side, by turns.
func (s *sides) race(b *testing.B, clients int) {
	ours, nothing := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
	var ratios []float64
	var oursTook, nothingTook time.Duration
	size := perRound
	if clients == 1 {
		size = 1
	}
	b.ResetTimer()
	for round := 0; len(ours) < b.N; round++ {
		n := min(size, b.N-len(ours))
		var one, other time.Duration
		if round%2 == 0 {
			ours, one = s.create(b, s.ours, n, clients, ours)
			nothing, other = s.create(b, s.nothing, n, clients, nothing)
		} else {
			nothing, other = s.create(b, s.nothing, n, clients, nothing)
			ours, one = s.create(b, s.ours, n, clients, ours)
		}
		oursTook, nothingTook = oursTook+one, nothingTook+other
		ratios = append(ratios, float64(other)/float64(one))
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op") // of two pods: it says nothing
	b.ReportMetric(float64(b.N)/oursTook.Seconds(), "pods/s")
	b.ReportMetric(float64(b.N)/nothingTook.Seconds(), "nothing-pods/s")
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	slices.Sort(ours)
	slices.Sort(nothing)
	b.ReportMetric(float64(ours[len(ours)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64((ours[len(ours)/2] - nothing[len(nothing)/2]).Microseconds()), "added-p50-µs")
}

// create makes n pods of one side and adds how long each took; it returns how long
// all of them did.
func (s *sides) create(b *testing.B, namespace string, n, clients int, each []time.Duration) (times []time.Duration, all time.Duration) {
	b.Helper()
	took := make([]time.Duration, n)
	var next atomic.Int64
	var wait sync.WaitGroup
	start := time.Now()
	for range min(clients, n) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				pod := s.pod(namespace)
				begun := time.Now()
				if err := s.Create(b.Context(), pod); err != nil {
					b.Error(err)
				}
				took[i] = time.Since(begun)
				if injected := runtimeOf(pod) != nil; injected != (namespace == s.ours) {
					b.Errorf("pod %s of %s: injected is %v", pod.Name, namespace, injected)
				}
			}
		})
	}
	wait.Wait()
	return append(each, took...), time.Since(start)
}
