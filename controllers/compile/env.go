// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

// ConfigMaps that stand beside the router in every served namespace, as long as it
// does. Containers that fill their environment from sources of their own (envFrom)
// get the variables from them; all others get them written out.
const (
	// EnvConfigMapName holds Env.
	EnvConfigMapName = "vision-runtime-env"
	// BaseURLsConfigMapName holds BaseURLs, for pods whose profile sets them.
	BaseURLsConfigMapName = "vision-runtime-base-urls"
)

// Names of the variables that tell an agent where its runtime is.
const (
	EnvRuntimeURL = "VISION_RUNTIME_URL"
	EnvMCPURL     = "VISION_MCP_URL"
)

// Values of the variables. The runtime listens on loopback port 8970 of the
// pod, so they are the same for every pod.
const (
	RuntimeURL = "http://127.0.0.1:8970"
	MCPURL     = RuntimeURL + "/mcp"
)

// PlaceholderKey stands where SDKs refuse to start without a key. It is no key: the
// proxy takes it off and sends the provider's own.
const PlaceholderKey = "vision-runtime-placeholder"

// SDK is the pair of variables by which a vendor's SDKs find their API.
type SDK struct {
	// URLName and URL are the base URL, as the SDKs read it: OpenAI's holds the
	// version, Anthropic's and Google's clients add theirs.
	URLName, URL string
	// KeyName is the API key's variable.
	KeyName string
}

// SDKs are the pairs, in a fixed order: openai-python and openai-node read
// OPENAI_BASE_URL, Anthropic's ANTHROPIC_BASE_URL, google-genai
// GOOGLE_GEMINI_BASE_URL.
func SDKs() []SDK {
	return []SDK{
		{"OPENAI_BASE_URL", RuntimeURL + "/openai/v1", "OPENAI_API_KEY"},
		{"ANTHROPIC_BASE_URL", RuntimeURL + "/anthropic", "ANTHROPIC_API_KEY"},
		{"GOOGLE_GEMINI_BASE_URL", RuntimeURL + "/gemini", "GEMINI_API_KEY"},
	}
}

// Env returns the variables by name: the data of EnvConfigMapName, and what
// injection writes out. The caller owns the map.
func Env() map[string]string {
	return map[string]string{EnvRuntimeURL: RuntimeURL, EnvMCPURL: MCPURL}
}

// VariableSet is a ConfigMap of variables.
type VariableSet struct {
	Name string
	Data map[string]string
}

// VariableSets are the ConfigMaps that stand beside a router. The caller owns them.
func VariableSets() []VariableSet {
	return []VariableSet{{EnvConfigMapName, Env()}, {BaseURLsConfigMapName, BaseURLs()}}
}

// BaseURLs returns the variables of SDKs by name, keys included: the data of
// BaseURLsConfigMapName. The caller owns the map.
func BaseURLs() map[string]string {
	vars := map[string]string{}
	for _, sdk := range SDKs() {
		vars[sdk.URLName], vars[sdk.KeyName] = sdk.URL, PlaceholderKey
	}
	return vars
}
