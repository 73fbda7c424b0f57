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

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// review posts an AdmissionReview of a pod's creation and returns the answer.
func review(t testing.TB, handler http.Handler, pod *corev1.Pod) *httptest.ResponseRecorder {
	t.Helper()
	return answer(handler, reviewBody(t, "agents", pod))
}

// answer sends the handler a body.
func answer(handler http.Handler, body []byte) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, PodPath, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(recorder, request)
	return recorder
}

// reviewBody asks about a pod that is created in a namespace.
func reviewBody(t testing.TB, namespace string, pod *corev1.Pod) []byte {
	t.Helper()
	object, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Namespace: namespace, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
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

// FuzzAdmissionReviews sends the pod webhook any bytes. It never panics, and the API
// server can always read what it answers: a review with a pod that is allowed or not,
// and a patch that applies, or a failed call.
func FuzzAdmissionReviews(f *testing.F) {
	f.Add(reviewBody(f, "agents", agent(optIn)))
	f.Add(reviewBody(f, "agents", agent(optOut)))
	f.Add(reviewBody(f, "nowhere", agent(optIn)))
	f.Add([]byte("{}"))
	f.Add([]byte(""))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"agents","object":null}}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"agents","object":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"visionoperator.dev/inject":"enabled"}},"spec":null}}}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"agents","object":{"spec":{"containers":[{}],"volumes":[{},{}]}}}}`))
	handler := serve(benchHandler(f), logr.Discard())
	f.Fuzz(func(t *testing.T, body []byte) {
		got := answer(handler, body)
		if strings.Contains(got.Body.String(), "panic") {
			t.Fatalf("got %s", got.Body)
		}
		if got.Code >= 400 && got.Code < 600 {
			return
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(got.Body.Bytes(), &review); err != nil || got.Code != http.StatusOK || review.Response == nil {
			t.Fatalf("got %d %s (%v)", got.Code, got.Body, err)
		}
		if len(review.Response.Patch) > 0 {
			patched(t, body, review.Response.Patch)
		}
	})
}

// patched applies a patch to the pod that a body asks about, as an API server writes it.
func patched(t *testing.T, body, patch []byte) {
	t.Helper()
	var asked admissionv1.AdmissionReview
	var pod corev1.Pod
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &asked); err != nil {
		t.Fatalf("a pod was read from what is no review: %v", err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asked.Request.Object.Raw, &pod); err != nil {
		t.Fatalf("a pod was read from what is none: %v", err)
	}
	object, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("reading the patch %s: %v", patch, err)
	}
	after, err := operations.Apply(object)
	if err != nil {
		t.Fatalf("applying %s to %s: %v", patch, object, err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(after, &corev1.Pod{}); err != nil {
		t.Fatalf("the patched pod is none: %v", err)
	}
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
