// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VisionProvider is a source of vision models: a wire protocol, the endpoints
// that speak it, the credential, and the models with what each can do.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vprov,categories=vision
type VisionProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec VisionProviderSpec `json:"spec"`
	// +optional
	Status VisionProviderStatus `json:"status,omitempty"`
}

// VisionProviderList is a list of VisionProviders.
//
// +kubebuilder:object:root=true
type VisionProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VisionProvider `json:"items"`
}

// Transport is a wire protocol.
type Transport string

// The transports.
const (
	TransportOpenAIChatCompletions Transport = "OpenAIChatCompletions"
	TransportOpenAIResponses       Transport = "OpenAIResponses"
	TransportAnthropicMessages     Transport = "AnthropicMessages"
	TransportGeminiGenerateContent Transport = "GeminiGenerateContent"
)

// Duration is a duration in the form of Gateway API's GEP-2257, such as "30s", "1h30m" or "500ms".
type Duration string

// VisionProviderSpec is what the platform team declares of a provider.
type VisionProviderSpec struct {
	Transport         Transport          `json:"transport"`
	Endpoints         []Endpoint         `json:"endpoints"`
	Credentials       Credentials        `json:"credentials"`
	Models            []Model            `json:"models"`
	Discovery         *Discovery         `json:"discovery,omitempty"`
	Probe             *EndpointProbe     `json:"probe,omitempty"`
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// Endpoint is one base URL.
type Endpoint struct {
	Name           string       `json:"name"`
	URL            string       `json:"url"`
	CABundle       string       `json:"caBundle,omitempty"`
	Timeout        *Duration    `json:"timeout,omitempty"`
	Headers        []HTTPHeader `json:"headers,omitempty"`
	AllowPlainHTTP *bool        `json:"allowPlainHTTP,omitempty"`
}

// HTTPHeader is one header that every call carries.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Credentials says where the key is, or that there is none. Exactly one member is set.
type Credentials struct {
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`
	None      *NoCredentials      `json:"none,omitempty"`
}

// NoCredentials declares that an endpoint needs no key.
type NoCredentials struct{}

// SecretKeyReference names one key of one Secret.
type SecretKeyReference struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// From says whose namespace holds the Secret. Default: Provider.
	From *SecretSource `json:"from,omitempty"`
}

// SecretSource says whose namespace holds a Secret.
type SecretSource string

// The sources.
const (
	// SecretFromProvider: the Secret is in the provider's own namespace.
	SecretFromProvider SecretSource = "Provider"
	// SecretFromConsumer: the Secret of that name is in the namespace of each
	// consuming pod, so that one shared provider serves many teams, each with its key.
	SecretFromConsumer SecretSource = "Consumer"
)

// Model is one model and what it can do.
type Model struct {
	Name                string       `json:"name"`
	ImageInput          *bool        `json:"imageInput"`
	Family              string       `json:"family,omitempty"`
	ContextWindowTokens *int64       `json:"contextWindowTokens,omitempty"`
	MaxOutputTokens     *int64       `json:"maxOutputTokens,omitempty"`
	ToolImages          *ToolImages  `json:"toolImages,omitempty"`
	Limits              *ModelLimits `json:"limits,omitempty"`
	Price               *ModelPrice  `json:"price,omitempty"`
}

// ToolImages says where a dialect accepts the image that a tool returned.
type ToolImages string

// The places.
const (
	ToolImagesInToolResult      ToolImages = "InToolResult"
	ToolImagesUserMessage       ToolImages = "UserMessage"
	ToolImagesAssistantThenUser ToolImages = "AssistantThenUserMessage"
)

// ModelLimits are a vendor's limits, counted per part as sent.
type ModelLimits struct {
	MaxImages       *int64   `json:"maxImages,omitempty"`
	MaxImageBytes   *int64   `json:"maxImageBytes,omitempty"`
	MaxImageSide    *int64   `json:"maxImageSide,omitempty"`
	MaxRequestBytes *int64   `json:"maxRequestBytes,omitempty"`
	MediaTypes      []string `json:"mediaTypes,omitempty"`
}

// ModelPrice is what tokens cost, in one currency of the platform team's choice.
type ModelPrice struct {
	InputPerMillionTokens  string `json:"inputPerMillionTokens,omitempty"`
	OutputPerMillionTokens string `json:"outputPerMillionTokens,omitempty"`
}

// Discovery asks runtimes to list the endpoint's models by themselves.
type Discovery struct {
	Interval *Duration `json:"interval,omitempty"`
}

// EndpointProbe asks the operator to check that endpoints answer.
type EndpointProbe struct {
	Interval *Duration `json:"interval,omitempty"`
}

// AllowedNamespaces says which namespaces' policies may refer to a provider.
type AllowedNamespaces struct {
	From     *NamespacesFrom       `json:"from,omitempty"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// NamespacesFrom is a set of namespaces.
type NamespacesFrom string

// The sets.
const (
	NamespacesFromSame     NamespacesFrom = "Same"
	NamespacesFromAll      NamespacesFrom = "All"
	NamespacesFromSelector NamespacesFrom = "Selector"
)

// VisionProviderStatus is what the operator saw of a provider.
type VisionProviderStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// CredentialsResourceVersion is the resourceVersion of the Secret that was
	// last read: it changes when the key is rotated. Never a value or a hash of it.
	CredentialsResourceVersion string `json:"credentialsResourceVersion,omitempty"`
}
