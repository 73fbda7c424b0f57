// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VisionPolicy is what agents' pods may do with images: which models look, how
// large an image and a request may be, how images enter a conversation, and
// how the runtime beside the pod is set up.
//
// One policy serves a pod: the one that the annotation visionoperator.dev/policy
// names, else one with a non-empty podSelector before one with an empty, then
// the older, then by name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vpol,categories=vision
// +kubebuilder:printcolumn:name="Default Route",type=string,JSONPath=`.status.defaultRoute`,description="The route that a call without a model takes."
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the object is valid and takes part in routers."
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`,description="Whether the published router carries this generation."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether every other condition is True."
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready, or is not."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VisionPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the platform team declares.
	//
	// +required
	Spec VisionPolicySpec `json:"spec"`

	// Status is what became of the policy. It is written by the operator only.
	//
	// +optional
	Status VisionPolicyStatus `json:"status,omitempty"`
}

// VisionPolicyList is a list of VisionPolicies.
//
// +kubebuilder:object:root=true
type VisionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VisionPolicy `json:"items"`
}

// VisionPolicySpec is what the platform team declares. Every field may be left
// out: `spec: {}` lets every opted-in pod of the namespace use every provider
// of the namespace within the built-in limits.
//
// +kubebuilder:validation:XValidation:rule=`has(self.namespaceSelector) == has(oldSelf.namespaceSelector)`,fieldPath=`.namespaceSelector`,reason=FieldValueForbidden,message="an ordinary policy cannot become a baseline, nor a baseline an ordinary policy: create another VisionPolicy and delete this one; the selector of a baseline may be changed"
type VisionPolicySpec struct {
	// PodSelector selects the pods that the policy serves, among those of its
	// namespace that opted in with the label visionoperator.dev/inject.
	//
	// Example: `{matchLabels: {app: agent}}`.
	// Default, applied by the compiler: empty, every pod that opted in.
	//
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// NamespaceSelector makes the policy a baseline: it is laid over the policies
	// of the namespaces whose labels match. The most specific default wins, the
	// lowest limit holds, a route must match every layer's allow-list, and any
	// denial denies. Of several baselines one whose namespaceSelector says something
	// is more specific than one whose selector is empty, then the older one, then by
	// name. A pod that no policy of its namespace selects is served by the first
	// baseline whose podSelector selects it; as a layer over policies a baseline
	// holds for all pods. It serves no pod by itself in the operator's own
	// namespace, kube-system, kube-public and kube-node-lease.
	//
	// Rules: accepted only in the operator's own namespace. An empty selector
	// matches every namespace. It may be changed, but neither added to a policy that
	// exists nor removed from it. Of a baseline that is not accepted, what it bounds
	// holds all the same: its allow-list, its limits and its denials.
	// Example: `{matchLabels: {vision: baseline}}`.
	// Absent: the policy is an ordinary one.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// Providers are the VisionProviders that the policy may use, in order of
	// preference. An empty list is refused: it would allow nothing.
	//
	// Rules: 1 to 32; the alias, or else the name, is unique, since it begins a route.
	// Example: `[{name: ocr}, {name: openai, namespace: models, alias: gpt}]`.
	// Default, applied by the compiler: every provider of the consuming
	// namespace, by name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule=`self.all(p, self.exists_one(q, (has(q.alias) ? q.alias : q.name) == (has(p.alias) ? p.alias : p.name)))`,message="the alias of a provider, or its name where it has none, must be unique: routes begin with it"
	Providers []ProviderReference `json:"providers,omitzero"`

	// DefaultModel is the route that a call without a model takes.
	//
	// Rules: provider@endpoint/model; or provider/model, the provider's first
	// endpoint; or auto, the first usable model by the order of providers,
	// endpoints and models. The provider is written as its alias, or its name.
	// A model that the provider does not declare is an error, unless the provider
	// has discovery: then each runtime finds out whether an endpoint has it. A
	// baseline's route that names nothing among the providers of the policy that it
	// is laid over does not count there.
	//
	// Example: `ocr@local/tesseract`. Default, applied by the compiler: `auto`.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=381
	// +kubebuilder:validation:XValidation:rule=`self == 'auto' || (self.matches(r'^[a-z0-9](?:[-a-z0-9_]{0,61}[a-z0-9])?(?:@[a-z0-9](?:[-a-z0-9_]{0,61}[a-z0-9])?)?/[^\x00-\x20\x7f]+$') && bytes(self.substring(self.indexOf('/') + 1)).size() <= 253)`,message="must be a route, provider@endpoint/model or provider/model: provider and endpoint of 1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or digit; the model of 1 to 253 bytes without white space; or auto"
	DefaultModel *string `json:"defaultModel,omitempty"`

	// FallbackModels are the routes to try, in order, when a call that names no
	// model failed in a way that may pass: no connection, a timeout, too many
	// requests, a server's own error. Only these are tried, each under the
	// allow-lists and its own limits; a model that a call names never falls back.
	// One that cannot serve is passed over, and status says why. An empty list says
	// that none is meant, whatever baselines name.
	//
	// Rules: at most 8 different routes; auto is not one of them, and the default
	// is not tried a second time.
	// Example: `[openai@eu/gpt-5.2]`. Default: none.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=381
	// +kubebuilder:validation:items:XValidation:rule=`(self.matches(r'^[a-z0-9](?:[-a-z0-9_]{0,61}[a-z0-9])?(?:@[a-z0-9](?:[-a-z0-9_]{0,61}[a-z0-9])?)?/[^\x00-\x20\x7f]+$') && bytes(self.substring(self.indexOf('/') + 1)).size() <= 253)`,message="must be a route, provider@endpoint/model or provider/model: provider and endpoint of 1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or digit; the model of 1 to 253 bytes without white space"
	// +kubebuilder:validation:XValidation:rule=`self.all(a, self.exists_one(b, a == b))`,message="a fallback must not be named twice"
	FallbackModels []string `json:"fallbackModels,omitempty"`

	// AllowedModels are globs of which a route must match one. They are matched
	// against the whole route, provider@endpoint/model: * stands for any run of
	// characters, slashes included, ? for any one. A baseline's globs are matched
	// against namespace/provider@endpoint/model, whatever aliases a tenant gives.
	// An empty list is refused: it would allow nothing.
	//
	// Rules: 1 to 64 different globs of at most 512 characters, without white space.
	// Example: `["ocr@*/*", "openai@eu/gpt-5*"]`. Absent: no restriction.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule=`self.matches(r'^[^\x00-\x20\x7f]+$')`,message="a glob must not hold white space or control characters: no route does"
	// +kubebuilder:validation:XValidation:rule=`self.size() > 0`,message="an empty allow-list would allow no model at all: name at least one glob, or leave the field out for no restriction"
	AllowedModels []string `json:"allowedModels,omitzero"`

	// PerCallModel says whether a call may name its model. Denied: every call
	// takes the default, and where that is auto, what a caller says of its own
	// model counts for nothing.
	//
	// Example: `Denied`. Default, applied by the compiler: `Allowed`.
	//
	// +optional
	PerCallModel *PerCallModel `json:"perCallModel,omitempty"`

	// Limits bound each image and each request. The lowest value of every layer holds.
	//
	// Example: `{image: {maxBytes: 5242880}, request: {maxDistinctImages: 4}}`.
	//
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// Quotas bound what is spent in windows of time. All of them hold at once.
	//
	// Rules: at most 8. Example: `[{scope: Pod, window: 1h, observations: 100}]`.
	// Default: none.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Quotas []Quota `json:"quotas,omitempty"`

	// Injection says how the images that an agent's tools read enter its conversation.
	//
	// Example: `{mode: Observation}`.
	//
	// +optional
	Injection *Injection `json:"injection,omitempty"`

	// Cache bounds the cache of observations that each runtime keeps.
	//
	// Example: `{ttl: 1h, maxEntries: 256}`.
	//
	// +optional
	Cache *Cache `json:"cache,omitempty"`

	// Runtime sets up the runtime beside the pod.
	//
	// Example: `{workspaces: [/workspace], logLevel: debug}`.
	//
	// +optional
	Runtime *Runtime `json:"runtime,omitempty"`

	// Admission says what pod admission does when the policy cannot serve the pod.
	//
	// Example: `{mode: Enforce}`.
	//
	// +optional
	Admission *Admission `json:"admission,omitempty"`
}

// ProviderReference names a VisionProvider.
type ProviderReference struct {
	// Name is the VisionProvider's name. Example: `openai`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$')`,message="the name of a VisionProvider is made of a-z, 0-9 and -, beginning and ending with a letter or digit"
	Name string `json:"name"`

	// Namespace is the VisionProvider's namespace. The provider's own
	// allowedNamespaces must permit the namespace of the pods that the policy
	// serves, unless a baseline names a provider of its own namespace. Whether a
	// provider that does not permit it exists is not told.
	//
	// Example: `models`. Default, applied by the compiler: the policy's own namespace.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$')`,message="a namespace is made of a-z, 0-9 and -, beginning and ending with a letter or digit"
	Namespace string `json:"namespace,omitempty"`

	// Alias is the name under which routes know the provider, so that providers
	// of equal names from different namespaces can be told apart.
	//
	// Rules: 1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or
	// digit. Example: `gpt`. Default, applied by the compiler: the name.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9](?:[-a-z0-9_]*[a-z0-9])?$')`,message="an alias is part of a route: a-z, 0-9, - and _, beginning and ending with a letter or digit"
	Alias string `json:"alias,omitempty"`
}

// PerCallModel says whether a call may name its model.
//
// +kubebuilder:validation:Enum=Allowed;Denied
type PerCallModel string

// The values.
const (
	// PerCallModelAllowed: a call may name any model that the allow-lists hold.
	PerCallModelAllowed PerCallModel = "Allowed"
	// PerCallModelDenied: every call takes the default.
	PerCallModelDenied PerCallModel = "Denied"
)

// Admission says what pod admission does when the policy cannot serve the pod.
type Admission struct {
	// Mode is Enforce, refuse the pod; Warn, admit it with a warning; Off, admit
	// it silently. Admitted pods run with the runtime, which refuses what the
	// policy does not grant.
	//
	// Example: `Enforce`. Default, applied by the compiler: `Warn`.
	//
	// +optional
	Mode *AdmissionMode `json:"mode,omitempty"`
}

// AdmissionMode is one of Enforce, Warn, Off.
//
// +kubebuilder:validation:Enum=Enforce;Warn;Off
type AdmissionMode string

// The modes.
const (
	// AdmissionEnforce: the pod is refused.
	AdmissionEnforce AdmissionMode = "Enforce"
	// AdmissionWarn: the pod is admitted with a warning.
	AdmissionWarn AdmissionMode = "Warn"
	// AdmissionOff: the pod is admitted silently.
	AdmissionOff AdmissionMode = "Off"
)

// VisionPolicyStatus is what became of a policy.
type VisionPolicyStatus struct {
	// Conditions are Accepted, ResolvedRefs, Programmed, Overridden and Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// DefaultRoute is the route that a call without a model takes,
	// provider@endpoint/model. Empty: no declared model can serve, which
	// ResolvedRefs explains; where it is True, each runtime looks among the models
	// that it discovers. A baseline's is the one of all namespaces that it serves;
	// empty where they differ.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	DefaultRoute string `json:"defaultRoute,omitempty"`

	// Candidates are the routes that were considered for a call without a model,
	// in order of preference, the fallbacks last; each with the reason why it can
	// serve or cannot; at most 64.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Candidates []RouteCandidate `json:"candidates,omitempty"`

	// Router is the published router that carries this policy. A baseline is
	// carried by many, and names none.
	//
	// +optional
	Router *RouterStatus `json:"router,omitempty"`

	// Pods counts the pods that the policy serves; a baseline's in all namespaces.
	// Written at most every 10 seconds; absent while there never was one.
	//
	// +optional
	Pods *PodCounts `json:"pods,omitempty"`
}

// RouteCandidate is one route and why it can, or cannot, serve.
type RouteCandidate struct {
	// Route is provider@endpoint/model.
	//
	// +required
	// +kubebuilder:validation:MaxLength=512
	Route string `json:"route"`

	// Usable says whether the route can serve, as far as the objects tell.
	//
	// +required
	Usable bool `json:"usable"`

	// Reason says why it can, or cannot: Usable; DiscoveredAtRuntime, the model is
	// not declared, and each runtime finds out whether the endpoint has it;
	// RouteNotFound; NotAllowed; LacksImageInput; CredentialNotShared, the provider
	// is another namespace's and its key stays there.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
}

// RouterStatus names the published router.
type RouterStatus struct {
	// ConfigMap is the name of the ConfigMap, in each served namespace.
	//
	// +required
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`

	// Digest is the SHA-256 of the document's bytes.
	//
	// +required
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest"`
}

// PodCounts counts pods.
type PodCounts struct {
	// Matched is how many pods the policy serves.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Matched int32 `json:"matched"`

	// Outdated is how many of them have yet to be told of the present router, which
	// passes in moments, or need a restart to obey the whole policy: they lack the
	// key of a provider that was added or changed since, have an older image of the
	// runtime, or would be served by another policy today.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Outdated int32 `json:"outdated"`

	// Missing is how many further pods asked for the runtime, would be served by
	// the policy, and run without it: they were created while the webhook could not
	// be reached, or before the label or the policy was there, or the runtime
	// cannot stand beside them. An Event at each pod says which. Absent when there
	// are none.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Missing int32 `json:"missing,omitempty"`
}
