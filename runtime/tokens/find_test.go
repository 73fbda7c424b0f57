// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"errors"
	"strings"
	"testing"
)

func TestAModelsNameFindsItsFamily(t *testing.T) {
	for _, c := range []struct{ name, model, family string }{
		{"an exact name", "gpt-4o", "gpt-4o"},
		{"a longer name beats its own beginning", "gpt-4o-mini", "gpt-4o-mini"},
		{"a dated name", "gpt-4o-2024-08-06", "gpt-4o"},
		{"a dated name of a longer name", "gpt-4o-mini-2024-07-18", "gpt-4o-mini"},
		{"5.1 is not 5", "gpt-5.1", "gpt-5"},
		{"5.10 is not 5.1", "gpt-5.10", "openai-patch"},
		{"5.12 is not 5.1 nor 5", "gpt-5.12-mini", "openai-patch"},
		{"5.4 is not 5", "gpt-5.4-mini-2026-03-05", "gpt-5.4"},
		{"4.1 and its smaller ones", "gpt-4.1-2025-04-14", "gpt-4.1"},
		{"4.1-nano", "gpt-4.1-nano-2025-04-14", "gpt-4.1-nano"},
		{"a codex model", "gpt-5.2-codex", "codex"},
		{"a reasoning model", "o3-2025-04-16", "o1"},
		{"o4-mini", "o4-mini-high", "o4-mini"},
		{"an unheard-of OpenAI model", "gpt-7-nova", "openai-patch"},
		{"a fine-tuned model", "ft:gpt-4o-mini-2024-07-18:acme::x1", "gpt-4o-mini"},
		{"upper case", "GPT-4O", "gpt-4o"},
		{"white space", " GPT 4o\n", "gpt-4o"},
		{"a router's prefix", "openai/gpt-5.4", "gpt-5.4"},
		{"two prefixes", "openrouter/openai/gpt-4o:free", "gpt-4o"},
		{"a deployment named after its model", "acme-prod-gpt-4o-eu", "gpt-4o"},
		{"Azure's hyphen for a dot", "gpt-4-1-mini", "gpt-4.1-mini"},
		{"Bedrock's name", "anthropic.claude-opus-4-7-v1:0", "claude-high"},
		{"Bedrock's region", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-standard"},
		{"Bedrock's government region", "us-gov.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-standard"},
		{"an inference profile's ARN", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-standard"},
		{"Vertex's mark", "claude-opus-4-1@20250805", "claude-standard"},
		{"a dated first version", "claude-opus-4-20250514", "claude-standard"},
		{"a version by dots", "anthropic/claude-opus-4.7", "claude-high"},
		{"a version after the last that is known", "claude-opus-4-9", "claude-high"},
		{"a two-digit version", "claude-opus-4-10", "claude-high"},
		{"an old Claude", "claude-3-opus-20240229", "claude-standard"},
		{"Databricks", "databricks-claude-sonnet-4", "claude-standard"},
		{"Gemini's path", "models/gemini-2.0-flash-001", "gemini-classic"},
		{"Vertex's path", "projects/p/locations/us/publishers/google/models/gemini-3.1-pro-preview", "gemini-3"},
		{"Gemini 4", "gemini-4-argon", "gemini-4"},
		{"Gemini 2.5 with a date", "gemini-2.5-flash-preview-05-20", "gemini-2.5"},
		{"the newest Gemini", "gemini-flash-latest", "gemini-3"},
		{"Fireworks' p for a dot", "accounts/fireworks/models/qwen2p5-vl-72b-instruct", "qwen2.5-vl"},
		{"Fireworks' v", "accounts/fireworks/models/llama-v3p2-90b-vision-instruct", "llama-3.2"},
		{"Bedrock's Llama", "us.meta.llama3-2-90b-instruct-v1:0", "llama-3.2"},
		{"Llama 4", "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "llama-4"},
		{"Hugging Face", "Qwen/Qwen3-VL-8B-Instruct", "qwen3-vl"},
		{"hosted Qwen", "qwen3-vl-plus-2025-09-23", "qwen3-dashscope"},
		{"Ollama's tag", "qwen2.5vl:7b", "qwen2.5-vl"},
		{"Ollama's Gemma", "gemma3:27b-it-qat", "gemma-3"},
		{"a size is not a version", "gemma-3-4b-it", "gemma-3"},
		{"InternVL with a size", "internvl3-8b", "internvl"},
		{"Mistral", "mistral-small-2506", "mistral"},
		{"Pixtral on Bedrock", "us.mistral.pixtral-large-2502-v1:0", "pixtral"},
		{"Nova", "amazon.nova-pro-v1:0", "nova-1"},
		{"Nova 2", "us.amazon.nova-2-lite-v1:0", "nova-2"},
		{"Grok", "x-ai/grok-4.1-fast", "grok"},
		{"Kimi's month", "kimi-k2-0905-preview", "kimi-k2.5"},
		{"Kimi K3", "moonshotai/Kimi-K3", "kimi-k3"},
		{"GLM", "z-ai/glm-4.5v", "glm"},
		{"underscores", "phi_3_vision_128k_instruct", "phi-3-vision"},
		{"an unknown name", "acme-eyes-1", "unknown"},
		{"no name", "", "unknown"},
		{"a name of signs", "///::@@..--", "unknown"},
		{"a name longer than is searched", strings.Repeat("x-", 200) + "gpt-4o", "unknown"},
		{"a long name with a known beginning", "gpt-4o-" + strings.Repeat("x-", 200), "gpt-4o"},
		{"a short name within another does not count", "turbo3-o3", "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Find(c.model, ""); got.Name() != c.family && !hasAlias(got, c.family) {
				t.Errorf("%q is of %s (%+v), want %s", c.model, got.Name(), got.Match(), c.family)
			}
		})
	}
}

// hasAlias lets a table name a family by a model of it.
func hasAlias(f Family, name string) bool { return Find(name, "").Name() == f.Name() }

func TestADeclaredFamilyWins(t *testing.T) {
	for _, c := range []struct {
		name, model, declared, family string
		match                         Match
	}{
		{"over the model's name", "gpt-4o", "claude-high", "claude-high", Match{How: ByDeclaration, Pattern: "claude-high"}},
		{"by an alias", "mine", "anthropic", "claude-high", Match{How: ByDeclaration, Pattern: "claude-high"}},
		{"as the API's example says it", "mine", "openai-patch", "openai-patch", Match{How: ByDeclaration, Pattern: "openai-patch"}},
		{"named by one of its models", "mine", "gpt-4.1", "gpt-4o", Match{How: ByDeclaration, Pattern: "gpt-4.1"}},
		{"named unknown", "gpt-4o", "unknown", "unknown", Match{How: ByDeclaration, Pattern: "unknown"}},
		{"but an unheard-of one leaves it to the name", "gpt-4o", "acme", "gpt-4o", Match{How: ByName, Pattern: "gpt-4o", UnknownDeclared: true}},
		{"and to the unknown one", "mine", "acme", "unknown", Match{How: ByDefault, UnknownDeclared: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Find(c.model, c.declared)
			if f.Name() != c.family || f.Match() != c.match {
				t.Errorf("got %s by %+v, want %s by %+v", f.Name(), f.Match(), c.family, c.match)
			}
		})
	}
}

func TestACallersModelsComeBeforeTheCatalogs(t *testing.T) {
	c, err := Default().With(map[string]string{"gpt-4o": "pixtral", "Acme/Eyes-1": "gemini", "left-alone": "", "bad": "acme"})
	var unknown *UnknownFamilyError
	if !errors.As(err, &unknown) || *unknown != (UnknownFamilyError{Model: "bad", Family: "acme"}) {
		t.Errorf("the error is %v, want the model bad and its family acme", err)
	}
	for model, want := range map[string]string{
		"gpt-4o": "pixtral", "Acme/Eyes-1": "gemini-3", "acme/eyes-1": "unknown", "left-alone": "unknown", "bad": "unknown", "gpt-4o-mini": "gpt-4o-mini",
	} {
		if got := c.Find(model, ""); got.Name() != want {
			t.Errorf("%q is of %s, want %s", model, got.Name(), want)
		}
	}
	if got := c.Find("gpt-4o", "o3"); got.Name() != "o1" {
		t.Errorf("a declared family gives %s, want o1", got.Name())
	}
	if got := Find("gpt-4o", ""); got.Name() != "gpt-4o" {
		t.Errorf("the built-in catalog changed: gpt-4o is of %s", got.Name())
	}
	more, err := c.With(map[string]string{"two": "glm"})
	if err != nil || more.Find("gpt-4o", "").Name() != "pixtral" || more.Find("two", "").Name() != "glm" {
		t.Errorf("a second list lost the first (%v)", err)
	}
}

func TestNamesAreBroughtIntoOneForm(t *testing.T) {
	for in, want := range map[string]string{
		"accounts/fireworks/models/Qwen2p5-VL-72B": "qwen2.5-vl-72b",
		"us.anthropic.claude-opus-4-7-v1:0":        "claude-opus-4.7-v1",
		"claude-sonnet-4-5@20250929":               "claude-sonnet-4.5",
		"ft:gpt-4o-mini-2024-07-18:acme::x1":       "gpt-4o-mini-2024-07.18",
		"google/gemma-4-31b:free":                  "gemma-4-31b",
		"gpt-4-0613":                               "gpt-4-0613",
		"4.5":                                      "4.5",
		".":                                        ".",
		"a.":                                       "a.",
		"":                                         "",
	} {
		if got := normal(in); got != want {
			t.Errorf("normal(%q) is %q, want %q", in, got, want)
		}
		if got := normal(normal(in)); got != normal(in) && !strings.Contains(in, "ft:") {
			t.Errorf("normal is not settled on %q: %q", in, got)
		}
	}
}
