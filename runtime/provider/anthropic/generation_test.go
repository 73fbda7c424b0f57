// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
)

func TestWhatAModelsNameSays(t *testing.T) {
	type said struct {
		family       string
		major, minor int
		formats      bool
		output       int64
	}
	for model, want := range map[string]said{
		"claude-instant-1.2":                           {"instant", 1, 2, false, 4096},
		"anthropic.claude-instant-v1":                  {"instant", 1, 0, false, 4096},
		"claude-2":                                     {"", 2, 0, false, 4096},
		"claude-2.1":                                   {"", 2, 1, false, 4096},
		"anthropic.claude-v2:1":                        {"", 2, 1, false, 4096},
		"claude-3-opus-20240229":                       {"opus", 3, 0, false, 4096},
		"claude-3-sonnet-20240229":                     {"sonnet", 3, 0, false, 4096},
		"anthropic/claude-3-haiku":                     {"haiku", 3, 0, false, 4096},
		"claude-3-haiku@20240307":                      {"haiku", 3, 0, false, 4096},
		"claude-3-5-sonnet-20241022":                   {"sonnet", 3, 5, false, 8192},
		"claude-3-5-haiku-latest":                      {"haiku", 3, 5, false, 8192},
		"anthropic.claude-3-5-sonnet-20241022-v2:0":    {"sonnet", 3, 5, false, 8192},
		"claude-3-5-sonnet@20240620":                   {"sonnet", 3, 5, false, 8192},
		"claude-3-5-sonnet-v2@20241022":                {"sonnet", 3, 5, false, 8192},
		"anthropic/claude-3.5-sonnet":                  {"sonnet", 3, 5, false, 8192},
		"anthropic/claude-3.7-sonnet:thinking":         {"sonnet", 3, 7, false, 16384},
		"us.anthropic.claude-3-7-sonnet-20250219-v1:0": {"sonnet", 3, 7, false, 16384},
		"databricks-claude-3-7-sonnet":                 {"sonnet", 3, 7, false, 16384},
		"claude-opus-4-0":                              {"opus", 4, 0, false, 16384},
		"claude-sonnet-4-0":                            {"sonnet", 4, 0, false, 16384},
		"claude-sonnet-4-20250514":                     {"sonnet", 4, 0, false, 16384},
		"claude-sonnet-4-2025-05-14":                   {"sonnet", 4, 0, false, 16384},
		"claude-4-sonnet-20250514":                     {"sonnet", 4, 0, false, 16384},
		"claude-opus-4@20250514":                       {"opus", 4, 0, false, 16384},
		"us.anthropic.claude-sonnet-4-20250514-v1:0":   {"sonnet", 4, 0, false, 16384},
		"anthropic/claude-sonnet-4":                    {"sonnet", 4, 0, false, 16384},
		"Claude-Opus-4-0":                              {"opus", 4, 0, false, 16384},
		"claude-opus-4-1-20250805":                     {"opus", 4, 1, true, 16384},
		"anthropic/claude-opus-4.1":                    {"opus", 4, 1, true, 16384},
		"claude-sonnet-4-5-20250929":                   {"sonnet", 4, 5, true, 16384},
		"claude-haiku-4-5@20251001":                    {"haiku", 4, 5, true, 16384},
		"anthropic.claude-opus-4-6-v1":                 {"opus", 4, 6, true, 16384},
		"global.anthropic.claude-sonnet-4-6":           {"sonnet", 4, 6, true, 16384},
		"claude-opus-4-10":                             {"opus", 4, 10, true, 16384},
		"claude-sonnet-5":                              {"sonnet", 5, 0, true, 16384},
		"claude-opus-5-5":                              {"opus", 5, 5, true, 16384},
		"claude-fable-5-2":                             {"", 5, 2, true, 16384},
		"claude-mythos-preview":                        {"", 0, 0, true, 16384},
		"claude-opus-10":                               {"opus", 10, 0, true, 16384},
		"claude-opus-latest":                           {"opus", 0, 0, true, 16384},
		"glm-4.5v":                                     {"", 0, 0, true, 16384},
		"":                                             {"", 0, 0, true, 16384},
		"claude":                                       {"", 0, 0, true, 16384},
	} {
		var got said
		got.family, got.major, got.minor, got.formats, got.output = anthropic.Generation(model)
		if got != want {
			t.Errorf("%s says %+v, want %+v", model, got, want)
		}
	}
}

func FuzzModelName(f *testing.F) {
	for _, seed := range []string{newModel, oldModel, "claude-", "claude-v", "claude-3-", "us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-99-99", "\xffclaude\x00-3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		_, major, minor, formats, output := anthropic.Generation(name)
		if major < 0 || major > 99 || minor < 0 || minor > 99 || major == 0 && minor != 0 {
			t.Errorf("%q is of generation %d.%d", name, major, minor)
		}
		if output < 4096 || output > 16384 || major > 4 && output != 16384 {
			t.Errorf("%q writes %d tokens", name, output)
		}
		if major > 0 && major < 4 && formats {
			t.Errorf("%q of generation %d.%d is asked for a format", name, major, minor)
		}
	})
}
