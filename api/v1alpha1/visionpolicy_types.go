// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VisionPolicy is what agents' pods may do with images: which models look, how
// large an image and a request may be, how images enter a conversation, and
// how the runtime beside the pod is set up.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vpol,categories=vision
type VisionPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec VisionPolicySpec `json:"spec"`
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

// VisionPolicySpec is what the platform team declares.
type VisionPolicySpec struct {
	PodSelector       *metav1.LabelSelector `json:"podSelector,omitempty"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	Providers         []ProviderReference   `json:"providers,omitempty"`
	DefaultModel      *string               `json:"defaultModel,omitempty"`
	FallbackModels    []string              `json:"fallbackModels,omitempty"`
	AllowedModels     []string              `json:"allowedModels,omitempty"`
	PerCallModel      *PerCallModel         `json:"perCallModel,omitempty"`
	Limits            *Limits               `json:"limits,omitempty"`
	Quotas            []Quota               `json:"quotas,omitempty"`
	Injection         *Injection            `json:"injection,omitempty"`
	Cache             *Cache                `json:"cache,omitempty"`
	Runtime           *Runtime              `json:"runtime,omitempty"`
	Admission         *Admission            `json:"admission,omitempty"`
}

// ProviderReference names a VisionProvider.
type ProviderReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Alias     string `json:"alias,omitempty"`
}

// PerCallModel says whether a call may name its model.
type PerCallModel string

// The values.
const (
	PerCallModelAllowed PerCallModel = "Allowed"
	PerCallModelDenied  PerCallModel = "Denied"
)

// Limits bound images and requests.
type Limits struct {
	Image   *ImageLimits   `json:"image,omitempty"`
	Request *RequestLimits `json:"request,omitempty"`
}

// ImageLimits bound each image.
type ImageLimits struct {
	MaxBytes   *int64      `json:"maxBytes,omitempty"`
	MaxPixels  *int64      `json:"maxPixels,omitempty"`
	MediaTypes []string    `json:"mediaTypes,omitempty"`
	OnOversize *OnOversize `json:"onOversize,omitempty"`
}

// OnOversize says what becomes of an image over a limit.
type OnOversize string

// The values.
const (
	OnOversizeRefuse    OnOversize = "Refuse"
	OnOversizeDownscale OnOversize = "Downscale"
)

// RequestLimits bound one request.
type RequestLimits struct {
	MaxDistinctImages  *int64 `json:"maxDistinctImages,omitempty"`
	MaxTotalImageBytes *int64 `json:"maxTotalImageBytes,omitempty"`
	MaxProbedPaths     *int64 `json:"maxProbedPaths,omitempty"`
	MaxImageTokens     *int64 `json:"maxImageTokens,omitempty"`
	MaxBodyBytes       *int64 `json:"maxBodyBytes,omitempty"`
}

// Quota bounds what is spent in a window of time.
type Quota struct {
	Scope          QuotaScope      `json:"scope"`
	Window         Duration        `json:"window"`
	Observations   *int64          `json:"observations,omitempty"`
	ImageTokens    *int64          `json:"imageTokens,omitempty"`
	Cost           string          `json:"cost,omitempty"`
	Mode           *QuotaMode      `json:"mode,omitempty"`
	OnStoreFailure *OnStoreFailure `json:"onStoreFailure,omitempty"`
}

// QuotaScope is who shares a quota.
type QuotaScope string

// The scopes.
const (
	QuotaScopePod       QuotaScope = "Pod"
	QuotaScopePolicy    QuotaScope = "Policy"
	QuotaScopeNamespace QuotaScope = "Namespace"
)

// QuotaMode says whether a quota refuses or only counts.
type QuotaMode string

// The modes.
const (
	QuotaModeEnforce QuotaMode = "Enforce"
	QuotaModeShadow  QuotaMode = "Shadow"
)

// OnStoreFailure says what happens while the store of counters cannot be reached.
type OnStoreFailure string

// The values.
const (
	OnStoreFailureAllow OnStoreFailure = "Allow"
	OnStoreFailureDeny  OnStoreFailure = "Deny"
)

// Injection says how images enter a conversation.
type Injection struct {
	Mode              *InjectionMode     `json:"mode,omitempty"`
	Tools             []string           `json:"tools,omitempty"`
	ExcludeTools      []string           `json:"excludeTools,omitempty"`
	PathArguments     []string           `json:"pathArguments,omitempty"`
	WaitFor           *WaitFor           `json:"waitFor,omitempty"`
	Keep              *Keep              `json:"keep,omitempty"`
	MarkdownImages    *MarkdownImages    `json:"markdownImages,omitempty"`
	Template          *InjectionTemplate `json:"template,omitempty"`
	ObservationPrompt string             `json:"observationPrompt,omitempty"`
}

// InjectionMode says in what form an image is shown.
type InjectionMode string

// The modes.
const (
	InjectionAuto        InjectionMode = "Auto"
	InjectionImage       InjectionMode = "Image"
	InjectionObservation InjectionMode = "Observation"
	InjectionOff         InjectionMode = "Off"
)

// WaitFor says which tool calls must have answers first.
type WaitFor string

// The values.
const (
	WaitForAllToolCalls    WaitFor = "AllToolCalls"
	WaitForVisionToolCalls WaitFor = "VisionToolCalls"
)

// Keep says how long an image stays in a conversation.
type Keep string

// The values.
const (
	KeepThread      Keep = "Thread"
	KeepCurrentTurn Keep = "CurrentTurn"
)

// MarkdownImages says what becomes of Markdown image links in human messages.
type MarkdownImages string

// The values.
const (
	MarkdownImagesAttach MarkdownImages = "Attach"
	MarkdownImagesOff    MarkdownImages = "Off"
)

// InjectionTemplate is the text around shown images.
type InjectionTemplate struct {
	Heading     string `json:"heading,omitempty"`
	Item        string `json:"item,omitempty"`
	Unavailable string `json:"unavailable,omitempty"`
}

// Cache bounds the cache of observations.
type Cache struct {
	TTL        *Duration `json:"ttl,omitempty"`
	MaxEntries *int64    `json:"maxEntries,omitempty"`
	MaxBytes   *int64    `json:"maxBytes,omitempty"`
	Persist    *bool     `json:"persist,omitempty"`
}

// Runtime sets up the runtime beside the pod.
type Runtime struct {
	Workspaces []string                     `json:"workspaces,omitempty"`
	Proxy      *Proxy                       `json:"proxy,omitempty"`
	MCP        *bool                        `json:"mcp,omitempty"`
	Resources  *corev1.ResourceRequirements `json:"resources,omitempty"`
	RunAsUser  *int64                       `json:"runAsUser,omitempty"`
	LogLevel   *LogLevel                    `json:"logLevel,omitempty"`
}

// Proxy sets up the transparent model proxy.
type Proxy struct {
	Enabled     *bool                  `json:"enabled,omitempty"`
	SetBaseURLs *bool                  `json:"setBaseURLs,omitempty"`
	Passthrough []ProxyPassthroughRule `json:"passthrough,omitempty"`
}

// ProxyPassthroughRule opens further paths of an upstream.
type ProxyPassthroughRule struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

// LogLevel is how much the runtime logs.
type LogLevel string

// The levels.
const (
	LogLevelDebug LogLevel = "debug"
	LogLevelInfo  LogLevel = "info"
	LogLevelWarn  LogLevel = "warn"
	LogLevelError LogLevel = "error"
)

// Admission says what pod admission does when the policy cannot serve the pod.
type Admission struct {
	Mode *AdmissionMode `json:"mode,omitempty"`
}

// AdmissionMode is one of Enforce, Warn, Off.
type AdmissionMode string

// The modes.
const (
	AdmissionEnforce AdmissionMode = "Enforce"
	AdmissionWarn    AdmissionMode = "Warn"
	AdmissionOff     AdmissionMode = "Off"
)

// VisionPolicyStatus is what became of a policy.
type VisionPolicyStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// DefaultRoute is the route that a call without a model takes, provider@endpoint/model.
	DefaultRoute string `json:"defaultRoute,omitempty"`
	// Candidates are the routes that were considered, in order of preference, at most 64.
	Candidates []RouteCandidate `json:"candidates,omitempty"`
	// Router is the published router that carries this policy.
	Router *RouterStatus `json:"router,omitempty"`
	// Pods counts the pods that the policy serves.
	Pods *PodCounts `json:"pods,omitempty"`
}

// RouteCandidate is one route and why it can, or cannot, serve.
type RouteCandidate struct {
	Route  string `json:"route"`
	Usable bool   `json:"usable"`
	Reason string `json:"reason"`
}

// RouterStatus names the published router.
type RouterStatus struct {
	ConfigMap string `json:"configMap"`
	Digest    string `json:"digest"`
}

// PodCounts counts pods.
type PodCounts struct {
	Matched  int32 `json:"matched"`
	Outdated int32 `json:"outdated"`
}
