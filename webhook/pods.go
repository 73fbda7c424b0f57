// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// podHandler injects the runtime into pods as they are created. It writes
// nothing, so that a dry run is a run.
type podHandler struct {
	scheme *runtime.Scheme
	// cached is asked first, and live where what is cached does not serve the
	// pod: its policy may have been applied a moment ago, in the same file.
	cached, live      client.Reader
	operatorNamespace string
	settings          inject.Settings
}

// Handle gathers, decides and acts.
func (h *podHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || req.SubResource != "" {
		return admission.Allowed("")
	}
	pod := &corev1.Pod{}
	if err := admission.NewDecoder(h.scheme).Decode(req, pod); err != nil {
		return fail(ctx, fmt.Errorf("injecting the vision runtime: reading the pod: %w", err))
	}
	plan, err := h.decide(ctx, pod, req.Namespace)
	if err != nil {
		return fail(ctx, fmt.Errorf("injecting the vision runtime: %w", err))
	}
	return respond(pod, plan)
}

// decide looks at the cache and, where that does not suffice, at the API server.
func (h *podHandler) decide(ctx context.Context, pod *corev1.Pod, namespace string) (inject.Plan, error) {
	plan, err := h.decideFrom(ctx, h.cached, pod, namespace)
	var notStarted *cache.ErrCacheNotStarted
	fresh := apierrors.IsNotFound(err) || errors.As(err, &notStarted)
	if err != nil && !fresh || err == nil && !plan.Incomplete {
		return plan, err
	}
	return h.decideFrom(ctx, h.live, pod, namespace)
}

func (h *podHandler) decideFrom(ctx context.Context, r client.Reader, pod *corev1.Pod, namespace string) (inject.Plan, error) {
	in, err := gather(ctx, r, namespace, h.operatorNamespace)
	if err != nil {
		return inject.Plan{}, err
	}
	return inject.Decide(inject.Input{
		Pod:             pod,
		Namespace:       namespace,
		NamespaceLabels: in.NamespaceLabels,
		Policies:        ofNamespace(in.Policies, namespace),
		Compiled:        compile.Compile(in),
		Settings:        h.settings,
	}), nil
}

// respond tells the API server what to do, and the user why.
func respond(pod *corev1.Pod, plan inject.Plan) admission.Response {
	if plan.Deny != nil {
		response := admission.Denied("vision-operator: " + plan.Deny.String())
		response.Result.Code = http.StatusForbidden
		return response.WithWarnings(warnings(plan.Notes)...)
	}
	response := admission.Allowed("").WithWarnings(warnings(plan.Notes)...)
	operations := inject.Patch(pod, inject.Apply(pod, plan))
	if len(operations) == 0 {
		return response
	}
	data, err := json.Marshal(operations)
	if err != nil {
		// The operations are made of API types.
		panic("webhook: encoding the patch: " + err.Error())
	}
	jsonPatch := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = data, &jsonPatch
	return response
}

// maxWarnings bounds an answer: the API server cuts what exceeds 4 KiB in all.
const maxWarnings = 12

func warnings(notes []inject.Note) []string {
	var out []string
	for i, note := range notes {
		if i == maxWarnings {
			return append(out, fmt.Sprintf("vision-operator: and %d more", len(notes)-maxWarnings))
		}
		out = append(out, "vision-operator: "+note.String())
	}
	return out
}
