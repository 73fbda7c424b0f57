// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

func TestTheAddressOfAPath(t *testing.T) {
	for name, tc := range map[string]struct {
		base, version, path, want string
	}{
		"a base URL":                      {"https://api.openai.com/v1", "", "/responses", "https://api.openai.com/v1/responses"},
		"one with slashes at its end":     {"https://api.openai.com/v1//", "", "/responses", "https://api.openai.com/v1/responses"},
		"one without a path":              {"http://ollama:11434", "", "/api/show", "http://ollama:11434/api/show"},
		"a version":                       {"https://a.example/x", "2026-01-01-preview", "/y", "https://a.example/x/y?api-version=2026-01-01-preview"},
		"a version beside another query":  {"https://a.example/x", "v1", "/y?alt=json", "https://a.example/x/y?alt=json&api-version=v1"},
		"a version that must be escaped":  {"https://a.example", "a b&c=d", "/y", "https://a.example/y?api-version=a+b%26c%3Dd"},
		"a path that is escaped already":  {"https://a.example", "", "/models/a%2Fb", "https://a.example/models/a%2Fb"},
		"an address of the sixth version": {"http://[::1]:8000/v1", "", "/models", "http://[::1]:8000/v1/models"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (exchange.Endpoint{BaseURL: tc.base, APIVersion: tc.version}).URL(tc.path); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhoseHostItIs(t *testing.T) {
	for base, want := range map[string]bool{
		"https://openai.com/v1":             true,
		"https://API.OpenAI.com:443/v1":     true,
		"https://eu.api.openai.com":         true,
		"https://notopenai.com":             false,
		"https://openai.com.example":        false,
		"https://openai.com@evil.example/":  false,
		"https://evil.example/?openai.com":  false,
		"http://127.0.0.1/openai.com":       false,
		"not a url \x7f://openai.com":       false,
		"":                                  false,
		"https://team.openai.azure.com/a/b": true,
	} {
		if got := (exchange.Endpoint{BaseURL: base}).HostIn("openai.com", "openai.azure.com"); got != want {
			t.Errorf("%q: %v", base, got)
		}
	}
}

func TestTextsAreJoinedTrimmed(t *testing.T) {
	for want, texts := range map[string][]string{
		"":         {" ", "\n"},
		"a":        {"", " a ", "\t"},
		"a\n\nb c": {"a\n", "b c"},
	} {
		if got := exchange.Join(texts); got != want {
			t.Errorf("%q of %q", got, texts)
		}
	}
	if got := exchange.Join(nil); got != "" {
		t.Errorf("%q of nothing", got)
	}
}
