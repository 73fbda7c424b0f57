// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

const mirror = "mirror.example/"

// rewriteImages is what some clusters' own webhooks do: every image comes from
// a mirror, and a sidecar is added. It runs after ours.
func rewriteImages(_ context.Context, req admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
		return admission.Denied(err.Error())
	}
	var patch []map[string]any
	for list, containers := range map[string][]corev1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
		for i, c := range containers {
			if !strings.HasPrefix(c.Image, mirror) {
				patch = append(patch, map[string]any{"op": "replace", "path": fmt.Sprintf("/spec/%s/%d/image", list, i), "value": mirror + c.Image})
			}
		}
	}
	if len(pod.Spec.Containers) == 1 {
		patch = append(patch, map[string]any{"op": "add", "path": "/spec/containers/-", "value": corev1.Container{Name: "mesh", Image: mirror + "mesh:1"}})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return admission.Denied(err.Error())
	}
	response, kind := admission.Allowed(""), admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = data, &kind
	return response
}

// installRewriter puts another webhook behind ours for one namespace.
func installRewriter(t *testing.T, namespace string) {
	t.Helper()
	server := httptest.NewTLSServer(serve(admission.HandlerFunc(rewriteImages), logr.Discard()))
	t.Cleanup(server.Close)
	remove, err := envtest.InstallAnother(t.Context(), admin, "zz-rewriter", namespace, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
}

func TestCalledAgainAfterAnotherWebhookWeCompleteAndLeaveItsWork(t *testing.T) {
	u := newUser(t)
	u.create(provider(), policy(v1alpha1.AdmissionWarn))
	installRewriter(t, u.namespace)
	var pod *corev1.Pod
	err := eventually(func() error { // until the API server has heard of the other webhook
		pod = agent(optIn)
		pod.Namespace = u.namespace
		if err := u.Create(t.Context(), pod, client.DryRunAll); err != nil {
			return err
		}
		if len(pod.Spec.Containers) != 2 {
			return errors.New("the other webhook was not called")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := calls(t)
	pod = agent(optIn)
	u.create(pod)
	if n := calls(t) - before; n != 2 {
		t.Errorf("the webhook was called %v times, want twice", n)
	}
	c := runtimeOf(pod)
	if c == nil || !strings.HasPrefix(c.Image, mirror) {
		t.Fatalf("got %v, want the runtime with the image that the other webhook gave it", c)
	}
	if n := len(pod.Spec.InitContainers); n != 2 {
		t.Errorf("got %d init containers, want the pod's and the runtime", n)
	}
	for _, c := range pod.Spec.Containers {
		found := false
		for _, v := range c.Env {
			found = found || v.Name == compile.EnvRuntimeURL
		}
		if !found {
			t.Errorf("container %s is not told where the runtime is", c.Name)
		}
	}
	if _, err := inject.ParseInjection(pod.Annotations[v1alpha1.InjectionAnnotation]); err != nil {
		t.Error(err)
	}
}
