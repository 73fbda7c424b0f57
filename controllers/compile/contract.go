// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compile turns the objects that concern one namespace into its router
// document and a verdict on each object. It is pure: the same objects, in any
// order, give the same bytes; there is no clock, client, context or log.
//
// The controller, the admission webhook and `kubectl vision render` all call
// Compile, so that what is reviewed, admitted and published is one thing.
package compile

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Input is everything that the router of one namespace depends on.
type Input struct {
	// Namespace is the namespace to compile for, and NamespaceLabels its labels.
	Namespace       string
	NamespaceLabels map[string]string
	// OperatorNamespace is where baselines may live.
	OperatorNamespace string
	// Policies are the VisionPolicies of Namespace and the baselines of
	// OperatorNamespace; others are ignored.
	Policies []v1alpha1.VisionPolicy
	// Providers are the VisionProviders of Namespace and those of other
	// namespaces that a policy refers to; others are ignored.
	Providers []v1alpha1.VisionProvider
}

// Output is a namespace's router document and what was decided on the way.
type Output struct {
	// Document is never nil. Without a policy it has no profiles.
	Document *router.Document
	// Pods is the pod-shaping part of each profile, by profile ID.
	Pods map[string]PodProfile
	// Policies holds a verdict on each policy of Namespace, by name.
	Policies map[string]PolicyVerdict
	// Providers holds a verdict on each provider considered, by "namespace/name".
	Providers map[string]ProviderVerdict
}

// PodProfile is what injection needs of a policy and the runtime does not.
type PodProfile struct {
	// Workspaces are absolute directories; empty means the agent's own writable volumes.
	Workspaces []string
	Resources  *corev1.ResourceRequirements
	RunAsUser  *int64
	LogLevel   v1alpha1.LogLevel
	// CacheMaxBytes is the most bytes of observations that the runtime keeps on
	// the cache volume; 0 when it keeps none there. Uploads and references come
	// on top: see router.MaxUploadBytes.
	CacheMaxBytes int64
	Admission     v1alpha1.AdmissionMode
	// MCP says whether the tool is served at /mcp.
	MCP bool
}

// Verdict is one decision in the terms of a condition: OK, Reason, Message.
type Verdict struct {
	OK      bool
	Reason  string
	Message string
}

// PolicyVerdict is what was decided of a policy.
type PolicyVerdict struct {
	Accepted     Verdict
	ResolvedRefs Verdict
	// Overridden is OK when another policy with an equal selector wins.
	Overridden Verdict
	// Profile is the ID of the profile it became; empty when left out.
	Profile string
	// DefaultRoute is the route of a call without a model; empty when no declared
	// model can serve. ResolvedRefs is OK all the same where runtimes may discover one.
	DefaultRoute string
	// Candidates are the routes considered, in order, the fallbacks last; at most 64.
	Candidates []v1alpha1.RouteCandidate
	// Redundant are sentences about fallbacks that add nothing, each with its field.
	Redundant []string
	// Unprogrammed are the fields that are set and that this build does not obey yet.
	Unprogrammed []string
}

// ProviderVerdict is what was decided of a provider.
type ProviderVerdict struct {
	Accepted Verdict
	// Unprogrammed are the fields that are set and that this build does not obey yet.
	Unprogrammed []string
}
