// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
)

func TestModelsAreListedAsEachVendorListsThem(t *testing.T) {
	w := newWorld(t, never(t), nil)
	const (
		openAIEye    = `{"id":"eye-1","object":"model","created":0,"owned_by":"team-a/lab"}`
		anthropicEye = `{"type":"model","id":"eye-1","display_name":"eye-1","created_at":"1970-01-01T00:00:00Z","max_input_tokens":128000,"max_tokens":4096}`
		geminiEye    = `{"name":"models/eye-1","version":"","displayName":"eye-1","inputTokenLimit":128000,"outputTokenLimit":4096,"supportedGenerationMethods":["generateContent","countTokens"]}`
	)
	for _, test := range []struct{ path, want string }{
		{"/openai/v1/models", `{"object":"list","data":[` + openAIEye + `,{"id":"org/text-1","object":"model","created":0,"owned_by":"team-a/lab"},{"id":"cloud@main/eye-1","object":"model","created":0,"owned_by":"team-a/cloud"}]}`},
		{"/openai/v1/models/eye-1", openAIEye},
		{"/openai/v1/models/cloud@main/eye-1", `{"id":"cloud@main/eye-1","object":"model","created":0,"owned_by":"team-a/cloud"}`},
		{"/openai/v1/models/org%2Ftext-1", `{"id":"org/text-1","object":"model","created":0,"owned_by":"team-a/lab"}`},
		{"/anthropic/v1/models?limit=1000", `{"data":[` + anthropicEye + `,{"type":"model","id":"org/text-1","display_name":"org/text-1","created_at":"1970-01-01T00:00:00Z","max_input_tokens":0,"max_tokens":0},{"type":"model","id":"cloud@main/eye-1","display_name":"eye-1","created_at":"1970-01-01T00:00:00Z","max_input_tokens":0,"max_tokens":0}],"has_more":false,"first_id":"eye-1","last_id":"cloud@main/eye-1"}`},
		{"/anthropic/v1/models/eye-1", anthropicEye},
		{"/gemini/v1beta/models", `{"models":[` + geminiEye + `,{"name":"models/org/text-1","version":"","displayName":"org/text-1","supportedGenerationMethods":["generateContent","countTokens"]},{"name":"models/cloud@main/eye-1","version":"","displayName":"eye-1","supportedGenerationMethods":["generateContent","countTokens"]}]}`},
		{"/gemini/v1beta/models/eye-1", geminiEye},
	} {
		r := w.do("GET", test.path, nil, nil)
		if r.status != http.StatusOK || r.body != test.want {
			t.Errorf("%s: %d\n%s\nwant\n%s", test.path, r.status, r.body, test.want)
		}
		if head := w.do("HEAD", test.path, nil, nil); head.status != http.StatusOK || head.body != "" {
			t.Errorf("HEAD %s: %d %q", test.path, head.status, head.body)
		}
	}
	for path, want := range map[string]string{
		"/openai/v1/models/none": `{"error":{"message":"the model none is not served here`, "/anthropic/v1/models/none": `{"type":"error"`, "/gemini/v1beta/models/none": `"status":"NOT_FOUND"`,
	} {
		if r := w.do("GET", path, nil, nil); r.status != http.StatusNotFound || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

func TestWithoutModelsTheListsAreEmpty(t *testing.T) {
	w := newWorld(t, never(t), func(w *world) {
		w.options.Models = func(message.Dialect) ([]engine.Served, error) { return nil, nil }
	})
	for path, want := range map[string]string{
		"/openai/v1/models": `{"object":"list","data":[]}`, "/anthropic/v1/models": `{"data":[],"has_more":false,"first_id":null,"last_id":null}`,
		"/gemini/v1beta/models": `{"models":[]}`,
	} {
		if r := w.do("GET", path, nil, nil); r.body != want {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}

func TestModelsAreRefusedInTheDialect(t *testing.T) {
	w := newWorld(t, never(t), func(w *world) {
		w.options.Models = func(message.Dialect) ([]engine.Served, error) {
			return nil, fault.New(fault.PolicyDenied, "ProxyDisabled", "no proxy")
		}
	})
	for path, want := range map[string]string{
		"/openai/v1/models": `"code":"policy_denied","reason":"ProxyDisabled"`, "/anthropic/v1/models/x": `{"type":"error","error":{"type":"permission_error"`,
		"/gemini/v1beta/models": `"status":"PERMISSION_DENIED"`,
	} {
		if r := w.do("GET", path, nil, nil); r.status != http.StatusForbidden || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}
