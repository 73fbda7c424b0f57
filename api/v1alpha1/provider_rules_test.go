// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestProviderNamesAndTransports(t *testing.T) {
	for _, r := range []rule{
		{name: "a name with a dot is refused", edit: "metadata: {name: open.ai}", field: "<nil>", words: "metadata.name: the name of a VisionProvider is part of a route"},
		{name: "a name of 64 characters is refused", edit: "metadata: {name: " + strings.Repeat("a", 64) + "}", field: "<nil>", words: "at most 63 of a-z, 0-9 and -"},
		{name: "a name of 63 characters is accepted", edit: "metadata: {name: " + strings.Repeat("a", 63) + "}"},
		{name: "OpenAI's newer protocol is accepted", edit: "spec: {transport: OpenAIResponses}"},
		{name: "Anthropic's protocol is accepted", edit: "spec: {transport: AnthropicMessages}"},
		{name: "Google's protocol is accepted", edit: "spec: {transport: GeminiGenerateContent}"},
		{name: "an unknown transport is refused", edit: "spec: {transport: Telepathy}", field: "spec.transport", words: "supported values"},
		{name: "no transport is refused", edit: "spec: {transport: null}", field: "spec.transport", words: "Required", schemaOnly: true},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, baseProvider) })
	}
}

func TestCredentials(t *testing.T) {
	for _, r := range []rule{
		{name: "a Secret's key is accepted", edit: "spec: {credentials: {none: null, secretRef: {name: openai, key: api-key}}}"},
		{name: "each consumer's own Secret is accepted", edit: "spec: {credentials: {none: null, secretRef: {name: openai, key: api-key, from: Consumer}}}"},
		{name: "two credentials are refused", edit: "spec: {credentials: {none: {}, secretRef: {name: openai, key: api-key}}}", field: "spec.credentials", words: "set exactly one of secretRef and none"},
		{name: "silence about credentials is refused", edit: "spec: {credentials: {none: null}}", field: "spec.credentials", words: "set exactly one of secretRef and none"},
		{name: "a Secret without a key is refused", edit: "spec: {credentials: {none: null, secretRef: {name: openai}}}", field: "spec.credentials.secretRef.key", words: "Required"},
		{name: "a Secret of another namespace cannot be named", edit: "spec: {credentials: {none: null, secretRef: {name: other/openai, key: api-key}}}", field: "spec.credentials.secretRef.name", words: "a Secret's name is made of"},
		{name: "a key that leads out of its folder is refused", edit: "spec: {credentials: {none: null, secretRef: {name: openai, key: ../etc}}}", field: "spec.credentials.secretRef.key", words: "a Secret's key is made of"},
		{name: "an unknown source of the Secret is refused", edit: "spec: {credentials: {none: null, secretRef: {name: openai, key: api-key, from: Anywhere}}}", field: "spec.credentials.secretRef.from", words: "supported values"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, baseProvider) })
	}
}

func endpoint(fields string) string {
	return fmt.Sprintf("spec: {endpoints: [{name: local, url: 'https://api.example.com/v1', %s}]}", fields)
}

func TestEndpoints(t *testing.T) {
	nine := make([]string, 9)
	for i := range nine {
		nine[i] = fmt.Sprintf("{name: e%d, url: 'https://api.example.com'}", i)
	}
	for _, r := range []rule{
		{name: "every field of an endpoint is accepted", edit: endpoint("apiVersion: 2024-10-21, timeout: 1m30s, allowPlainHTTP: false, headers: [{name: OpenAI-Organization, value: org-1234}]")},
		{name: "no endpoint is refused", edit: "spec: {endpoints: []}", field: "spec.endpoints", words: "at least 1 items"},
		{name: "nine endpoints are refused", edit: "spec: {endpoints: [" + strings.Join(nine, ", ") + "]}", field: "spec.endpoints", words: "must have at most 8 items", schemaOnly: true},
		{name: "two endpoints of one name are refused", edit: "spec: {endpoints: [{name: a, url: 'https://a.example.com'}, {name: a, url: 'https://b.example.com'}]}", field: "spec.endpoints[1]", words: "Duplicate value"},
		{name: "an endpoint's name with a slash is refused", edit: "spec: {endpoints: [{name: a/b, url: 'https://a.example.com'}]}", field: "spec.endpoints[0].name", words: "an endpoint's name is part of a route"},
		{name: "a URL of 2049 characters is refused", edit: "spec: {endpoints: [{name: a, url: 'https://a.example.com/" + strings.Repeat("a", 2049-22) + "'}]}", field: "spec.endpoints[0].url", words: "may not be more than 2048"},
		{name: "an API version of 64 characters is accepted", edit: endpoint("apiVersion: v" + strings.Repeat("1", 63))},
		{name: "an API version of 65 characters is refused", edit: endpoint("apiVersion: v" + strings.Repeat("1", 64)), field: "spec.endpoints[0].apiVersion", words: "may not be more than 64"},
		{name: "an empty API version is refused", edit: endpoint("apiVersion: ''"), field: "spec.endpoints[0].apiVersion", words: "at least 1 chars", schemaOnly: true},
		{name: "an API version that would end the parameter is refused", edit: endpoint("apiVersion: 'v1&key=x'"), field: "spec.endpoints[0].apiVersion", words: "must be an API version such as 2024-10-21"},
		{name: "an API version that begins with a dash is refused", edit: endpoint("apiVersion: '-1'"), field: "spec.endpoints[0].apiVersion", words: "must be an API version such as 2024-10-21"},
		{name: "an empty CA bundle is refused", edit: endpoint("caBundle: ''"), field: "spec.endpoints[0].caBundle", words: "at least 1 chars", schemaOnly: true},
		{name: "a timeout of an hour is accepted", edit: endpoint("timeout: 1h")},
		{name: "a timeout above an hour is refused", edit: endpoint("timeout: 1h1ms"), field: "spec.endpoints[0].timeout", words: "must be above 0 and at most 1h"},
		{name: "a timeout of zero is refused", edit: endpoint("timeout: 0s"), field: "spec.endpoints[0].timeout", words: "must be above 0 and at most 1h"},
		{name: "a timeout without a unit is refused", edit: endpoint("timeout: '30'"), field: "spec.endpoints[0].timeout", words: "must be a duration such as 30s"},
		{name: "a timeout with a fraction is refused", edit: endpoint("timeout: 1.5s"), field: "spec.endpoints[0].timeout", words: "must be a duration such as 30s"},
		{name: "a negative timeout is refused", edit: endpoint("timeout: -5s"), field: "spec.endpoints[0].timeout", words: "must be a duration such as 30s"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, baseProvider) })
	}
}

func TestHeadersCarryNoCredentialsAndDoNotFrameTheMessage(t *testing.T) {
	one := func(name, value string) string {
		return endpoint(fmt.Sprintf("headers: [{name: %q, value: %q}]", name, value))
	}
	const name, value = "spec.endpoints[0].headers[0].name", "spec.endpoints[0].headers[0].value"
	rules := []rule{
		{name: "a value with spaces inside is accepted", edit: one("X-Note", "two words")},
		{name: "a value with a line break is refused", edit: one("X-Note", "a\r\nAuthorization: x"), field: value, words: "one line of printable ASCII"},
		{name: "a value with a newline at its end is refused", edit: one("X-Note", "a\n"), field: value, words: "one line of printable ASCII"},
		{name: "a value with a control character is refused", edit: one("X-Note", "a\x00b"), field: value, words: "one line of printable ASCII"},
		{name: "a name with a colon is refused", edit: one("X-Note:", "a"), field: name, words: "a header name is made of"},
		{name: "a name with a line break is refused", edit: one("X-Note\r\nHost", "a"), field: name, words: "a header name is made of"},
		{name: "names that differ in case alone are refused", edit: endpoint("headers: [{name: X-Note, value: a}, {name: x-note, value: b}]"), field: "spec.endpoints[0].headers", words: "unique without regard to case"},
	}
	for _, n := range []string{"Authorization", "authorization", "AUTHORIZATION", "Proxy-Authorization", "X-API-Key", "api-key", "x-goog-api-key", "Cookie", "Set-Cookie", "Ocp-Apim-Subscription-Key"} {
		rules = append(rules, rule{name: "a header " + n + " is refused", edit: one(n, "x"), field: name, words: "must not carry credentials"})
	}
	for _, n := range []string{"Host", "host", "Content-Length", "content-type", "Transfer-Encoding", "Connection", "Upgrade"} {
		rules = append(rules, rule{name: "a header " + n + " is refused", edit: one(n, "x"), field: name, words: "must not frame the message"})
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, baseProvider) })
	}
}

func model(fields string) string {
	return "spec: {models: [{name: tesseract, imageInput: true, " + fields + "}]}"
}

func TestModels(t *testing.T) {
	for _, r := range []rule{
		{name: "every field of a model is accepted", edit: model("family: openai-patch, contextWindowTokens: 128000, maxOutputTokens: 4096, toolImages: UserMessage, limits: {maxImages: 1, maxImageBytes: 1, maxImageSide: 1, maxRequestBytes: 1, mediaTypes: [image/png, image/svg+xml]}, price: {inputPerMillionTokens: '1.25', outputPerMillionTokens: '0'}")},
		{name: "a name with slashes is accepted", edit: "spec: {models: [{name: Qwen/Qwen3-VL-8B, imageInput: true}]}"},
		{name: "no model is refused", edit: "spec: {models: []}", field: "spec.models", words: "at least 1 items"},
		{name: "two models of one name are refused", edit: "spec: {models: [{name: a, imageInput: true}, {name: a, imageInput: false}]}", field: "spec.models[1]", words: "Duplicate value"},
		{name: "silence about image input is refused", edit: "spec: {models: [{name: a}]}", field: "spec.models[0].imageInput", words: "Required"},
		{name: "a name with white space is refused", edit: "spec: {models: [{name: 'a b', imageInput: true}]}", field: "spec.models[0].name", words: "without white space or control characters"},
		{name: "a name of 254 bytes in 127 characters is refused as a route would be", edit: "spec: {models: [{name: '" + strings.Repeat("é", 127) + "', imageInput: true}]}", field: "spec.models[0].name", words: "at most 253 bytes"},
		{name: "a family in capitals is refused", edit: model("family: GPT"), field: "spec.models[0].family", words: "a token family is made of", schemaOnly: true},
		{name: "an unknown place of tool images is refused", edit: model("toolImages: Anywhere"), field: "spec.models[0].toolImages", words: "supported values", schemaOnly: true},
		{name: "an empty list of media types is refused", edit: model("limits: {mediaTypes: []}"), field: "spec.models[0].limits.mediaTypes", words: "at least 1 items"},
		{name: "a media type that is no image is refused", edit: model("limits: {mediaTypes: [text/html]}"), field: "spec.models[0].limits.mediaTypes[0]", words: "must be an image type in lower case"},
		{name: "a media type in capitals is refused", edit: model("limits: {mediaTypes: [image/PNG]}"), field: "spec.models[0].limits.mediaTypes[0]", words: "must be an image type in lower case"},
		{name: "a media type named twice is refused", edit: model("limits: {mediaTypes: [image/png, image/png]}"), field: "spec.models[0].limits.mediaTypes[1]", words: "Duplicate value"},
		{name: "a negative price is refused", edit: model("price: {inputPerMillionTokens: '-1'}"), field: "spec.models[0].price.inputPerMillionTokens", words: "must be a plain decimal"},
		{name: "a price with an exponent is refused", edit: model("price: {outputPerMillionTokens: 1e3}"), field: "spec.models[0].price.outputPerMillionTokens", words: "must be of type string", schemaOnly: true},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, baseProvider) })
	}
}

func TestNamespacesDiscoveryAndProbe(t *testing.T) {
	for _, r := range []rule{
		{name: "a selector with from: Selector is accepted", edit: "spec: {allowedNamespaces: {from: Selector, selector: {matchLabels: {team: search}}}}"},
		{name: "a selector without from: Selector is refused", edit: "spec: {allowedNamespaces: {selector: {}}}", field: "spec.allowedNamespaces.selector", words: "a selector is only for from: Selector"},
		{name: "a selector with from: All is refused", edit: "spec: {allowedNamespaces: {from: All, selector: {}}}", field: "spec.allowedNamespaces.selector", words: "a selector is only for from: Selector"},
		{name: "from: Selector without one is refused", edit: "spec: {allowedNamespaces: {from: Selector}}", field: "spec.allowedNamespaces.from", words: "needs a selector"},
		{name: "discovery and probe with their defaults are accepted", edit: "spec: {discovery: {}, probe: {}}"},
		{name: "a probe twice a second is refused", edit: "spec: {probe: {interval: 500ms}}", field: "spec.probe.interval", words: "must be between 10s and 24h"},
		{name: "discovery once a week is refused", edit: "spec: {discovery: {interval: 168h}}", field: "spec.discovery.interval", words: "must be between 10s and 24h"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, baseProvider) })
	}
}
