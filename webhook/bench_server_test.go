// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"encoding/pem"
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
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook/certs"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// perRound is how many pods each side creates before it is the other's turn: in
// short turns, both meet the same machine.
const perRound = 64

// BenchmarkAdmissionThroughTheAPIServer creates the same pods in three namespaces of
// one real API server. In one, our webhook injects them; in another, a webhook that
// does nothing is asked; in the third, one that answers with our patch, made
// beforehand: what the API server itself has to do with a pod that has a container
// more. An operation is one pod in each. Of pods that several clients create at once
// it tells the ratio of throughputs, ours to the other's, the median of the rounds';
// of pods that are created one by one, what our webhook adds to the time of one.
func BenchmarkAdmissionThroughTheAPIServer(b *testing.B) {
	sides := newSides(b)
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { sides.race(b, clients) })
	}
}

// side is a namespace in which pods are created.
type side int

const (
	ours side = iota
	nothing
	samePatch
	sideCount
)

// sides are all of them, and who creates pods there.
type sides struct {
	client.Client
	namespaces [sideCount]string
	made       atomic.Int64
}

func newSides(b *testing.B) *sides {
	b.Helper()
	suite.Need(b)
	config := rest.CopyConfig(cluster.Config)
	config.QPS, config.WarningHandlerWithContext = -1, &warned{}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	s := &sides{Client: c}
	for i := range s.namespaces {
		if s.namespaces[i], err = envtest.CreateNamespace(b.Context(), admin, "bench-"); err != nil {
			b.Fatal(err)
		}
	}
	for _, o := range []client.Object{keySecret("sk-bench"), provider(), policy(v1alpha1.AdmissionWarn)} {
		o.SetNamespace(s.namespaces[ours])
		if err := c.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	installWebhook(b, "nothing", s.namespaces[nothing], admission.Allowed(""))
	installWebhook(b, "same-patch", s.namespaces[samePatch], s.answer(b))
	for of := range sideCount { // until the API server and the caches have heard of all
		if err := eventually(func() error {
			pod := s.pod(of)
			if err := c.Create(b.Context(), pod, client.DryRunAll); err != nil {
				return err
			}
			return s.check(of, pod)
		}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// answer is ours about a pod of our side.
func (s *sides) answer(b *testing.B) admission.Response {
	b.Helper()
	decider := &Decider{Cached: s, Live: s, Scope: gather.Scope{OperatorNamespace: operatorNamespace}, Settings: inject.Settings{Image: "vision-runtime:v1"}}
	pod := s.pod(ours)
	plan, err := decider.Decide(b.Context(), pod, pod.Namespace)
	if err != nil || !plan.Inject {
		b.Fatal(err, plan.Notes)
	}
	return respond(pod, plan)
}

// installWebhook lets the API server ask a webhook that always gives one answer
// about the pods of a namespace, and is otherwise served and configured as ours.
func installWebhook(b *testing.B, name, namespace string, answer admission.Response) {
	b.Helper()
	server := httptest.NewUnstartedServer(serve(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return answer
	}), logr.Discard()))
	server.EnableHTTP2 = true
	server.StartTLS()
	b.Cleanup(server.Close)
	conf := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := admin.Get(b.Context(), client.ObjectKey{Name: certs.DefaultConfiguration}, conf); err != nil {
		b.Fatal(err)
	}
	hook := conf.Webhooks[0]
	hook.Name = name + ".example.com"
	hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	hook.ObjectSelector = nil
	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	conf = &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{hook}}
	if err := admin.Create(b.Context(), conf); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := admin.Delete(context.Background(), conf); err != nil {
			b.Error(err)
		}
	})
}

// pod is a new one of a side. Only on ours does it ask for the runtime; elsewhere it
// carries a label of the same length.
func (s *sides) pod(of side) *corev1.Pod {
	pod := typical("example.com/do-not-inject=" + v1alpha1.InjectEnabled)
	if of == ours {
		pod = typical(optIn)
	}
	pod.Namespace, pod.Name = s.namespaces[of], fmt.Sprintf("agent-%d", s.made.Add(1))
	return pod
}

// check says that a pod of a side is not what it should be.
func (s *sides) check(of side, pod *corev1.Pod) error {
	if injected := runtimeOf(pod) != nil; injected == (of == nothing) {
		return fmt.Errorf("side %d: the pod has the runtime: %v", of, injected)
	}
	return nil
}

// race creates b.N pods on each side, by turns.
func (s *sides) race(b *testing.B, clients int) {
	var each [sideCount][]time.Duration
	var ratios, toSamePatch []float64
	var total [sideCount]time.Duration
	size := perRound
	if clients == 1 {
		size = 1
	}
	for round := 0; len(each[ours]) < b.N; round++ {
		n := min(size, b.N-len(each[ours]))
		var took [sideCount]time.Duration
		for turn := range sideCount {
			of := (side(round) + turn) % sideCount
			times, all := s.create(b, of, n, clients)
			each[of], took[of] = append(each[of], times...), all
			total[of] += all
		}
		ratios = append(ratios, float64(took[nothing])/float64(took[ours]))
		toSamePatch = append(toSamePatch, float64(took[samePatch])/float64(took[ours]))
	}
	b.ReportMetric(0, "ns/op") // of three pods: it says nothing
	b.ReportMetric(float64(b.N)/total[ours].Seconds(), "pods/s")
	b.ReportMetric(median(ratios), "ratio-to-nothing")
	b.ReportMetric(median(toSamePatch), "ratio-to-same-patch")
	p50 := median(each[ours])
	b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
	b.ReportMetric(float64((p50 - median(each[nothing])).Microseconds()), "added-p50-µs")
	b.ReportMetric(float64((p50 - median(each[samePatch])).Microseconds()), "added-to-same-patch-p50-µs")
}

func median[T cmp.Ordered](of []T) T {
	slices.Sort(of)
	return of[len(of)/2]
}

// create makes n pods of one side. It returns how long each took, and all of them.
func (s *sides) create(b *testing.B, of side, n, clients int) (each []time.Duration, all time.Duration) {
	b.Helper()
	each = make([]time.Duration, n)
	var next atomic.Int64
	var wait sync.WaitGroup
	start := time.Now()
	for range min(clients, n) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				pod := s.pod(of)
				begun := time.Now()
				if err := s.Create(b.Context(), pod); err != nil {
					b.Error(err)
				}
				each[i] = time.Since(begun)
				if err := s.check(of, pod); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wait.Wait()
	return each, time.Since(start)
}
