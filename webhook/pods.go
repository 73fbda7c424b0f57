// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// podHandler injects the runtime into pods as they are created. It writes
// nothing, so that a dry run is a run.
type podHandler struct {
	scheme *runtime.Scheme
	// cached is asked first, and live where what is cached does not serve the
	// pod: its policy may have been applied a moment ago, in the same file.
	cached, live client.Reader
	scope        gather.Scope
	settings     inject.Settings
}

// Handle gathers, decides and acts.
func (h *podHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || req.SubResource != "" || !h.scope.Holds(req.Namespace) {
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
	labels, err := namespaceLabels(ctx, h.live, namespace)
	if err != nil {
		return inject.Plan{}, err
	}
	in := inject.Input{Pod: pod, Namespace: namespace, NamespaceLabels: labels, Settings: h.settings}
	plan, err := h.decideFrom(ctx, h.cached, in)
	if _, notStarted := errors.AsType[*cache.ErrCacheNotStarted](err); notStarted || err == nil && plan.Incomplete {
		return h.decideFrom(ctx, h.live, in)
	}
	return plan, err
}

func (h *podHandler) decideFrom(ctx context.Context, r client.Reader, in inject.Input) (inject.Plan, error) {
	objects, err := h.scope.Gather(ctx, r, in.Namespace, in.NamespaceLabels)
	if err != nil {
		return inject.Plan{}, err
	}
	in.Policies = compile.Servers(objects)
	in.Compiled = compile.Compile(objects)
	return inject.Decide(in), nil
}

// respond tells the API server what to do, and the user why.
func respond(pod *corev1.Pod, plan inject.Plan) admission.Response {
	if len(plan.Deny) > 0 {
		response := admission.Denied("vision-operator: " + refusal(plan.Deny))
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

// refusal is every problem in one line.
func refusal(problems []inject.Note) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = strings.Map(printable, p.String())
	}
	return strings.Join(texts, "; ")
}

// maxWarnings bounds an answer: the API server cuts what exceeds 4 KiB in all.
const maxWarnings = 12

func warnings(notes []inject.Note) []string {
	var out []string
	for i, note := range notes {
		if i == maxWarnings {
			return append(out, fmt.Sprintf("vision-operator: and %d more", len(notes)-maxWarnings))
		}
		out = append(out, "vision-operator: "+strings.Map(printable, note.String()))
	}
	return out
}

// printable keeps what a warning may hold: a note may repeat what a pod's author
// wrote, and the API server drops a warning with a control character in it.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}
