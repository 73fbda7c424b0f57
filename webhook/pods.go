// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/webhook/inject"
)

// podHandler injects the runtime into pods as they are created.
type podHandler struct {
	scheme  *runtime.Scheme
	decider *Decider
}

// Handle reads the pod, decides and acts.
func (h *podHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || req.SubResource != "" || !h.decider.Scope.Holds(req.Namespace) {
		return admission.Allowed("")
	}
	pod := &corev1.Pod{}
	if err := admission.NewDecoder(h.scheme).Decode(req, pod); err != nil {
		return fail(ctx, fmt.Errorf("injecting the vision runtime: reading the pod: %w", err))
	}
	plan, err := h.decider.Decide(ctx, pod, req.Namespace)
	if err != nil {
		return fail(ctx, fmt.Errorf("injecting the vision runtime: %w", err))
	}
	return respond(pod, plan)
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
