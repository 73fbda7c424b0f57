// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// review posts an AdmissionReview of a pod's creation and returns the answer.
func review(t testing.TB, handler http.Handler, pod *corev1.Pod) *httptest.ResponseRecorder {
	t.Helper()
	body := reviewBody(t, pod)
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, PodPath, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(recorder, request)
	return recorder
}

func reviewBody(t testing.TB, pod *corev1.Pod) []byte {
	t.Helper()
	object, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Namespace: "agents", Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Object: runtime.RawExtension{Raw: object},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestAFailureAndAPanicAreFailedCallsAndARefusalIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		handler admission.HandlerFunc
		code    int
		body    string
	}{
		"failure": {func(ctx context.Context, _ admission.Request) admission.Response {
			return fail(ctx, errors.New("reading things: no"))
		}, http.StatusInternalServerError, "reading things"},
		"panic":   {func(context.Context, admission.Request) admission.Response { panic("oh") }, http.StatusInternalServerError, "panic"},
		"refusal": {func(context.Context, admission.Request) admission.Response { return admission.Denied("because") }, http.StatusOK, "because"},
		"consent": {func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }, http.StatusOK, `"allowed":true`},
	} {
		t.Run(name, func(t *testing.T) {
			got := review(t, serve(c.handler, logr.Discard()), agent())
			if got.Code != c.code || !strings.Contains(got.Body.String(), c.body) {
				t.Errorf("got %d %s, want %d with %q", got.Code, got.Body, c.code, c.body)
			}
		})
	}
}

func FuzzAdmissionReviewsNeverPanic(f *testing.F) {
	f.Add(reviewBody(f, agent(optIn)))
	f.Add([]byte("{}"))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"operation":"CREATE","object":{"spec":null}}}`))
	handler := serve(benchHandler(f), logr.Discard())
	f.Fuzz(func(t *testing.T, body []byte) {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, PodPath, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(recorder, request)
		if strings.Contains(recorder.Body.String(), "panic") {
			t.Errorf("got %s", recorder.Body)
		}
	})
}

// benchHandler serves from memory.
func benchHandler(t testing.TB) *podHandler {
	t.Helper()
	p, q := provider(), policy(v1alpha1.AdmissionWarn)
	p.Namespace, q.Namespace = "agents", "agents"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p, q, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agents"}}).Build()
	decider := &Decider{Cached: c, Live: c, Scope: gather.Scope{OperatorNamespace: operatorNamespace}, Settings: inject.Settings{Image: "vision-runtime:v1"}}
	return &podHandler{scheme: scheme, decider: decider}
}

func TestWhenTheAPIServerCannotBeReadTheFailurePolicyDecides(t *testing.T) {
	handler := benchHandler(t)
	handler.decider.Cached = interceptor.NewClient(handler.decider.Cached.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("out of order")
		},
	})
	got := review(t, serve(handler, logr.Discard()), agent(optIn))
	if got.Code != http.StatusInternalServerError || !strings.Contains(got.Body.String(), "listing policies of namespace agents") {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

// BenchmarkAdmission is a whole admission request but for TLS and the reading
// of objects, which are in memory here: decode, compile, decide, apply, patch, encode.
func BenchmarkAdmission(b *testing.B) {
	handler := serve(benchHandler(b), logr.Discard())
	pod := agent(optIn)
	b.ReportAllocs()
	for b.Loop() {
		if got := review(b, handler, pod); got.Code != http.StatusOK {
			b.Fatal(got.Body)
		}
	}
}
