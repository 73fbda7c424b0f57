// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// account is the answer about one pod. The JSON names are stable.
type account struct {
	// Kind, Namespace and Name are the object's that was asked about.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Policy is what serves the pod; nil when nothing does, or nobody asks.
	Policy *served `json:"policy"`
	// Mode is the admission.mode that was obeyed; empty when nobody asks.
	Mode      v1alpha1.AdmissionMode `json:"mode"`
	Checks    []checked              `json:"checks"`
	Admission admission              `json:"admission"`
	// Refusal is why the pod is refused, Warnings what its author is told.
	Refusal  []note `json:"refusal"`
	Warnings []note `json:"warnings"`
	// Now is nil for a pod that is not created yet.
	Now    *now     `json:"now"`
	Unread []unread `json:"unread"`

	// injected is the pod as it would be; nil where it is not injected.
	injected *corev1.Pod
}

// served is the policy that serves a pod, and why that one.
type served struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Baseline  bool   `json:"baseline"`
	// Profile is its ID in the router document.
	Profile string `json:"profile"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// checked is one check of the chain.
type checked struct {
	Check   string `json:"check"`
	Outcome string `json:"outcome"`
	Notes   []note `json:"notes"`
}

// notMade is the outcome of a check that an earlier one made needless.
const notMade = "NotMade"

// note is one finding.
type note struct {
	Reason  inject.Reason `json:"reason"`
	Message string        `json:"message"`
}

// admission is what would become of a pod that is created now.
type admission string

// What admission would do.
const (
	admissionInjected admission = "Injected"
	admissionWithout  admission = "CreatedWithout"
	admissionRefused  admission = "Refused"
	admissionUnasked  admission = "NotAskedFor"
	admissionUnknown  admission = "Unknown"
)

// now is what a pod of the cluster has.
type now struct {
	State state `json:"state"`
	// Injected says that it has the runtime.
	Injected bool `json:"injected"`
	// Profile, Hash and Image are what injection noted, where it did.
	Profile string `json:"profile"`
	Hash    string `json:"hash"`
	Image   string `json:"image"`
	// Differs names what is other than it would be: profile, image or container.
	Differs []string `json:"differs"`
}

// state is what a pod has against what it would get.
type state string

// The states of a pod of the cluster.
const (
	stateCurrent  state = "Current"
	stateOutdated state = "Outdated"
	stateMissing  state = "Missing"
	stateLeftover state = "Leftover"
	stateWithout  state = "Without"
	stateUnknown  state = "Unknown"
)

// Reasons of the step that comes before the chain.
const (
	// reasonNamespaceLeftOut: the webhooks or the operator leave the namespace out.
	reasonNamespaceLeftOut inject.Reason = "NamespaceLeftOut"
	// reasonNotInstalled: the cluster has no webhook configuration of the operator.
	reasonNotInstalled inject.Reason = "WebhookNotInstalled"
)

// webhookCheck is the name of that step.
const webhookCheck = "Webhook"

// explain gives the account of one pod.
func (q *question) explain(ctx context.Context, s *subject) (account, error) {
	plan, from, err := q.decide(ctx, s)
	if err != nil {
		return account{}, err
	}
	a := account{Kind: s.kind, Namespace: s.namespace(), Name: s.name, Refusal: []note{}, Warnings: []note{}}
	a.Unread = append(append([]unread{}, q.unread...), from.unread...)
	first := checked{Check: webhookCheck, Outcome: inject.Passed.String(), Notes: []note{}}
	if barrier := q.barrier(s.namespace()); barrier != nil && asks(plan) {
		first.Outcome, first.Notes = inject.Failed.String(), []note{*barrier}
		plan = inject.Plan{}
		a.Admission = admissionWithout
	} else {
		a.take(&plan, q.scope.OperatorNamespace)
		a.Admission = admissionOf(&plan, from, s)
	}
	a.Checks = append([]checked{first}, checksOf(plan.Steps)...)
	if plan.Inject {
		a.injected = printed(inject.Apply(s.pod, plan))
	}
	if s.pod.UID != "" {
		a.Now = q.compare(s.pod, &plan, a.Admission)
	}
	return a, nil
}

// asks reports whether a plan's pod asks for the runtime.
func asks(plan inject.Plan) bool {
	return len(plan.Steps) > 0 && plan.Steps[len(plan.Steps)-1].Outcome != inject.Ended
}

// barrier is why the operator is not asked about pods of a namespace; nil when it is.
func (q *question) barrier(namespace string) *note {
	switch {
	case q.uninstalled:
		return &note{reasonNotInstalled, fmt.Sprintf("the cluster has no MutatingWebhookConfiguration %q, so the operator is not asked about pods", webhooksName)}
	case namespace == metav1.NamespaceSystem || namespace == q.scope.OperatorNamespace:
		return &note{reasonNamespaceLeftOut, fmt.Sprintf("the webhooks leave out the namespaces %s and %s", metav1.NamespaceSystem, q.scope.OperatorNamespace)}
	case !q.scope.Holds(namespace):
		return &note{reasonNamespaceLeftOut, "the operator's flag --watch-namespaces does not name the namespace"}
	}
	return nil
}

// take copies what a plan says.
func (a *account) take(plan *inject.Plan, operatorNamespace string) {
	a.Mode = plan.Mode
	a.Refusal, a.Warnings = tell(plan.Deny), tell(plan.Notes)
	if plan.Policy == "" {
		return
	}
	a.Policy = &served{
		Namespace: a.Namespace, Name: strings.TrimPrefix(plan.Policy, compile.ProfileID("")), Profile: plan.Policy,
		Reason: plan.Serving.Reason, Message: plan.Serving.Message,
	}
	if name, baseline := strings.CutPrefix(plan.Policy, compile.BaselineProfileID("")); baseline {
		a.Policy.Namespace, a.Policy.Name, a.Policy.Baseline = operatorNamespace, name, true
	}
}

func tell(notes []inject.Note) []note {
	out := make([]note, len(notes))
	for i, n := range notes {
		out[i] = note{n.Reason, n.Message}
	}
	return out
}

// checksOf are all checks of the chain, those that were not made among them.
func checksOf(steps []inject.Step) []checked {
	var out []checked
	for _, name := range inject.CheckNames() {
		c := checked{Check: name, Outcome: notMade, Notes: []note{}}
		if i := slices.IndexFunc(steps, func(s inject.Step) bool { return s.Check == name }); i >= 0 {
			c.Outcome, c.Notes = steps[i].Outcome.String(), tell(steps[i].Notes)
		}
		out = append(out, c)
	}
	return out
}

// admissionOf is what a plan does, as far as what it rests on is known.
func admissionOf(plan *inject.Plan, from *tolerant, s *subject) admission {
	_, labelled := s.pod.Labels[v1alpha1.InjectLabel]
	switch {
	case plan.Inject:
		return admissionInjected
	case !asks(*plan):
		if from.misses("namespaces") && !labelled {
			return admissionUnknown
		}
		return admissionUnasked
	case from.misses("visionpolicies") || from.misses("visionproviders"):
		return admissionUnknown
	case len(plan.Deny) > 0:
		return admissionRefused
	}
	return admissionWithout
}

// runtimeOf is what an injection left on a pod that has the runtime.
func runtimeOf(pod *corev1.Pod) (inject.Injection, bool) {
	named := func(c corev1.Container) bool { return c.Name == inject.ContainerName }
	has, err := inject.ParseInjection(pod.Annotations[v1alpha1.InjectionAnnotation])
	return has, err == nil && slices.ContainsFunc(pod.Spec.InitContainers, named)
}

// compare holds what a pod has against what it would get.
func (q *question) compare(pod *corev1.Pod, plan *inject.Plan, would admission) *now {
	has, injected := runtimeOf(pod)
	n := &now{Injected: injected, Profile: has.Profile, Hash: has.Hash, Image: has.Image, Differs: []string{}}
	switch {
	case would == admissionUnknown:
		n.State = stateUnknown
	case injected && !plan.Inject:
		n.State = stateLeftover
	case plan.Inject && !injected:
		n.State = stateMissing
	case !injected:
		n.State = stateWithout
	case has.Hash == plan.Hash && has.Profile == plan.Profile:
		n.State = stateCurrent
	default:
		n.State, n.Differs = stateOutdated, differences(has, plan)
		if !q.settingsKnown && has.Profile == plan.Profile {
			n.State = stateUnknown // the operator's settings may be what differs
		}
	}
	return n
}

// differences names what an injection has otherwise than a plan.
func differences(has inject.Injection, plan *inject.Plan) []string {
	var names []string
	if has.Profile != plan.Profile {
		names = append(names, "profile")
	}
	if has.Image != plan.Container.Image {
		names = append(names, "image")
	}
	if len(names) == 0 {
		names = []string{"container"}
	}
	return names
}

// printed is a pod without what only the API server writes.
func printed(pod *corev1.Pod) *corev1.Pod {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.ManagedFields = nil
	pod.Status = corev1.PodStatus{}
	return pod
}

// falls reports whether a pod has, or would have, no runtime although it may ask,
// and whether that is only not known.
func (a *account) falls() (without, unknown bool) {
	switch {
	case a.Now != nil && a.Now.Injected:
		return false, false
	case a.Admission == admissionUnknown:
		return false, true
	case a.Now != nil && a.Now.State == stateMissing:
		return true, false
	}
	return a.Admission != admissionInjected && a.Admission != admissionUnasked, false
}

// withoutError is pods that do not get the runtime, and those of which nobody can
// tell.
type withoutError struct{ without, unknown []string }

// Error names the pods.
func (e *withoutError) Error() string {
	var parts []string
	if len(e.without) > 0 {
		parts = append(parts, "without the vision runtime: "+strings.Join(e.without, ", "))
	}
	if len(e.unknown) > 0 {
		parts = append(parts, "not known: "+strings.Join(e.unknown, ", "))
	}
	return "explaining: " + strings.Join(parts, "; ")
}

// shortfallOf is what makes the exit code 1.
func shortfallOf(accounts []account) error {
	e := &withoutError{}
	for i := range accounts {
		a := &accounts[i]
		name := fmt.Sprintf("%s %s/%s", a.Kind, a.Namespace, a.Name)
		switch without, unknown := a.falls(); {
		case without:
			e.without = append(e.without, name)
		case unknown:
			e.unknown = append(e.unknown, name)
		}
	}
	if len(e.without)+len(e.unknown) == 0 {
		return nil
	}
	return e
}
