// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheCatalogIsSortedSourcedAndReachable(t *testing.T) {
	// The form that a VisionProvider's models[].family may have.
	family := regexp.MustCompile(`^[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$`)
	var names []string
	for _, f := range Default().Families() {
		e := f.entry
		names = append(names, e.Name)
		for _, name := range append([]string{e.Name}, e.Aliases...) {
			if !family.MatchString(name) || len(name) > 64 {
				t.Errorf("family %q: a provider could not declare it", name)
			}
			if got := Find("", name); got.entry != e || got.match.How != ByDeclaration {
				t.Errorf("family %q: declaring it finds %s", name, got.Name())
			}
		}
		if !slices.IsSorted(e.Models) || !slices.IsSorted(e.Aliases) {
			t.Errorf("family %q: its models or aliases are not sorted", e.Name)
		}
		for _, source := range e.Sources {
			if strings.TrimSpace(source) != source || len(source) < 10 {
				t.Errorf("family %q: source %q says little", e.Name, source)
			}
		}
		for _, pattern := range e.Models {
			// What anything may follow is reached by something that no other name fits.
			model := strings.Replace(pattern, "*", "zz", 1)
			if got := Find(model, ""); got.entry != e || got.match.Pattern != pattern {
				t.Errorf("family %q: %q finds %s by %q", e.Name, model, got.Name(), got.match.Pattern)
			}
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the families are not sorted: %v", names)
	}
}

func TestEveryFamilySaysWhatItChargesForAnUnknownSize(t *testing.T) {
	for _, f := range Default().Families() {
		most, bounded := f.Max()
		got, err := f.Estimate(Image{})
		if err != nil || got.Tokens <= 0 || got.Tokens > most {
			t.Errorf("%s: %d tokens (%v) for an unknown size, want 1 to %d", f.Name(), got.Tokens, err, most)
		}
		if !bounded && got.Tokens != most {
			t.Errorf("%s: %d tokens for an unknown size, Max says %d", f.Name(), got.Tokens, most)
		}
		for _, half := range []Image{{Width: 100}, {Height: 100}, {Width: -1, Height: 100}} {
			if other, err := f.Estimate(half); err != nil || other.Tokens != got.Tokens {
				t.Errorf("%s: %d tokens (%v) with one side known, want %d", f.Name(), other.Tokens, err, got.Tokens)
			}
		}
	}
}

func TestMaximaAreThePublishedOnes(t *testing.T) {
	for name, want := range map[string]int64{
		"gpt-6-astra": 36000, "gpt-5.5": 12000, "gpt-5.4": 12000, "gpt-5.2": 4916, "gpt-4o": 1445, "gpt-4o-mini": 48169,
		"claude-standard": 1568, "claude-high": 4784, "gemini-3": 2240, "mistral": 3080, "pixtral": 4160,
		"qwen2.5-vl": 16384, "qwen3-vl": 16384, "qwen2.5-dashscope": 16384, "deepseek-v4.1": 1024, "grok": 1792,
		"nova-1": 2600, "nova-2": 2155, "cohere": 3328, "internvl": 3328, "llama-3.2": 6404, "gemma-3": 1280, "gemma-4": 1120,
		"glm": 8000, "minimax-m3": 576, "deepseek-vl2": 2101, "phi-3-vision": 2653, "llama-4": 2467, "gpt-image-1": 6821,
	} {
		if got, bounded := Find("", name).Max(); got != want || !bounded {
			t.Errorf("%s: at most %d (%v), want %d", name, got, bounded, want)
		}
	}
	for _, c := range []struct {
		family, detail string
		want           int64
	}{
		{"gpt-6-astra", "", 36000}, {"gpt-6-astra", "low", 308}, {"gpt-6-astra", "high", 3000}, {"gpt-5.4", "", 3000},
		{"gpt-4o", "low", 85}, {"gpt-4o", "", 1445}, {"gemini-3", "", 1120}, {"gemini-3", "MEDIA_RESOLUTION_ULTRA_HIGH", 2240},
		{"qwen3-dashscope", "", 1280}, {"qwen3-dashscope", "high", 16384}, {"gemma-4", "70", 70}, {"cohere", "low", 256},
	} {
		got, err := Find("", c.family).Estimate(Image{Detail: c.detail})
		if err != nil || got.Tokens != c.want {
			t.Errorf("%s, detail %q, unknown size: %d (%v), want %d", c.family, c.detail, got.Tokens, err, c.want)
		}
	}
}

func TestABrokenCatalogIsRefused(t *testing.T) {
	const good = `{"name":"unknown","rule":"cells","parameters":{"cell":28,"minTokens":1,"maxTokens":9},"models":[],"confidence":"assumed","sources":["s"]}`
	wrap := func(families ...string) string { return `{"families":[` + strings.Join(families, ",") + `]}` }
	if _, err := parse([]byte(wrap(good))); err != nil {
		t.Fatal(err)
	}
	edit := func(old, with string) string { return wrap(strings.Replace(good, old, with, 1)) }
	for name, data := range map[string]string{
		"no JSON":               `{`,
		"something after it":    wrap(good) + `1`,
		"no unknown family":     edit(`"unknown"`, `"other"`),
		"an unheard-of field":   edit(`"rule"`, `"extra":1,"rule"`),
		"an unheard-of rule":    edit(`"cells"`, `"guess"`),
		"an unheard-of number":  edit(`"cell":28`, `"cell":28,"x":1`),
		"a number out of range": edit(`"cell":28`, `"cell":0`),
		"no source":             edit(`["s"]`, `[]`),
		"no confidence":         edit(`"assumed"`, `"sure"`),
		"a family twice":        wrap(good, good),
		"a model twice":         edit(`"models":[]`, `"models":["a","a"]`),
		"a model in capitals":   edit(`"models":[]`, `"models":["Gpt-4o"]`),
		"a version by hyphens":  edit(`"models":[]`, `"models":["claude-opus-4-7"]`),
		"an empty stem":         edit(`"models":[]`, `"models":["*"]`),
	} {
		if _, err := parse([]byte(data)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestNumbersOutOfRangeAreRefusedByEveryRule(t *testing.T) {
	for name, read := range rules {
		r, err := read([]byte(`{}`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.check() == "" {
			t.Errorf("rule %s: a rule without numbers is accepted", name)
		}
	}
}

func TestAFamilyCanBePrintedWithoutItsInside(t *testing.T) {
	f := Find("gpt-4o", "")
	f.Sources()[0] = "changed"
	if f.Sources()[0] == "changed" {
		t.Error("the sources can be changed from outside")
	}
	if f.Confidence() != Published || Find("acme", "").Note() == "" {
		t.Error("confidence or note is missing")
	}
	var zero Family
	if zero.Name() != "unknown" || zero.Match().How != ByDefault {
		t.Errorf("the zero family is %s by %s", zero.Name(), zero.Match().How)
	}
	if _, err := json.Marshal(Estimate{}); err != nil {
		t.Error(err)
	}
}
