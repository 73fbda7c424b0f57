// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inject decides whether a pod gets the vision runtime beside it, what
// the runtime's container looks like there, and applies that to the pod. It is
// pure: a pod and the compiled objects of its namespace in, a pod out; there is
// no context, clock, client or log.
//
//	plan := inject.Decide(inject.Input{Pod: pod, …})
//	pod = inject.Apply(pod, plan)
//
// Apply(Apply(pod)) equals Apply(pod), also when other webhooks changed the pod
// in between.
package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// Input is everything that a decision depends on.
type Input struct {
	// Pod is as the API server sent it. It is never changed.
	Pod *corev1.Pod
	// Namespace is the namespace that the pod is created in; a pod in an
	// admission request need not name it itself.
	Namespace       string
	NamespaceLabels map[string]string
	// Policies are compile.Servers: the VisionPolicies of Namespace, then the
	// baselines that may serve there, the most specific first.
	Policies []v1alpha1.VisionPolicy
	// Compiled is compile's output for Namespace.
	Compiled compile.Output
	Settings Settings
	// MissingKeys says what is wrong with keys that the pod would mount, in the
	// terms of the condition CredentialsResolved. One that is not in it is good, or
	// was not looked at: see Plan.Keys.
	MissingKeys map[Key]Note
	// LimitRanges are the namespace's, into which the container is fitted.
	LimitRanges []corev1.LimitRange
}

// Settings are what the operator's administrator, and no tenant, decides about
// every injected container.
type Settings struct {
	// Image is the runtime's image, best with its digest.
	Image string
	// PullPolicy is left to the API server when empty.
	PullPolicy corev1.PullPolicy
	// PullSecrets are Secrets of the pod's namespace, added to the pod's own imagePullSecrets.
	PullSecrets []string
	// HTTPProxy, HTTPSProxy and NoProxy are the runtime's way to its providers;
	// empty ones are not set.
	HTTPProxy, HTTPSProxy, NoProxy string
	// CAConfigMap is a ConfigMap of the pod's namespace whose keys are PEM files
	// that the runtime trusts besides the public CAs; empty means none. A pod
	// whose namespace lacks it starts without.
	CAConfigMap string
	// Resources are what is asked for of resources that the policy does not speak of,
	// and DefaultResources of those of which neither speaks.
	Resources *corev1.ResourceRequirements
}

// Plan is what Apply does to a pod, and what its author is told.
type Plan struct {
	// Inject says whether the pod gets the runtime. Nothing but Deny, Notes, Policy,
	// Serving, Mode, Incomplete, Keys and Steps is set without it.
	Inject bool
	// Deny is why the pod must be refused, every problem at once; empty when it
	// may be created.
	Deny []Note
	// Notes are what the pod's author should know, shown as admission warnings.
	Notes []Note

	// Policy is the ID of what serves the pod, as Profile, also where it is not
	// accepted and became none; empty where nothing serves. Serving says why; it is
	// zero where the chain ended before.
	Policy  string
	Serving compile.Verdict
	// Mode is the admission.mode that was obeyed; empty where nobody asked for the
	// runtime.
	Mode v1alpha1.AdmissionMode

	// Incomplete says that the decision rests on an object that was not there or
	// not yet good, so that a fresher look at the API server may change it.
	Incomplete bool

	// Steps are the checks that were made, in order, and what each found.
	Steps []Step
	// Keys are the keys that the pod would mount, for who can look at them to say
	// in Input.MissingKeys what is wrong with them.
	Keys []Key

	// Profile is the ID of the profile in the router document that serves the pod.
	Profile string
	// Hash names Container and Volumes: "sha256:" and 64 hexadecimal digits.
	Hash string
	// Container is the whole desired container.
	Container corev1.Container
	// Volumes are the volumes that Container mounts besides the pod's own.
	Volumes []corev1.Volume
	// PullSecrets are added to the pod's.
	PullSecrets []string
	// Env is for the agent's containers.
	Env []corev1.EnvVar
	// SetBaseURLs points the SDKs of the agent's containers at the proxy.
	SetBaseURLs bool
}

// Step is one check of the chain.
type Step struct {
	// Check is its name; CheckNames are all.
	Check   string
	Outcome Outcome
	// Notes are what it found.
	Notes []Note
}

// Outcome is what a check came to. A greater one outweighs a lesser.
type Outcome int

// The outcomes of a check.
const (
	// Passed: nothing stands in the way.
	Passed Outcome = iota
	// Noted: the pod is served, and its author should know something.
	Noted
	// Failed: something is wrong; the policy's admission.mode says what follows.
	Failed
	// Ended: the runtime is not asked for here, and that is nobody's mistake.
	Ended
)

// String is the constant's name.
func (o Outcome) String() string {
	return [...]string{"Passed", "Noted", "Failed", "Ended"}[o]
}

// Note is one finding in the terms of a condition.
type Note struct {
	Reason  Reason
	Message string
}

// String is "reason: message".
func (n Note) String() string { return string(n.Reason) + ": " + n.Message }

// Reason names a finding; the constants are all there are, besides those of
// compile.Serving and of the conditions in the API.
type Reason string

// Why a pod is left as it is, silently: nobody asked for the runtime here.
const (
	// ReasonNotOptedIn: neither the pod nor its namespace has the label
	// visionoperator.dev/inject: enabled.
	ReasonNotOptedIn Reason = "NotOptedIn"
	// ReasonOptedOut: the pod's own label says disabled.
	ReasonOptedOut Reason = "OptedOut"
	// ReasonMirrorPod: the pod mirrors a file on a node; kubelet ignores changes.
	ReasonMirrorPod Reason = "MirrorPod"
)

// Why the runtime cannot stand beside a pod that asked for it.
const (
	// ReasonPolicyNotAccepted: the policy that serves the pod is invalid; its
	// condition Accepted says why.
	ReasonPolicyNotAccepted Reason = "PolicyNotAccepted"
	// ReasonHostNetwork: the pod shares the node's loopback, where the runtime
	// would serve every process of the node. Drop hostNetwork.
	ReasonHostNetwork Reason = "HostNetwork"
	// ReasonWindows: the runtime is a Linux container.
	ReasonWindows Reason = "Windows"
	// ReasonNameCollision: a container or volume of the pod's own has a name that
	// the runtime needs. Rename it.
	ReasonNameCollision Reason = "NameCollision"
	// ReasonPortCollision: a container of the pod declares TCP port 8970 or 8971.
	ReasonPortCollision Reason = "PortCollision"
	// ReasonWorkspaceConflict: containers mount different volumes at one
	// workspace, so a path does not say which file is meant.
	ReasonWorkspaceConflict Reason = "WorkspaceConflict"
)

// What the author of an injected pod should know. NoWorkspace and
// WorkspaceNotAllowed refuse the pod under admission.mode Enforce where the policy
// or the annotation names workspaces.
const (
	// ReasonNoWorkspace: no volume of the agent is a workspace, so images reach
	// the runtime by upload only.
	ReasonNoWorkspace Reason = "NoWorkspace"
	// ReasonWorkspaceRefused: a directory cannot be a workspace.
	ReasonWorkspaceRefused Reason = "WorkspaceRefused"
	// ReasonWorkspaceNotAllowed: the pod's annotation names a directory that the
	// policy does not list; annotations may only narrow.
	ReasonWorkspaceNotAllowed Reason = "WorkspaceNotAllowed"
	// ReasonCredentialNotMounted: a provider's key is in another namespace, which
	// a pod cannot mount; its models are refused with CredentialNotMounted.
	ReasonCredentialNotMounted Reason = "CredentialNotMounted"
	// ReasonRunsAsNonRoot: the agent runs as root and the namespace's Pod Security
	// forbids that to the runtime, so files that only root may read stay unread.
	ReasonRunsAsNonRoot Reason = "RunsAsNonRoot"
	// ReasonSharedProcesses: with shareProcessNamespace or hostPID, processes of
	// the runtime's user can read the provider keys out of its file system.
	ReasonSharedProcesses Reason = "SharedProcesses"
	// ReasonResourcesLeftToPod: the policy's resources are not set, since the pod
	// has resources as a whole.
	ReasonResourcesLeftToPod Reason = "ResourcesLeftToPod"
	// ReasonResourcesFitted: a LimitRange of the namespace does not allow what the
	// runtime would ask for, so it asks for what is allowed.
	ReasonResourcesFitted Reason = "ResourcesFitted"
)

// What an earlier injection of the pod was, told in its steps only.
const (
	// ReasonAlreadyInjected: by the same container.
	ReasonAlreadyInjected Reason = "AlreadyInjected"
	// ReasonOutdatedInjection: by another one.
	ReasonOutdatedInjection Reason = "OutdatedInjection"
)
