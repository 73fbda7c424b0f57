// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/router"
)

func valid() *router.Document {
	return &router.Document{
		Version:   router.Version,
		Namespace: "team-a",
		Profiles: []router.Profile{{
			ID: "policy/default", From: "team-a/default", DefaultModel: "ocr@local/tesseract",
			Providers:    []router.ProviderUse{{Alias: "ocr", Provider: "team-a/ocr"}},
			Allow:        []router.AllowList{{From: "team-a/default", Globs: []string{"ocr@*"}}},
			PerCallModel: router.PerCallAllowed,
			Limits: router.Limits{
				Image:   router.ImageLimits{MaxBytes: 20 << 20, MaxPixels: 50_000_000},
				Request: router.RequestLimits{MaxDistinctImages: 8, MaxTotalImageBytes: 20 << 20, MaxProbedPaths: 16, MaxBodyBytes: 64 << 20},
			},
			Cache:     router.Cache{TTL: "24h0m0s", MaxEntries: 1024, MaxBytes: 64 << 20},
			Injection: router.Injection{Mode: router.InjectionAuto, WaitFor: router.WaitForAllToolCalls, Keep: router.KeepThread, MarkdownImages: router.MarkdownAttach},
			Runtime:   router.RuntimeOptions{MCP: true, Proxy: &router.Proxy{Passthrough: []router.PassthroughRule{{Method: "GET", Path: "/openai/v1/files/*"}}}},
		}},
		Providers: []router.Provider{{
			Name: "team-a/ocr", Transport: router.TransportOpenAIChatCompletions,
			Endpoints:  []router.Endpoint{{Name: "local", URL: "http://127.0.0.1:8973/v1", Timeout: "1m0s"}},
			Credential: &router.Credential{Namespace: "team-a", Secret: "ocr-key", Key: "api-key", File: "team-a/ocr"},
			Models:     []router.Model{{Name: "tesseract", ImageInput: true}},
		}},
	}
}

func TestADocumentSurvivesItsOwnBytes(t *testing.T) {
	data, err := router.Marshal(valid())
	if err != nil {
		t.Fatal(err)
	}
	got, err := router.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(valid(), got); diff != "" {
		t.Errorf("parsed document differs (-want +got):\n%s", diff)
	}
	again, err := router.Marshal(got)
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("marshalled again: %v, equal %t", err, bytes.Equal(again, data))
	}
	want, err := os.ReadFile(filepath.Join("testdata", "document.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(data)); diff != "" {
		t.Errorf("the wire form changed (-testdata/document.json +now):\n%s", diff)
	}
}

func TestUnknownFieldsAreAcceptedByTheRuntime(t *testing.T) {
	data, err := router.Marshal(valid())
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte(`"namespace": "team-a",`), []byte(`"namespace": "team-a", "later": {"x": [1]},`), 1)
	if _, err := router.Parse(data); err != nil {
		t.Errorf("Parse: %v", err)
	}
}

func TestADocumentWithoutProfilesIsValid(t *testing.T) {
	doc, err := router.Parse([]byte(`{"version":"router/v1","namespace":"team-a","profiles":[],"providers":[]}`))
	if err != nil || len(doc.Profiles) != 0 {
		t.Errorf("Parse = %v, %v", doc, err)
	}
}

func TestAnotherVersionIsNamed(t *testing.T) {
	_, err := router.Parse([]byte(`{"version":"router/v2","profiles":"of another shape"}`))
	if v, ok := errors.AsType[*router.VersionError](err); !ok || v.Version != "router/v2" {
		t.Errorf("Parse = %v, want a VersionError of router/v2", err)
	}
}

func TestADocumentOverTheLimitIsNotWritten(t *testing.T) {
	doc := valid()
	doc.Providers[0].Endpoints[0].CABundle = strings.Repeat("x", router.MaxBytes)
	if _, err := router.Marshal(doc); !router.IsTooLarge(err) {
		t.Errorf("Marshal = %v, want TooLargeError", err)
	}
	if _, err := router.Parse(bytes.Repeat([]byte(" "), router.MaxBytes+1)); err == nil {
		t.Error("Parse took a file over the limit")
	}
}

func TestValidateNamesTheField(t *testing.T) {
	tests := []struct {
		name, field string
		edit        func(*router.Document)
	}{
		{"a document without a namespace", "namespace", func(d *router.Document) { d.Namespace = "" }},
		{"two profiles of one id", "profiles[1].id", func(d *router.Document) { d.Profiles = append(d.Profiles, d.Profiles[0]) }},
		{"a profile id without a kind", "profiles[0].id", func(d *router.Document) { d.Profiles[0].ID = "default" }},
		{"a default model that is no route", "profiles[0].defaultModel", func(d *router.Document) { d.Profiles[0].DefaultModel = "tesseract" }},
		{"a fallback that is no route", "profiles[0].fallbackModels[0]", func(d *router.Document) { d.Profiles[0].FallbackModels = []string{"auto"} }},
		{"an alias used twice", "profiles[0].providers[1].alias", func(d *router.Document) {
			d.Profiles[0].Providers = append(d.Profiles[0].Providers, d.Profiles[0].Providers[0])
		}},
		{"an alias that no route can begin with", "profiles[0].providers[0].alias", func(d *router.Document) { d.Profiles[0].Providers[0].Alias = "a.b" }},
		{"an endpoint's name that is longer than a route's", "providers[0].endpoints[0].name", func(d *router.Document) {
			d.Providers[0].Endpoints[0].Name = strings.Repeat("a", 64)
		}},
		{"a provider that is not there", "profiles[0].providers[0].provider", func(d *router.Document) { d.Profiles[0].Providers[0].Provider = "team-a/other" }},
		{"an empty allow-list", "profiles[0].allow[0].globs", func(d *router.Document) { d.Profiles[0].Allow[0].Globs = nil }},
		{"an unknown per-call word", "profiles[0].perCallModel", func(d *router.Document) { d.Profiles[0].PerCallModel = "Maybe" }},
		{"no byte limit for an image", "profiles[0].limits.image.maxBytes", func(d *router.Document) { d.Profiles[0].Limits.Image.MaxBytes = 0 }},
		{"an unknown word for images over a limit", "profiles[0].limits.image.onOversize", func(d *router.Document) { d.Profiles[0].Limits.Image.OnOversize = "Shrink" }},
		{"an unknown mode of injection", "profiles[0].injection.mode", func(d *router.Document) { d.Profiles[0].Injection.Mode = "Sketch" }},
		{"an unknown word for what is waited for", "profiles[0].injection.waitFor", func(d *router.Document) { d.Profiles[0].Injection.WaitFor = "Nothing" }},
		{"an unknown word for how long images stay", "profiles[0].injection.keep", func(d *router.Document) { d.Profiles[0].Injection.Keep = "Forever" }},
		{"an unknown word for Markdown images", "profiles[0].injection.markdownImages", func(d *router.Document) { d.Profiles[0].Injection.MarkdownImages = "Fetch" }},
		{"an unknown place for tools' images", "providers[0].models[0].toolImages", func(d *router.Document) { d.Providers[0].Models[0].ToolImages = "Elsewhere" }},
		{"a negative pixel limit", "profiles[0].limits.image.maxPixels", func(d *router.Document) { d.Profiles[0].Limits.Image.MaxPixels = -1 }},
		{"a negative limit of tokens", "profiles[0].limits.request.maxImageTokens", func(d *router.Document) { d.Profiles[0].Limits.Request.MaxImageTokens = -1 }},
		{"no body limit", "profiles[0].limits.request.maxBodyBytes", func(d *router.Document) { d.Profiles[0].Limits.Request.MaxBodyBytes = 0 }},
		{"a cache without a lifetime", "profiles[0].cache.ttl", func(d *router.Document) { d.Profiles[0].Cache.TTL = "0s" }},
		{"a provider without a transport", "providers[0].transport", func(d *router.Document) { d.Providers[0].Transport = "" }},
		{"a provider without endpoints", "providers[0].endpoints", func(d *router.Document) { d.Providers[0].Endpoints = nil }},
		{"an endpoint of another scheme", "providers[0].endpoints[0].url", func(d *router.Document) { d.Providers[0].Endpoints[0].URL = "ftp://host/v1" }},
		{"an endpoint with a query", "providers[0].endpoints[0].url", func(d *router.Document) { d.Providers[0].Endpoints[0].URL = "https://host/v1?key=x" }},
		{"plain http to a public host", "providers[0].endpoints[0].url", func(d *router.Document) { d.Providers[0].Endpoints[0].URL = "http://api.example.com/v1" }},
		{"plain http to a private address", "providers[0].endpoints[0].url", func(d *router.Document) { d.Providers[0].Endpoints[0].URL = "http://10.0.0.7/v1" }},
		{"an endpoint without a time limit", "providers[0].endpoints[0].timeout", func(d *router.Document) { d.Providers[0].Endpoints[0].Timeout = "" }},
		{"a key path that climbs", "providers[0].credential.file", func(d *router.Document) { d.Providers[0].Credential.File = "../../etc/passwd" }},
		{"an absolute key path", "providers[0].credential.file", func(d *router.Document) { d.Providers[0].Credential.File = "/etc/passwd" }},
		{"a model without a name", "providers[0].models[0].name", func(d *router.Document) { d.Providers[0].Models[0].Name = "" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := valid()
			tt.edit(doc)
			f, ok := errors.AsType[*router.FieldError](router.Validate(doc))
			if !ok || f.Field != tt.field {
				t.Errorf("Validate = %v, want a FieldError of %s", router.Validate(doc), tt.field)
			}
		})
	}
}

func TestUserinfoInAURLIsRefusedAndNotRepeated(t *testing.T) {
	for _, url := range []string{"https://user:hunter2@host/v1", "https://user:hunter2@ho st:x/v1"} {
		doc := valid()
		doc.Providers[0].Endpoints[0].URL = url
		err := router.Validate(doc)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Validate(%q) = %v", url, err)
		}
	}
}

func TestPlainHTTPGoesToInsideHostsAndWhereItIsAllowed(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1/v1", "http://[::1]:1", "http://localhost", "http://vllm.models.svc/v1", "http://VLLM.models.svc.cluster.local:8000"} {
		doc := valid()
		doc.Providers[0].Endpoints[0].URL = url
		if err := router.Validate(doc); err != nil {
			t.Errorf("Validate(%q) = %v", url, err)
		}
	}
	doc := valid()
	doc.Providers[0].Endpoints[0].URL, doc.Providers[0].Endpoints[0].AllowPlainHTTP = "http://api.example.com/v1", true
	if err := router.Validate(doc); err != nil {
		t.Errorf("where it is allowed: %v", err)
	}
}

func TestRoutes(t *testing.T) {
	tests := []struct {
		name, in string
		want     router.Route
		ok       bool
	}{
		{"a whole route", "anthropic@direct/claude-sonnet-4-6", router.Route{Provider: "anthropic", Endpoint: "direct", Model: "claude-sonnet-4-6"}, true},
		{"a route without an endpoint", "openai/gpt-4o", router.Route{Provider: "openai", Model: "gpt-4o"}, true},
		{"a model with slashes", "vllm@gpu/Qwen/Qwen3-VL-8B", router.Route{Provider: "vllm", Endpoint: "gpu", Model: "Qwen/Qwen3-VL-8B"}, true},
		{"a model with an at sign", "p/m@latest", router.Route{Provider: "p", Model: "m@latest"}, true},
		{"a model with a colon", "ollama/qwen3-vl:8b", router.Route{Provider: "ollama", Model: "qwen3-vl:8b"}, true},
		{"no slash", "gpt-4o", router.Route{}, false},
		{"nothing", "", router.Route{}, false},
		{"auto", "auto", router.Route{}, false},
		{"an empty provider", "/m", router.Route{}, false},
		{"an empty endpoint", "p@/m", router.Route{}, false},
		{"an empty model", "p@e/", router.Route{}, false},
		{"an upper-case provider", "OpenAI/m", router.Route{}, false},
		{"two at signs", "p@e@f/m", router.Route{}, false},
		{"white space in the model", "p/m m", router.Route{}, false},
		{"a newline at the end", "p/m\n", router.Route{}, false},
		{"a provider that begins with a dash", "-p/m", router.Route{}, false},
		{"a provider of 64 bytes", strings.Repeat("p", 64) + "/m", router.Route{}, false},
		{"a model of 254 bytes", "p/" + strings.Repeat("m", 254), router.Route{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := router.ParseRoute(tt.in)
			if (err == nil) != tt.ok || got != tt.want {
				t.Fatalf("ParseRoute(%q) = %+v, %v", tt.in, got, err)
			}
			if tt.ok && got.String() != tt.in {
				t.Errorf("String() = %q, want %q", got.String(), tt.in)
			}
		})
	}
}

func TestGlobs(t *testing.T) {
	tests := []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true},
		{"*", "p@e/a/b", true},
		{"p@*/m", "p@e/m", true},
		{"p@*/m", "p@e/mm", false},
		{"p@e/gpt-5.?", "p@e/gpt-5.1", true},
		{"p@e/gpt-5.?", "p@e/gpt-5.10", false},
		{"p@e/gpt-5.1", "p@e/gpt-5x1", false},
		{"a*b*c", "axxbxxbxc", true},
		{"a*b*c", "axxbxxb", false},
		{"", "", true},
		{"", "a", false},
		{"[a-z]", "a", false},
		{"**", "a", true},
	}
	for _, tt := range tests {
		if got := router.Glob(tt.pattern, tt.s); got != tt.want {
			t.Errorf("Glob(%q, %q) = %t", tt.pattern, tt.s, got)
		}
	}
}

func TestARouteMustMatchEveryLayer(t *testing.T) {
	p := router.Profile{Allow: []router.AllowList{
		{From: "team-a/default", Globs: []string{"mine@*", "other@*"}},
		{From: "vision-system/base", Globs: []string{"team-a/ocr@local/*"}, Canonical: true},
	}}
	tests := []struct {
		name, route, provider string
		want                  bool
	}{
		{"both layers match", "mine@local/tesseract", "team-a/ocr", true},
		{"the baseline does not know the alias", "other@local/tesseract", "team-a/other", false},
		{"the tenant's own list does not match", "ocr@local/tesseract", "team-a/ocr", false},
		{"an alias that imitates a canonical name is not one", "mine@local/tesseract", "team-b/ocr", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			route, err := router.ParseRoute(tt.route)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Allows(route, tt.provider); got != tt.want {
				t.Errorf("Allows = %t", got)
			}
		})
	}
	if !(&router.Profile{}).Allows(router.Route{Provider: "p", Endpoint: "e", Model: "m"}, "n/p") {
		t.Error("no list must mean no restriction")
	}
}

func FuzzParseRoute(f *testing.F) {
	for _, s := range []string{"p@e/m", "p/m", "p/a/b@c", "@/", "auto", "p@e/\xff", "P/m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := router.ParseRoute(s)
		if err == nil && r.String() != s {
			t.Errorf("ParseRoute(%q).String() = %q", s, r.String())
		}
	})
}

func FuzzParse(f *testing.F) {
	data, err := router.Marshal(valid())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":"router/v1"}`))
	f.Add([]byte(`{"version":"router/v1","namespace":"a","profiles":[{}],"providers":[{"endpoints":[{}],"credential":{}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := router.Parse(data)
		if err != nil {
			return
		}
		out, err := router.Marshal(doc)
		if router.IsTooLarge(err) {
			return
		}
		if err != nil || !json.Valid(out) {
			t.Fatalf("a parsed document does not marshal: %v", err)
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if router.Glob(pattern, s) != slowGlob(pattern, s) {
			t.Errorf("Glob(%q, %q) disagrees with the definition", pattern, s)
		}
	})
}

// slowGlob is the definition, filled in row by row.
func slowGlob(pattern, s string) bool {
	row := make([]bool, len(s)+1)
	row[0] = true
	for p := range len(pattern) {
		next := make([]bool, len(s)+1)
		for i := range next {
			switch {
			case pattern[p] == '*':
				next[i] = row[i] || (i > 0 && next[i-1])
			case i > 0:
				next[i] = row[i-1] && (pattern[p] == '?' || pattern[p] == s[i-1])
			}
		}
		row = next
	}
	return row[len(s)]
}

func TestAModelsListOfTypesAddsToTheUsualOnesUnlessItNamesSomeOfThem(t *testing.T) {
	usual := []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	for name, tc := range map[string]struct {
		limits   *router.ModelLimits
		want     []string
		complete bool
	}{
		"no limits":                    {nil, usual, false},
		"limits without a list":        {&router.ModelLimits{MaxImages: 1}, usual, false},
		"a list of others":             {&router.ModelLimits{MediaTypes: []string{"image/bmp", "image/heic"}}, append(slices.Clone(usual), "image/bmp", "image/heic"), false},
		"a list with one of the usual": {&router.ModelLimits{MediaTypes: []string{"image/bmp", "image/png"}}, []string{"image/bmp", "image/png"}, true},
		"a list of all of the usual":   {&router.ModelLimits{MediaTypes: usual}, usual, true},
	} {
		m := router.Model{Limits: tc.limits}
		if got, complete := m.AcceptedMediaTypes(); !slices.Equal(got, tc.want) || complete != tc.complete {
			t.Errorf("%s: %v, complete %t; want %v, %t", name, got, complete, tc.want, tc.complete)
		}
	}
}
