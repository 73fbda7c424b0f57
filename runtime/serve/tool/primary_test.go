// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// longest is the longest route that there is.
var longest = strings.Repeat("p", 63) + "@" + strings.Repeat("e", 63) + "/" + strings.Repeat("m", 253)

func TestACallersOwnModelIsARoute(t *testing.T) {
	tests := []struct {
		name, value, want string
		ok                bool
	}{
		{"a whole route", "openai@eu/gpt-6", "openai@eu/gpt-6", true},
		{"a route without endpoint", "openai/gpt-6", "openai/gpt-6", true},
		{"a model with slashes and colons", "lab/qwen/qwen3-vl:8b", "lab/qwen/qwen3-vl:8b", true},
		{"a model of another script", "lab/模型", "lab/模型", true},
		{"white space around it", "  openai/gpt-6\t", "openai/gpt-6", true},
		{"the longest route", longest, longest, true},
		{"nothing", "", "", true},
		{"white space, as a variable that is not set leaves it", "  ", "", true},
		{"one byte more than the longest", longest + "m", "", false},
		{"a model without provider", "gpt-6", "", false},
		{"no model", "openai/", "", false},
		{"a provider in capitals", "OpenAI/gpt-6", "", false},
		{"white space within", "openai/gpt 6", "", false},
		{"a line feed", "openai/gpt-6\nX: y", "", false},
		{"an escape sequence", "openai/\x1b[2J", "", false},
		{"a mark that turns the writing", "openai/a\u202eb", "", false},
		{"text that is not UTF-8", "openai/a\xff", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := tool.PrimaryModel(tool.PrimaryModelHeader, test.value)
			if test.ok {
				if err != nil || got != test.want {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			f, isFault := errors.AsType[*fault.Fault](err)
			if !isFault || f.Kind != fault.InvalidToolInput || f.Reason != "PrimaryModelMalformed" || got != "" {
				t.Fatalf("got %q, %#v", got, err)
			}
			if !strings.Contains(f.Message, tool.PrimaryModelHeader) || !strings.Contains(f.RecoveryHint, "provider@endpoint/model") {
				t.Errorf("%q, %q: the header or the grammar is not named", f.Message, f.RecoveryHint)
			}
			if len(f.Message) > 400 || !utf8.ValidString(f.Message) || strings.ContainsAny(f.Message, "\n\x1b\u202e") {
				t.Errorf("message is %q", f.Message)
			}
		})
	}
}

// TestTheLongestRouteIsTheGrammarsOwn fails when the grammar of routes changes.
func TestTheLongestRouteIsTheGrammarsOwn(t *testing.T) {
	if _, err := router.ParseRoute(longest); err != nil || len(longest) != tool.MaxPrimaryModel {
		t.Errorf("%d bytes, %v", len(longest), err)
	}
	for _, longer := range []string{"p" + longest, strings.Replace(longest, "@", "@e", 1), longest + "m"} {
		if _, err := router.ParseRoute(longer); err == nil {
			t.Errorf("a route of %d bytes is accepted", len(longer))
		}
	}
}

func FuzzPrimaryModel(f *testing.F) {
	for _, seed := range []string{"openai@eu/gpt-6", "openai/gpt-6", "", " ", "a/b/c", "A/b", "a@/b", "@/", "a/\x00", "a/\xff", longest} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, err := tool.PrimaryModel(tool.PrimaryModelMeta, value)
		if err != nil {
			if f := fault.As(err); f.Kind != fault.InvalidToolInput || len(f.Message) > 1000 {
				t.Fatalf("got %v", err)
			}
			return
		}
		if got == "" {
			if strings.TrimSpace(value) != "" {
				t.Fatalf("%q was dropped", value)
			}
			return
		}
		if _, err := router.ParseRoute(got); err != nil || len(got) > tool.MaxPrimaryModel || strings.ContainsAny(got, "\r\n\x00") {
			t.Fatalf("accepted %q: %v", got, err)
		}
	})
}
