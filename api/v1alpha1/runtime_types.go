// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Cache bounds the cache of observations.
type Cache struct {
	// TTL is how long an observation may be answered from the cache.
	//
	// Rules: above 0, at most 720h (30 days). Example: `1h`.
	// Default, applied by the compiler: `24h`.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}$') || (duration(self) > duration('0s') && duration(self) <= duration('720h'))`,message="must be above 0 and at most 720h"
	TTL *Duration `json:"ttl,omitempty"`

	// MaxEntries is the most observations that are kept; the least recently used go first.
	//
	// Rules: 1 to 1000000. Example: `256`.
	// Default, applied by the compiler: `1024`.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxEntries *int64 `json:"maxEntries,omitempty"`

	// MaxBytes is the most bytes that kept observations may take. With persist, it
	// also sizes the volume of each new pod; a pod that runs keeps the volume that
	// it was created with.
	//
	// Rules: 1 to 17179869184 (16 GiB). Example: `16777216`.
	// Default, applied by the compiler: `67108864` (64 MiB).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=17179869184
	MaxBytes *int64 `json:"maxBytes,omitempty"`

	// Persist keeps observations on the pod's cache volume as well, an emptyDir, so
	// that they outlive a restart of the runtime's container, though not the pod.
	// Uploaded images are kept there in any case.
	//
	// Example: `true`. Default, applied by the compiler: `false`.
	//
	// +optional
	Persist *bool `json:"persist,omitempty"`
}

// Runtime sets up the runtime beside the pod.
type Runtime struct {
	// Workspaces are the directories in which images may be read. In a pod they
	// are the agent container's own volume mounts, seen by the runtime at the
	// same paths and read-only. A pod's annotation visionoperator.dev/workspaces
	// may narrow the list. An empty list is refused: it would let no path be read.
	//
	// Rules: 1 to 16 different absolute paths in their shortest form, without
	// commas and colons; not /, and nothing that is, holds or lies in /proc,
	// /sys, /dev, /run or /var/run. A pod's creation warns of further places
	// that the runtime's own container needs, such as /etc.
	// Example: `[/workspace]`. Default, applied by the webhook: the writable
	// emptyDir and persistent volume mounts of the agent's container.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:XValidation:rule=`self.matches(r'^/$|^(?:/[^/,:\x00-\x1f\x7f]+)+$') && !self.matches('/[.]{1,2}(?:/|$)')`,message="a workspace must be an absolute path in its shortest form, such as /workspace: no trailing slash, no . or .., no commas or colons"
	// +kubebuilder:validation:items:XValidation:rule=`!self.matches('^/(?:(?:proc|sys|dev|run|var/run)(?:/.*)?|var)?$')`,message="a workspace must not be /, nor be, hold or lie in /proc, /sys, /dev, /run or /var/run, where the system and secrets are"
	Workspaces []string `json:"workspaces,omitzero"`

	// Proxy sets up the transparent model proxy, through which an agent's
	// unchanged SDK sees the images that its tools read.
	//
	// Example: `{enabled: true, setBaseURLs: true}`.
	//
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// MCP serves the tool ViewImage over MCP, at /mcp of the runtime.
	//
	// Example: `false`. Default, applied by the compiler: `true`.
	//
	// +optional
	MCP *bool `json:"mcp,omitempty"`

	// Resources are the runtime container's requests and limits. They are left
	// out in pods with pod-level resources, and made equal in Guaranteed pods.
	//
	// Rules: no claims; cpu, memory and ephemeral-storage, nothing else.
	// Example: `{requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 256Mi}}`.
	// Default: the operator's own setting.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.claims)`,message="the runtime's container takes no resource claims"
	// +kubebuilder:validation:XValidation:rule=`!has(self.requests) || self.requests.size() == ['cpu', 'memory', 'ephemeral-storage'].filter(r, r in self.requests).size()`,fieldPath=`.requests`,message="the runtime's container takes cpu, memory and ephemeral-storage, nothing else"
	// +kubebuilder:validation:XValidation:rule=`!has(self.limits) || self.limits.size() == ['cpu', 'memory', 'ephemeral-storage'].filter(r, r in self.limits).size()`,fieldPath=`.limits`,message="the runtime's container takes cpu, memory and ephemeral-storage, nothing else"
	// +kubebuilder:validation:XValidation:rule=`!has(self.requests) || ['cpu', 'memory', 'ephemeral-storage'].all(r, !(r in self.requests) || isQuantity(string(self.requests[r])))`,fieldPath=`.requests`,message="must be quantities such as 100m or 64Mi"
	// +kubebuilder:validation:XValidation:rule=`!has(self.limits) || ['cpu', 'memory', 'ephemeral-storage'].all(r, !(r in self.limits) || isQuantity(string(self.limits[r])))`,fieldPath=`.limits`,message="must be quantities such as 100m or 64Mi"
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// RunAsUser is the user ID of the runtime's container beside agents that say
	// none themselves. The agent's own, of its container or its pod, comes first:
	// nobody else can read its files.
	//
	// Rules: 0 to 2147483647. Example: `1000`. Default: the platform's choice,
	// else that of the runtime's image, 65532.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// LogLevel is how much the runtime logs: debug, info, warn or error. No level
	// logs image bytes or keys.
	//
	// Example: `debug`. Default, applied by the compiler: `info`.
	//
	// +optional
	LogLevel *LogLevel `json:"logLevel,omitempty"`
}

// Proxy sets up the transparent model proxy.
type Proxy struct {
	// Enabled serves the proxy beside the tool.
	//
	// Example: `true`. Default, applied by the compiler: `false`.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// SetBaseURLs puts the proxy's addresses into the agent's environment, as
	// OPENAI_BASE_URL, ANTHROPIC_BASE_URL and GOOGLE_GEMINI_BASE_URL, with
	// placeholder keys. What the user sets is never overwritten.
	//
	// Example: `true`. Default, applied by the compiler: `false`.
	//
	// +optional
	SetBaseURLs *bool `json:"setBaseURLs,omitempty"`

	// Passthrough opens further paths of the upstreams, sent as they are. Paths
	// that neither the proxy knows nor a rule opens are refused.
	//
	// Rules: at most 32. Example: `[{method: POST, path: /openai/v1/embeddings}]`. Default: none.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Passthrough []ProxyPassthroughRule `json:"passthrough,omitempty"`
}

// ProxyPassthroughRule opens further paths of an upstream.
type ProxyPassthroughRule struct {
	// Method is the HTTP method. Example: `GET`.
	//
	// +required
	// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE
	Method string `json:"method"`

	// Path is a glob of the path at the runtime: * stands for any run of
	// characters, slashes included, ? for any one.
	//
	// Rules: begins with a slash; at most 1024 printable ASCII characters; no
	// segment . or .., no # and no percent-encoding. Example: `/openai/v1/files/*`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self.matches('^/[!-~]*$') && !self.matches('[#%]|/[.]{1,2}(?:/|$)')`,message="must be a path that begins with a slash, of printable ASCII characters, without . and .. segments, # and %"
	Path string `json:"path"`
}

// LogLevel is how much the runtime logs.
//
// +kubebuilder:validation:Enum=debug;info;warn;error
type LogLevel string

// The levels.
const (
	// LogLevelDebug: besides, which models were considered for a call, and why.
	LogLevelDebug LogLevel = "debug"
	// LogLevelInfo: each call's outcome and each router document that comes into use.
	LogLevelInfo LogLevel = "info"
	// LogLevelWarn: what may need attention.
	LogLevelWarn LogLevel = "warn"
	// LogLevelError: what failed.
	LogLevelError LogLevel = "error"
)
