// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package router is the contract between the control plane and the runtime:
// the router document, how it is parsed, validated and named, and the grammar
// of routes and globs that both sides must read alike. It imports nothing but
// the standard library.
//
// The controller compiles VisionProviders and VisionPolicies into one Document
// per namespace and publishes its bytes in the ConfigMap named ConfigMapName
// under Key. A document holds references to secrets and never a secret.
package router

import "slices"

// Where and how a document is published.
const (
	// Version is the only document version that this build reads and writes.
	Version = "router/v1"
	// ConfigMapName is the ConfigMap that holds a namespace's document.
	ConfigMapName = "vision-router"
	// Key is the ConfigMap's key, and the file's name once mounted.
	Key = "router.json"
	// MaxBytes is the largest document that is published: 800 KiB, which leaves
	// room below etcd's default request limit of 1.5 MiB and the ConfigMap limit of 1 MiB.
	MaxBytes = 800 << 10
)

// Document is everything that the runtimes of one namespace may do.
type Document struct {
	// Version is always "router/v1".
	Version string `json:"version"`
	// Namespace is the namespace that the document serves.
	Namespace string `json:"namespace"`
	// Profiles are the effective policies, sorted by ID. No profile means that
	// nothing is granted.
	Profiles []Profile `json:"profiles"`
	// Providers are what the profiles refer to, sorted by Name.
	Providers []Provider `json:"providers"`
}

// Profile is one effective policy with every default filled in.
type Profile struct {
	// ID is "policy/<name>" or "baseline/<name>".
	ID string `json:"id"`
	// From is the object behind it, "namespace/name".
	From string `json:"from"`
	// DefaultModel is a Route in canonical form, or Auto.
	DefaultModel string `json:"defaultModel"`
	// FallbackModels are canonical routes, tried in order for the default only.
	FallbackModels []string `json:"fallbackModels,omitempty"`
	// Providers are the providers that the profile may use, in order of preference.
	Providers []ProviderUse `json:"providers"`
	// Allow are the allow-lists of every layer: a route must match each of them.
	Allow []AllowList `json:"allow,omitempty"`
	// PerCallModel is PerCallAllowed or PerCallDenied.
	PerCallModel string         `json:"perCallModel"`
	Limits       Limits         `json:"limits"`
	Cache        Cache          `json:"cache"`
	Injection    Injection      `json:"injection"`
	Runtime      RuntimeOptions `json:"runtime"`
}

// Values of Profile.PerCallModel.
const (
	PerCallAllowed = "Allowed"
	PerCallDenied  = "Denied"
)

// Auto as a DefaultModel leaves the choice to the order of Profile.Providers.
const Auto = "auto"

// ProviderUse puts a provider into a profile under the name that routes use.
type ProviderUse struct {
	// Alias is the first part of a route; unique within the profile.
	Alias string `json:"alias"`
	// Provider is the Name of an entry of Document.Providers.
	Provider string `json:"provider"`
}

// AllowList is the list of one layer.
type AllowList struct {
	// From is the object that set it, "namespace/name".
	From string `json:"from"`
	// Globs match routes; see Glob. Never empty.
	Globs []string `json:"globs"`
	// Canonical makes the globs match "namespace/provider@endpoint/model" in
	// place of "alias@endpoint/model".
	Canonical bool `json:"canonical,omitempty"`
}

// Limits are what a request may hold. Zero is not "unlimited": every number is
// set, but for MaxImageTokens.
type Limits struct {
	Image   ImageLimits   `json:"image"`
	Request RequestLimits `json:"request"`
}

// ImageLimits bound each image.
type ImageLimits struct {
	MaxBytes  int64 `json:"maxBytes"`
	MaxPixels int64 `json:"maxPixels"`
	// MediaTypes are the accepted types. Empty means DefaultMediaTypes and what
	// the chosen model's own limits list; a list of a policy only narrows that.
	MediaTypes []string `json:"mediaTypes,omitempty"`
	// OnOversize is OversizeRefuse or OversizeDownscale; empty is OversizeRefuse.
	OnOversize string `json:"onOversize,omitempty"`
}

// Values of ImageLimits.OnOversize.
const (
	// OversizeRefuse: an image over a limit is refused, with the numbers.
	OversizeRefuse = "Refuse"
	// OversizeDownscale: a smaller copy is made before the image is first sent.
	OversizeDownscale = "Downscale"
)

// DefaultMediaTypes are accepted where no policy says otherwise.
func DefaultMediaTypes() []string {
	return []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
}

// RequestLimits bound one request.
type RequestLimits struct {
	MaxDistinctImages  int64 `json:"maxDistinctImages"`
	MaxTotalImageBytes int64 `json:"maxTotalImageBytes"`
	MaxProbedPaths     int64 `json:"maxProbedPaths"`
	MaxBodyBytes       int64 `json:"maxBodyBytes"`
	// MaxImageTokens bounds what the images of a request cost together, as
	// estimated; 0 is no limit.
	MaxImageTokens int64 `json:"maxImageTokens,omitempty"`
}

// Cache bounds the cache of observations.
type Cache struct {
	// TTL is a duration such as "24h0m0s".
	TTL        string `json:"ttl"`
	MaxEntries int64  `json:"maxEntries"`
	MaxBytes   int64  `json:"maxBytes"`
	// Persist keeps observations in the runtime's cache directory as well, so
	// that they outlive its restarts.
	Persist bool `json:"persist,omitempty"`
}

// What a runtime keeps in its cache directory beside observations, in bytes of
// file content. The control plane sizes the pod's volume by them.
const (
	// MaxUploadBytes bounds uploaded images: 64 MiB, three of the largest that
	// are accepted by default.
	MaxUploadBytes = 64 << 20
	// MaxReferenceBytes bounds the records of images that were looked at or
	// uploaded: 16 MiB, 4096 of them, each in a block of 4 KiB.
	MaxReferenceBytes = 16 << 20
	// MaxPinnedBytes bounds what conversations were shown, so that it can be shown
	// again: 256 MiB, of which at least 208 are images, some hundred screenshots, and
	// the rest the records of 65,536 of them. An image that had to go is read again
	// where it came from.
	MaxPinnedBytes = 256 << 20
)

// RuntimeOptions are the parts of a policy that the runtime itself obeys. What
// only shapes the pod (workspaces, resources, user) is not here: the pod's own
// command line says it.
type RuntimeOptions struct {
	// MCP serves the ViewImage tool at /mcp.
	MCP bool `json:"mcp"`
	// Proxy is the model proxy; nil serves none.
	Proxy *Proxy `json:"proxy,omitempty"`
}

// Proxy sets up the model proxy.
type Proxy struct {
	// Passthrough opens further paths of the upstreams, sent as they are.
	Passthrough []PassthroughRule `json:"passthrough,omitempty"`
}

// PassthroughRule opens the paths that a Glob matches, for one HTTP method.
type PassthroughRule struct {
	Method string `json:"method"`
	// Path is a Glob of the path at the runtime, such as "/openai/v1/files/*".
	Path string `json:"path"`
}

// Provider is one VisionProvider as the runtime needs it.
type Provider struct {
	// Name is the object, "namespace/name". It is also From: a provider is never merged.
	Name      string     `json:"name"`
	Transport string     `json:"transport"`
	Endpoints []Endpoint `json:"endpoints"`
	// Credential is nil when the provider needs none.
	Credential *Credential `json:"credential,omitempty"`
	Models     []Model     `json:"models"`
	// Discovery lets the runtime list the endpoints' models; nil means that only
	// Models are known.
	Discovery *Discovery `json:"discovery,omitempty"`
}

// Discovery says how a provider's models are listed.
type Discovery struct {
	// Interval is how long a list stays fresh, such as "10m0s".
	Interval string `json:"interval"`
}

// The transports: a wire protocol each.
const (
	TransportOpenAIChatCompletions = "OpenAIChatCompletions"
	TransportOpenAIResponses       = "OpenAIResponses"
	TransportAnthropicMessages     = "AnthropicMessages"
	TransportGeminiGenerateContent = "GeminiGenerateContent"
)

// Endpoint is one base URL of a provider.
type Endpoint struct {
	Name string `json:"name"`
	// URL is the base URL, without a trailing slash.
	URL string `json:"url"`
	// APIVersion is sent as the query parameter api-version, as Azure OpenAI's
	// deployments want it; empty sends none.
	APIVersion string `json:"apiVersion,omitempty"`
	// CABundle is PEM; empty means the system's roots.
	CABundle string `json:"caBundle,omitempty"`
	// Timeout is the longest that one attempt of a call may take, such as "1m0s".
	Timeout string `json:"timeout"`
	// Headers are sent with every call, in order; never credentials.
	Headers []Header `json:"headers,omitempty"`
	// AllowPlainHTTP permits http to hosts outside the cluster.
	AllowPlainHTTP bool `json:"allowPlainHTTP,omitempty"`
}

// Header is one HTTP header.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Credential says where a key is, never what it is.
type Credential struct {
	// Namespace, Secret and Key name the Secret's key.
	Namespace string `json:"namespace"`
	Secret    string `json:"secret"`
	Key       string `json:"key"`
	// File is the key's path below the runtime's secrets directory:
	// "<provider namespace>/<provider name>".
	File string `json:"file"`
}

// Model is one model that a provider declares.
type Model struct {
	Name       string `json:"name"`
	ImageInput bool   `json:"imageInput"`
	// Family is the token family, or empty to let the name tell it.
	Family string `json:"family,omitempty"`
	// ContextWindowTokens and MaxOutputTokens are 0 when not declared.
	ContextWindowTokens int64 `json:"contextWindowTokens,omitempty"`
	MaxOutputTokens     int64 `json:"maxOutputTokens,omitempty"`
	// ToolImages is where the model takes the image that a tool returned, one of
	// the ToolImages values; empty lets dialect and name tell it.
	ToolImages string `json:"toolImages,omitempty"`
	// Limits are the vendor's; nil when not declared.
	Limits *ModelLimits `json:"limits,omitempty"`
}

// Values of Model.ToolImages.
const (
	// ToolImagesInToolResult: inside the tool's result.
	ToolImagesInToolResult = "InToolResult"
	// ToolImagesUserMessage: in a user message after the tool's result.
	ToolImagesUserMessage = "UserMessage"
	// ToolImagesAssistantThenUser: in a user message after a short assistant message.
	ToolImagesAssistantThenUser = "AssistantThenUserMessage"
)

// ModelLimits are a vendor's limits; 0 or empty when not declared.
type ModelLimits struct {
	MaxImages       int64 `json:"maxImages,omitempty"`
	MaxImageBytes   int64 `json:"maxImageBytes,omitempty"`
	MaxImageSide    int64 `json:"maxImageSide,omitempty"`
	MaxRequestBytes int64 `json:"maxRequestBytes,omitempty"`
	// MediaTypes are read by Model.AcceptedMediaTypes.
	MediaTypes []string `json:"mediaTypes,omitempty"`
}

// AcceptedMediaTypes are the types that the model takes, as far as its provider
// declares them: DefaultMediaTypes, and what its own limits list. A list that
// names any of the default ones is complete, and leaves out the others of them.
func (m *Model) AcceptedMediaTypes() (types []string, complete bool) {
	usual := DefaultMediaTypes()
	if m.Limits == nil || len(m.Limits.MediaTypes) == 0 {
		return usual, false
	}
	listed := m.Limits.MediaTypes
	if slices.ContainsFunc(listed, func(t string) bool { return slices.Contains(usual, t) }) {
		return listed, true
	}
	return slices.Concat(usual, listed), false
}
