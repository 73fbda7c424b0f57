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
	"strings"

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
	// OperatorNamespace, whether or not they match; others are ignored.
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
	// Origins says where each field of a profile comes from, by profile ID, in the
	// order of the API's fields.
	Origins map[string][]Origin
	// Policies holds a verdict on each policy of Namespace, by name. Those of
	// OperatorNamespace's baselines tell what can be told without a namespace
	// that they match.
	Policies map[string]PolicyVerdict
	// Baselines holds a verdict on each baseline that serves in Namespace by
	// itself, by name: what it comes to there.
	Baselines map[string]PolicyVerdict
	// Providers holds a verdict on each provider considered, by "namespace/name":
	// those of Namespace, and those of others that permit a reference made to them.
	Providers map[string]ProviderVerdict
}

// Verdict is the verdict on what became a profile, or would have, by its ID.
func (o *Output) Verdict(profile string) PolicyVerdict {
	if name, ok := strings.CutPrefix(profile, baselineKind); ok {
		return o.Baselines[name]
	}
	return o.Policies[strings.TrimPrefix(profile, policyKind)]
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
	// SetBaseURLs says whether agents' SDKs are pointed at the proxy, which is on then.
	SetBaseURLs bool
}

// Verdict is one decision in the terms of a condition: OK, Reason, Message.
type Verdict struct {
	OK      bool
	Reason  string
	Message string
}

// PolicyVerdict is what was decided of a policy.
type PolicyVerdict struct {
	Accepted Verdict
	// ResolvedRefs is OK, with reason FallbackNotUsable, where fallbacks are
	// passed over: the policy is in force all the same.
	ResolvedRefs Verdict
	// Baseline says that the policy is for other namespaces. In its own it has no
	// profile, and no router there carries it.
	Baseline bool
	// Restrains says of a baseline that is not accepted that routers carry its
	// limits, its allow-list and its denials all the same.
	Restrains bool
	// Overridden is OK when another policy with an equal selector wins.
	Overridden Verdict
	// Profile is the ID of the profile it became; empty when left out.
	Profile string
	// DefaultRoute is the route of a call without a model; empty when no declared
	// model can serve. ResolvedRefs is OK all the same where runtimes may discover one.
	DefaultRoute string
	// DefaultProvider is the provider of DefaultRoute, "namespace/name".
	DefaultProvider string
	// Candidates are the routes considered, in order, the fallbacks last; at most 64.
	Candidates []v1alpha1.RouteCandidate
	// Redundant are sentences about routes that add nothing, fallbacks that are
	// named twice and defaults of a baseline that name nothing here, each with its field.
	Redundant []string
	// Unwise are sentences about what is legal and yet unwise or without effect, as
	// the providers and baselines are now; each begins with a field that the policy sets, or
	// might. What the policy alone tells is in validation.PolicyWarnings.
	Unwise []string
	// Unprogrammed are the fields that are set and that this build does not obey yet.
	Unprogrammed []string
}

// ProviderVerdict is what was decided of a provider.
type ProviderVerdict struct {
	Accepted Verdict
	// Unprogrammed are the fields that are set and that this build does not obey yet.
	Unprogrammed []string
}
