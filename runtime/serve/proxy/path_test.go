// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

func TestWhatAPathAsksFor(t *testing.T) {
	for _, test := range []struct {
		path string
		want call
	}{
		{"/gemini/v1beta/models/m:countTokens", call{dialect: message.GeminiContents, operation: Counting, model: "m", verb: "countTokens"}},
		{"/gemini/v1beta/models/a@b/c:7b:generateContent", call{dialect: message.GeminiContents, operation: Generating, model: "a@b/c:7b", verb: "generateContent"}},
		{"/gemini/v1beta/models/a%40b%2Fc:streamGenerateContent", call{dialect: message.GeminiContents, operation: Generating, model: "a@b/c", verb: "streamGenerateContent"}},
		{"/gemini/v1beta/models/m:7b", call{dialect: message.GeminiContents, operation: Describing, model: "m:7b"}},
		{"/openai/v1/models/m:generateContent", call{dialect: message.OpenAIChat, operation: Describing, model: "m:generateContent"}},
		{"/openai/v1/responses/resp_1", call{dialect: message.OpenAIChat, operation: Unknown}},
		{"/anthropic/v1/files/f", call{dialect: message.AnthropicMessages, operation: Unknown}},
	} {
		got := parse(test.path)
		test.want.plain, _ = url.PathUnescape(test.path)
		test.want.tail = got.tail
		if got != test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.path, got, test.want)
		}
		if !strings.HasSuffix(test.path, got.tail) || !strings.HasPrefix(got.tail, "/") {
			t.Errorf("%s: tail %q", test.path, got.tail)
		}
	}
}

func FuzzParse(f *testing.F) {
	for path := range fixed {
		f.Add(path)
	}
	for _, path := range []string{
		"/gemini/v1beta/models/m:generateContent", "/gemini/v1beta/models/a%2f..%2fb:countTokens", "/openai/v1/../admin", "/openai/v1/%2e%2e/x", "/openai/", "",
		"/gemini/v1beta/models/:x", "/gemini/v1beta/models/a:", "/anthropic/v1//x", "/openai/v1/models/%zz", "/openai/v1/a\\b", "/gemini/v1beta/models/m%3AgenerateContent",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		c := parse(path)
		if !slices.Contains(message.Dialects(), c.dialect) {
			t.Fatalf("%q has the dialect %q", path, c.dialect)
		}
		if c.tail == "" {
			if c.operation != Unknown {
				t.Fatalf("%q is for %s and goes nowhere", path, c.operation)
			}
			return
		}
		if !strings.HasSuffix(path, c.tail) {
			t.Fatalf("%q goes to %q", path, c.tail)
		}
		const base = "http://upstream.example/base/v1"
		u, err := url.Parse(c.address(&engine.Target{Model: "m/../x?y#z:w", Endpoint: exchange.Endpoint{BaseURL: base}}))
		if err != nil {
			return // it is refused before anything is sent
		}
		if u.Host != "upstream.example" || u.User != nil {
			t.Fatalf("%q leads to the host %q", path, u.Host)
		}
		if clean := u.JoinPath(); clean.Path != u.Path || !strings.HasPrefix(u.Path, "/base/v1/") {
			if c.verb == "" || c.model == "m/../x?y#z:w" { // else the name is the policy's own
				t.Fatalf("%q leads out of the base URL, to %q", path, u.Path)
			}
		}
	})
}
