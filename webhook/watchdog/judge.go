// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// ReasonRuntimeMissing is that of a pod which would get the runtime if it were
// made now. It was made while the webhook could not be reached, or before its
// label, its namespace's or its policy was there. Delete it, so that it is made
// again.
const ReasonRuntimeMissing inject.Reason = "RuntimeMissing"

const messageRuntimeMissing = "the pod was created without the vision runtime, probably while the webhook could not be reached, " +
	"or before its label or policy was there; delete it so that it is made again"

// finding is what is the matter with a pod.
type finding struct {
	reason  inject.Reason
	message string
	// silent says that it is counted and not told: so its policy's admission.mode asks.
	silent bool
}

// watched reports whether a pod without the runtime counts: it has not ended, is
// not about to, and is not a mirror of a file on a node.
func watched(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return !mirror && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// judge says what is the matter with a pod without the runtime, from what would
// be done if it were made now; false when nothing is, since nobody asks for the
// runtime there any more.
func judge(plan inject.Plan) (finding, bool) {
	if plan.Inject {
		return finding{reason: ReasonRuntimeMissing, message: messageRuntimeMissing}, true
	}
	notes := problems(plan.Steps)
	if len(notes) == 0 {
		return finding{}, false
	}
	texts := make([]string, len(notes))
	for i, n := range notes {
		if texts[i] = n.Message; i > 0 {
			texts[i] = n.String()
		}
	}
	return finding{reason: notes[0].Reason, message: strings.Join(texts, "; "), silent: len(plan.Deny)+len(plan.Notes) == 0}, true
}

// problems are what checks found to be wrong.
func problems(steps []inject.Step) (notes []inject.Note) {
	for _, s := range steps {
		if s.Outcome == inject.Failed {
			notes = append(notes, s.Notes...)
		}
	}
	return notes
}

// alike tells the pods for which one decision is enough: those of one template
// with the same labels and annotations; empty for a pod of no known template.
func alike(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	label, _ := hashOf(pod)
	if owner == nil || label == "" {
		return ""
	}
	key := []string{pod.Namespace, string(owner.UID), pod.Annotations[v1alpha1.PolicyAnnotation], pod.Annotations[v1alpha1.WorkspacesAnnotation]}
	return strings.Join(append(key, labels.Set(pod.Labels).String()), "\x00")
}

// maxNote is how many bytes of a note the API server takes; it refuses an Event with more.
const maxNote = 1024

// note is a message as an Event's note: its beginning where it is long.
func note(message string) string {
	const more = "…"
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len(more)], "") + more
}
