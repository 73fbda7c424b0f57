// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"

	corev1 "k8s.io/api/core/v1"
)

// Decide judges a pod by the checks, in order. The gates ask whether the runtime
// is asked for and by which policy; the first that objects ends the chain. All
// later checks are made whatever they find, so that a refusal names every problem
// at once.
//
// What a problem means depends on the policy's admission.mode: Enforce refuses the
// pod, Warn lets it be with warnings, Off lets it be silently. An obstacle, such as
// hostNetwork, leaves the pod without the runtime where it is not refused; a lack,
// such as a missing key, does not.
func Decide(in Input) Plan {
	d := &decision{Input: in, mode: v1alpha1.AdmissionWarn}
	for _, gate := range gates {
		d.begin(gate.name)
		if !gate.passes(d) {
			return d.stopped()
		}
	}
	for _, c := range checks {
		d.begin(c.name)
		c.look(d)
	}
	return d.concluded()
}

// gate is a check that may end the chain.
type gate struct {
	name   string
	passes func(*decision) bool
}

// check is one that never ends it.
type check struct {
	name string
	look func(*decision)
}

// gates and checks are the chain. The gates before Policy are silent or speak for
// every policy; what comes after obeys the policy's admission.mode.
var (
	gates = []gate{
		{"OptIn", optedIn},
		{"MirrorPod", notMirror},
		{"Policy", servedByPolicy},
		{"Profile", hasProfile},
	}
	checks = []check{
		{"OperatingSystem", checkWindows},
		{"HostNetwork", checkHostNetwork},
		{"Names", checkNames},
		{"Ports", checkPorts},
		{"Workspaces", chooseWorkspaces},
		{"Route", checkRoute},
		{"Credentials", checkCredentials},
	}
)

// CheckNames are the names of all checks, in order.
func CheckNames() []string {
	var names []string
	for _, g := range gates {
		names = append(names, g.name)
	}
	for _, c := range checks {
		names = append(names, c.name)
	}
	return append(names, containerStep)
}

// containerStep is the name of the last step, in which the container is made.
const containerStep = "Container"

// decision is what the chain gathers on its way.
type decision struct {
	Input
	mode v1alpha1.AdmissionMode
	// spoken says that the mode is a policy's.
	spoken  bool
	policy  string
	serving compile.Verdict
	profile *router.Profile
	verdict compile.PolicyVerdict
	shape   compile.PodProfile
	work    workspaces
	// volumesByName are the pod's, for chooseWorkspaces.
	volumesByName map[string]*corev1.Volume
	keys          []Key

	steps []Step
	// notes are what the author of an injected pod is told; obstacles and lacks
	// are what speaks against the pod.
	notes, obstacles, lacks []Note
	// incomplete becomes Plan.Incomplete.
	incomplete bool
}

func (d *decision) begin(check string) {
	d.steps = append(d.steps, Step{Check: check, Outcome: Passed})
}

// record keeps a finding in the present step, and raises its outcome.
func (d *decision) record(o Outcome, reason Reason, message string, args ...any) Note {
	step := &d.steps[len(d.steps)-1]
	note := Note{Reason: reason, Message: fmt.Sprintf(message, args...)}
	step.Notes = append(step.Notes, note)
	step.Outcome = max(step.Outcome, o)
	return note
}

// tell is something that the pod's author should know.
func (d *decision) tell(reason Reason, message string, args ...any) {
	d.notes = append(d.notes, d.record(Noted, reason, message, args...))
}

// obstruct is why the runtime cannot stand beside the pod.
func (d *decision) obstruct(reason Reason, message string, args ...any) {
	d.obstacles = append(d.obstacles, d.record(Failed, reason, message, args...))
}

// lack is why the policy cannot serve the pod as it is.
func (d *decision) lack(reason Reason, message string, args ...any) {
	d.lacks = append(d.lacks, d.record(Failed, reason, message, args...))
}

// stop ends the chain for a reason that the pod's author is told.
func (d *decision) stop(reason Reason, message string, args ...any) bool {
	d.obstacles = append(d.obstacles, d.record(Failed, reason, message, args...))
	return false
}

// silently ends the chain for a reason that is nobody's mistake.
func (d *decision) silently(reason Reason, message string) bool {
	d.record(Ended, reason, "%s", message)
	return false
}

// stopped is the plan of a chain that a gate ended.
func (d *decision) stopped() Plan {
	if !d.spoken && len(d.obstacles) > 0 && d.NamespaceLabels[v1alpha1.EnforceLabel] == "true" {
		// No policy's admission.mode speaks, and the namespace wants no pod without
		// the runtime that it asked for.
		d.mode = v1alpha1.AdmissionEnforce
	}
	return d.refused()
}

// refused is the plan that leaves the pod as it is.
func (d *decision) refused() Plan {
	plan := Plan{Policy: d.policy, Serving: d.serving, Incomplete: d.incomplete, Keys: d.keys, Steps: d.steps}
	problems := slices.Concat(d.obstacles, d.lacks)
	if len(problems) > 0 {
		plan.Mode = d.mode
	}
	switch {
	case len(problems) == 0 || d.mode == v1alpha1.AdmissionOff:
	case d.mode == v1alpha1.AdmissionEnforce:
		plan.Deny = problems
	default:
		problems[0].Message += "; the pod has no vision runtime"
		plan.Notes = slices.Concat(problems, d.notes)
	}
	return plan
}

// concluded is the plan after all checks.
func (d *decision) concluded() Plan {
	if len(d.obstacles) > 0 || len(d.lacks) > 0 && d.mode == v1alpha1.AdmissionEnforce {
		return d.refused()
	}
	d.begin(containerStep)
	plan := Plan{
		Inject:      true,
		Policy:      d.policy,
		Serving:     d.serving,
		Mode:        d.mode,
		Incomplete:  d.incomplete,
		Profile:     d.profile.ID,
		Container:   d.container(),
		Volumes:     d.volumes(),
		PullSecrets: d.Settings.PullSecrets,
		Env:         agentEnv(d.shape.MCP),
		SetBaseURLs: d.shape.SetBaseURLs,
		Keys:        d.keys,
	}
	plan.Hash = hash(&plan)
	d.compareWithEarlier(plan.Hash)
	if d.mode != v1alpha1.AdmissionOff {
		plan.Notes = slices.Concat(d.lacks, d.notes)
	}
	plan.Steps = d.steps
	return plan
}

// compareWithEarlier says what an earlier injection of the pod was, for who reads the steps.
func (d *decision) compareWithEarlier(hash string) {
	switch before, ok := injectionOf(d.Pod); {
	case !ok:
	case before.Hash == hash:
		d.record(Passed, ReasonAlreadyInjected, "the pod has this container already; it is left as it is, and what is missing is completed")
	default:
		d.record(Passed, ReasonOutdatedInjection, "the pod has an older container of the runtime, which is replaced")
	}
}
