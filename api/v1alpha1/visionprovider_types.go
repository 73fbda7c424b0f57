// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VisionProvider is a source of vision models: a wire protocol, the endpoints
// that speak it, the credential, and the models with what each can do.
//
// Its name is the first part of a route, provider@endpoint/model, unless a
// policy gives it an alias; so it is at most 63 characters without dots.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vprov,categories=vision
// +kubebuilder:printcolumn:name="Transport",type=string,JSONPath=`.spec.transport`,description="The wire protocol."
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the object is valid and takes part in routers."
// +kubebuilder:printcolumn:name="Credentials",type=string,JSONPath=`.status.conditions[?(@.type=="CredentialsResolved")].status`,description="Whether the Secret's key could be read."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether every other condition is True."
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready, or is not."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule=`self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$')`,message="metadata.name: the name of a VisionProvider is part of a route and of a file name: at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
type VisionProvider struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the platform team declares.
	//
	// +required
	Spec VisionProviderSpec `json:"spec"`

	// Status is what the operator saw. It is written by the operator only.
	//
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
//
// +kubebuilder:validation:Enum=OpenAIChatCompletions;OpenAIResponses;AnthropicMessages;GeminiGenerateContent
type Transport string

// The transports.
const (
	// TransportOpenAIChatCompletions: POST {url}/chat/completions, as OpenAI and most other servers speak it.
	TransportOpenAIChatCompletions Transport = "OpenAIChatCompletions"
	// TransportOpenAIResponses: POST {url}/responses, OpenAI's newer protocol.
	TransportOpenAIResponses Transport = "OpenAIResponses"
	// TransportAnthropicMessages: POST {url}/v1/messages, Anthropic's protocol.
	TransportAnthropicMessages Transport = "AnthropicMessages"
	// TransportGeminiGenerateContent: POST {url}/models/{model}:generateContent, Google's protocol.
	TransportGeminiGenerateContent Transport = "GeminiGenerateContent"
)

// Duration is a duration in the form of Gateway API's GEP-2257, such as "30s",
// "1h30m" or "500ms": one to four whole numbers of up to five digits, each with
// one of the units h, m, s and ms.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=28
// +kubebuilder:validation:XValidation:rule=`self.matches('^(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}$')`,message="must be a duration such as 30s, 1h30m or 500ms: whole numbers of up to five digits with the units h, m, s or ms"
type Duration string

// VisionProviderSpec is what the platform team declares of a provider.
type VisionProviderSpec struct {
	// Transport is the wire protocol that every endpoint of the provider speaks.
	//
	// OpenAIChatCompletions is the widest: OpenAI itself, vLLM, Ollama, LM Studio,
	// OpenRouter, most gateways, and the project's own OCR provider.
	// OpenAIResponses, AnthropicMessages and GeminiGenerateContent are the
	// vendors' own protocols, with their own structured output.
	//
	// Rules: cannot be changed, since endpoints, models and limits are those of one
	// protocol. Example: `OpenAIChatCompletions`.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,reason=FieldValueForbidden,message="the transport of a VisionProvider cannot be changed: create another one and name it in the policies, or delete this one and create it anew"
	Transport Transport `json:"transport"`

	// Endpoints are the base URLs that serve the models, 1 to 8, each under a
	// name of its own. The first is the one that the short route provider/model means.
	//
	// Example: `[{name: local, url: "http://127.0.0.1:8973/v1"}]`.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Endpoints []Endpoint `json:"endpoints"`

	// Credentials say where the key is, or that none is needed. Exactly one of
	// secretRef and none is set; silence is not taken for "no key".
	//
	// Example: `{secretRef: {name: openai, key: api-key}}`.
	//
	// +required
	Credentials Credentials `json:"credentials"`

	// Models are the models that the endpoints serve, 1 to 64, each by the name
	// that goes over the wire. Only these take part in routes, unless discovery
	// adds others.
	//
	// Example: `[{name: gpt-5.2, imageInput: true}]`.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Models []Model `json:"models"`

	// Discovery asks runtimes to list the endpoints' models by themselves; the
	// operator never does. A model that an endpoint lists, and says takes images,
	// then takes part in routes as well: behind all declared ones, and still
	// under the allow-lists. What is declared is never overridden. An endpoint is
	// asked only when no declared model can serve a call, when a call or
	// defaultModel names a model that is not declared, or when a fallback is needed
	// and one of fallbackModels is such a model.
	//
	// Example: `{interval: 10m}`. Absent: nothing is discovered.
	//
	// +optional
	Discovery *Discovery `json:"discovery,omitempty"`

	// Probe asks the operator to check that the endpoints answer, and to report
	// the condition Reachable. Only public addresses and .svc hosts of the
	// provider's own namespace are probed, never loopback. A probe is one GET of
	// the base URL, without key and extra headers, past any HTTP proxy; every
	// answer below 500 will do.
	//
	// Example: `{interval: 5m}`. Absent: nothing is probed.
	//
	// +optional
	Probe *EndpointProbe `json:"probe,omitempty"`

	// AllowedNamespaces say which namespaces' policies may refer to the provider.
	// A key stays in the provider's own namespace: in others, the provider works
	// with credentials.none, and with secretRef.from: Consumer.
	//
	// Example: `{from: Selector, selector: {matchLabels: {team: search}}}`.
	// Default, applied by the compiler: `{from: Same}`.
	//
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// Endpoint is one base URL.
//
// +kubebuilder:validation:XValidation:rule=`!self.url.startsWith('http://') || (has(self.allowPlainHTTP) && self.allowPlainHTTP) || self.url.matches(r'(?i)^http://(?:localhost|127(?:[.][0-9]{1,3}){3}|\[::1\]|[-a-z0-9._]+[.]svc(?:[.]cluster[.]local)?)(?::[0-9]+)?(?:/|$)')`,fieldPath=`.url`,message="plain http is only for loopback and for hosts ending in .svc or .svc.cluster.local: use https, or set allowPlainHTTP to send images and the key in the clear"
type Endpoint struct {
	// Name is the endpoint's part of a route, provider@endpoint/model.
	//
	// Rules: unique in the list; 1 to 63 of a-z, 0-9, - and _, beginning and
	// ending with a letter or digit. Example: `eu-west`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9](?:[-a-z0-9_]*[a-z0-9])?$')`,message="an endpoint's name is part of a route: a-z, 0-9, - and _, beginning and ending with a letter or digit"
	Name string `json:"name"`

	// URL is the base URL to which the transport adds its own path, such as /chat/completions.
	//
	// Rules: https; or http to loopback or to a host that ends in .svc or
	// .svc.cluster.local; other http only with allowPlainHTTP. No user name or
	// password, no query, no fragment. The host is a name whose last label has
	// a letter, four plain decimals, or IPv6 in brackets without zone or
	// embedded IPv4; link-local and metadata addresses are refused here as
	// literals and once more, after resolution, when a connection is made.
	//
	// Example: `https://api.openai.com/v1`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches('^https?://')`,reason=FieldValueForbidden,message="must begin with https:// or http://, in lower case"
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^[^/?#]*//[^/?#]*@')`,reason=FieldValueForbidden,message="must not hold a user name or password: name the key in spec.credentials"
	// +kubebuilder:validation:XValidation:rule=`!self.matches('[?#]')`,reason=FieldValueForbidden,message="must not hold a query or a fragment: it is a base URL, such as https://api.example.com/v1"
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'(?i)^https?://(?:(?:169[.]254|(?:0|22[4-9]|23[0-9])[.][0-9]{1,3})(?:[.][0-9]{1,3}){2}|100[.]100[.]100[.]200|192[.]0[.]0[.]192|168[.]63[.]129[.]16|metadata[.]google[.]internal|metadata[.]goog|\[(?:fe[89ab][0-9a-f]|ff[0-9a-f]{2}|fd00:0?ec2):[^/]*|\[fd20:0{0,2}ce:[0:]*:0?254\])(?:[:/]|$)')`,message="must not point at a link-local, metadata, multicast or unspecified address"
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^https?://') || self.matches('^[^/?#]*//[^/?#]*@') || self.matches('[?#]') || (self.matches(r'(?i)^https?://(?:(?:[a-z0-9_](?:[-a-z0-9_]{0,61}[a-z0-9_])?[.])*(?:[a-z]|[a-z][-a-z0-9]{0,61}[a-z0-9]|[0-9][-0-9]{0,61}[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)|(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])[.]){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])|\[(?:::1|(?:[1-9a-f][0-9a-f]{0,3}|0[1-9a-f][0-9a-f]{0,2}|00[1-9a-f][0-9a-f]|000[1-9a-f])(?::[0-9a-f]{1,4}){7}|(?:[1-9a-f][0-9a-f]{0,3}|0[1-9a-f][0-9a-f]{0,2}|00[1-9a-f][0-9a-f]|000[1-9a-f])(?::[0-9a-f]{1,4}){0,6}::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,5})?)\])(?:[:/]|$)') && !self.matches(r'(?i)^https?://(?:[^/:]*[.])?0x[0-9a-f]*(?:[:/]|$)') && !self.matches(r'(?i)^https?://\[(?:(?:[^:/\]]*:){8}[^\]]|0{0,2}64:0?ff9b:|2002:)'))`,message="the host must be a name whose last label has a letter, four plain decimals such as 192.0.2.1, or IPv6 in brackets without zone or embedded IPv4"
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^https?://') || self.matches('^[^/?#]*//[^/?#]*@') || self.matches('[?#]') || self.matches(r'(?i)^https?://(?:\[[^/\]]*\]|[^/:]*)(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?(?:/(?:[-a-z0-9._~!$&()*+,;=:@/]|%[0-9a-f]{2})*)?$')`,message="after the host there may be a port of 1 to 65535 and a path of plain URL characters, nothing else"
	URL string `json:"url"`

	// APIVersion is sent with every call as the query parameter api-version, which
	// Azure OpenAI's deployments need and no other vendor knows.
	//
	// Rules: 1 to 64 letters, digits, - and ., beginning with a letter or digit.
	// Example: `2024-10-21`. Absent: no such parameter is sent.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9A-Za-z][-0-9A-Za-z.]{0,63}$')`,message="must be an API version such as 2024-10-21: letters, digits, - and ., beginning with a letter or digit"
	APIVersion string `json:"apiVersion,omitempty"`

	// CABundle is the PEM of the certificate authorities to trust for this
	// endpoint in place of the system's. Only certificates, never a private key.
	//
	// Example: the ca.crt of a cluster-internal issuer.
	// Default, applied by the runtime: the system's roots.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`

	// Timeout is the longest that one attempt of a call may take, from connecting
	// to the last byte received. After a failure that may pass, a model is asked up
	// to three times. The whole call, fallback models included, ends at the latest
	// after twice the largest timeout of the endpoints that it may use.
	//
	// Rules: above 0, at most 1h. Example: `90s`.
	// Default, applied by the compiler: `1m`.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}$') || (duration(self) > duration('0s') && duration(self) <= duration('1h'))`,message="must be above 0 and at most 1h"
	Timeout *Duration `json:"timeout,omitempty"`

	// Headers are sent with every call, such as an organisation or a routing
	// hint. They are readable by all who can read the provider: no credentials,
	// and none of the headers that frame a message or name its host.
	//
	// Rules: at most 16; names unique without regard to case.
	// Example: `[{name: OpenAI-Organization, value: org-1234}]`. Default: none.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule=`self.all(h, self.exists_one(g, g.name.lowerAscii() == h.name.lowerAscii()))`,message="header names must be unique without regard to case"
	Headers []HTTPHeader `json:"headers,omitempty"`

	// AllowPlainHTTP permits http to hosts outside the cluster. Images and the
	// key then travel in the clear.
	//
	// Example: `true` for a model server in a trusted network without TLS.
	// Default, applied by the compiler: `false`.
	//
	// +optional
	AllowPlainHTTP *bool `json:"allowPlainHTTP,omitempty"`
}

// HTTPHeader is one header that every call carries.
type HTTPHeader struct {
	// Name is the header's name.
	//
	// Rules: a header token of at most 64 characters; not one that carries
	// credentials, frames the message or names its host. Example: `OpenAI-Project`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[-!#$%&*+.^_|~0-9A-Za-z]+$')`,message="a header name is made of letters, digits and -!#$%&*+.^_|~"
	// +kubebuilder:validation:XValidation:rule=`!self.matches('(?i)^(?:authorization|proxy-authorization|www-authenticate|proxy-authenticate|x-api-key|api-key|apikey|x-apikey|x-goog-api-key|x-auth-token|x-access-token|x-amz-security-token|ocp-apim-subscription-key|cookie|cookie2|set-cookie)$')`,message="a header must not carry credentials: name the key in spec.credentials"
	// +kubebuilder:validation:XValidation:rule=`!self.matches('(?i)^(?:host|content-length|content-type|content-encoding|accept-encoding|transfer-encoding|connection|proxy-connection|keep-alive|te|trailer|upgrade|expect)$')`,message="a header must not frame the message or name its host: the runtime sets those"
	Name string `json:"name"`

	// Value is the header's value, sent as it is.
	//
	// Rules: one line of 1 to 1024 printable ASCII characters. Example: `org-1234`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[!-~](?:[\t -~]*[!-~])?$')`,reason=FieldValueForbidden,message="a header value must be one line of printable ASCII, without white space at its ends"
	Value string `json:"value"`
}

// Credentials says where the key is, or that there is none. Exactly one member is set.
//
// +kubebuilder:validation:XValidation:rule=`has(self.secretRef) != has(self.none)`,message="set exactly one of secretRef and none"
type Credentials struct {
	// SecretRef names the Secret's key that holds the provider's API key. The
	// key reaches the vision runtime's container alone, as a file. It is sent as
	// the protocol wants it: x-api-key for AnthropicMessages, x-goog-api-key for
	// GeminiGenerateContent; for both of OpenAI's, api-key to Azure's hosts
	// (*.openai.azure.com, *.cognitiveservices.azure.com, *.services.ai.azure.com)
	// and Authorization: Bearer to all others.
	//
	// Example: `{name: openai, key: api-key}`.
	//
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`

	// None declares that the endpoints need no key.
	//
	// Example: `{}`.
	//
	// +optional
	None *NoCredentials `json:"none,omitempty"`
}

// NoCredentials declares that an endpoint needs no key.
type NoCredentials struct{}

// SecretKeyReference names one key of one Secret.
type SecretKeyReference struct {
	// Name is the Secret's name. Example: `openai`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:[.][a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$')`,message="a Secret's name is made of a-z, 0-9, - and ., each part beginning and ending with a letter or digit"
	Name string `json:"name"`

	// Key is the key of the Secret's data. Its value is the API key and nothing
	// else: no newline, no quotes around it. Example: `api-key`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')`,message="a Secret's key is made of letters, digits, -, _ and ., and is not . and does not begin with .."
	Key string `json:"key"`

	// From says whose namespace holds the Secret: Provider, the provider's own;
	// Consumer, the namespace of each consuming pod, so that one shared provider
	// serves many teams, each with its own key.
	//
	// Example: `Consumer`. Default, applied by the compiler: `Provider`.
	//
	// +optional
	From *SecretSource `json:"from,omitempty"`
}

// SecretSource says whose namespace holds a Secret.
//
// +kubebuilder:validation:Enum=Provider;Consumer
type SecretSource string

// The sources.
const (
	// SecretFromProvider: the Secret is in the provider's own namespace.
	SecretFromProvider SecretSource = "Provider"
	// SecretFromConsumer: the Secret of that name is in the namespace of each
	// consuming pod, so that one shared provider serves many teams, each with its key.
	SecretFromConsumer SecretSource = "Consumer"
)

// Discovery asks runtimes to list the endpoints' models by themselves.
type Discovery struct {
	// Interval is how long a list stays fresh before it is read again. When that
	// fails, the last good list stays in use.
	//
	// Rules: 10s to 24h. Example: `30m`. Default, applied by the compiler: `10m`.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}$') || (duration(self) >= duration('10s') && duration(self) <= duration('24h'))`,message="must be between 10s and 24h"
	Interval *Duration `json:"interval,omitempty"`
}

// EndpointProbe asks the operator to check that endpoints answer.
type EndpointProbe struct {
	// Interval is the time between two checks; some jitter is added to it.
	//
	// Rules: 10s to 24h. Example: `1m`. Default, applied by the compiler: `5m`.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}$') || (duration(self) >= duration('10s') && duration(self) <= duration('24h'))`,message="must be between 10s and 24h"
	Interval *Duration `json:"interval,omitempty"`
}

// AllowedNamespaces says which namespaces' policies may refer to a provider.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.selector) || (has(self.from) && self.from == 'Selector')`,fieldPath=`.selector`,message="a selector is only for from: Selector"
// +kubebuilder:validation:XValidation:rule=`!has(self.from) || self.from != 'Selector' || has(self.selector)`,fieldPath=`.from`,message="from: Selector needs a selector; an empty one selects every namespace, as from: All does"
type AllowedNamespaces struct {
	// From is the set of namespaces: Same, the provider's own; All, every
	// namespace; Selector, those whose labels the selector matches.
	//
	// Example: `Selector`. Default, applied by the compiler: `Same`.
	//
	// +optional
	From *NamespacesFrom `json:"from,omitempty"`

	// Selector matches the labels of namespaces. Only with from: Selector, and
	// then required.
	//
	// Example: `{matchLabels: {team: search}}`.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// NamespacesFrom is a set of namespaces.
//
// +kubebuilder:validation:Enum=Same;All;Selector
type NamespacesFrom string

// The sets.
const (
	// NamespacesFromSame: the provider's own namespace.
	NamespacesFromSame NamespacesFrom = "Same"
	// NamespacesFromAll: every namespace.
	NamespacesFromAll NamespacesFrom = "All"
	// NamespacesFromSelector: the namespaces whose labels the selector matches.
	NamespacesFromSelector NamespacesFrom = "Selector"
)

// VisionProviderStatus is what the operator saw of a provider.
type VisionProviderStatus struct {
	// Conditions are Accepted, CredentialsResolved, Reachable (only with
	// spec.probe) and Ready. Each is True when all is well.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// CredentialsResourceVersion is the resourceVersion of the Secret that was
	// last read: it changes when the key is rotated. Never a value or a hash of it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CredentialsResourceVersion string `json:"credentialsResourceVersion,omitempty"`
}
