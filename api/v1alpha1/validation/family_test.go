// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

func ofFamilies(families ...string) *v1alpha1.VisionProvider {
	p := goodProvider()
	p.Spec.Models = nil
	for i, f := range families {
		p.Spec.Models = append(p.Spec.Models, v1alpha1.Model{Name: strings.Repeat("m", i+1), ImageInput: ptr(true), Family: f})
	}
	return p
}

func TestAFamilyMustBeKnown(t *testing.T) {
	for _, c := range []struct{ name, family, want string }{
		{"a family", "openai-patch", ""},
		{"another name of one", "anthropic", ""},
		{"a model that is counted by one", "claude-opus-4.7", ""},
		{"a model with its date", "gpt-4o-2024-08-06", ""},
		{"none, which leaves it to the name", "", ""},
		{"a slip in a family's name", "openai-pach", `no token family, nor a model whose family is known; near it: openai-patch`},
		{"a slip in another name", "antropic", "near it: anthropic"},
		{"two letters that changed places", "opena-itile", "near it: openai-tile"},
		{"a word that is near nothing", "vision-large-hd", "the families: claude-high, claude-standard, "},
		{"a name that is too long to compare", strings.Repeat("z", 65), "the families: claude-high, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{"spec.models[0].family: " + c.want}
			}
			found(t, Provider(ofFamilies(c.family)), want)
		})
	}
}

func TestAllFamiliesAreListedOnce(t *testing.T) {
	found(t, Provider(ofFamilies("gpt-4o", "something", "else-entirely", "opnai")), []string{
		"spec.models[1].family: the families: claude-high, ",
		"spec.models[2].family: spec.models[1].family names all families",
		"spec.models[3].family: near it: openai",
	})
}

func TestEveryNameOfAFamilyIsAcceptedAndSuitsTheSchema(t *testing.T) {
	count := 0
	for _, f := range tokens.Default().Families() {
		for _, name := range append(f.Aliases(), f.Name()) {
			count++
			if got := declaredFamily(name); got.Name() != f.Name() || got.Match().How != tokens.ByDeclaration {
				t.Errorf("%s counts as %s", name, got.Name())
			}
			if len(name) > maxFamilyName || !mediaType.MatchString("image/"+name) || strings.Contains(name, "+") {
				t.Errorf("%s cannot be written into models[].family", name)
			}
		}
	}
	if count < 40 {
		t.Errorf("looked at %d names", count)
	}
	for _, name := range byServer {
		if declaredFamily(name).Name() != name {
			t.Errorf("no family is named %s", name)
		}
	}
}

func TestFamilyWarnings(t *testing.T) {
	for _, c := range []struct{ name, model, family, want string }{
		{"the family of the model's name", "gpt-4o-2024-08-06", "gpt-4o", ""},
		{"none", "gpt-4o", "", ""},
		{"another family than the name tells", "gpt-4o", "openai-patch", "openai-patch is not the family that the model's name tells, gpt-4o; images are counted as openai-patch"},
		{"another name of another family", "claude-opus-4-7", "gemini", "gemini is not the family that the model's name tells, claude-high; images are counted as gemini-3"},
		{"a model's name of the same family", "openai/gpt-4.1", "gpt-4o", ""},
		{"another tier of the same vendor", "anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-high", "claude-high is not the family"},
		{"a deployment whose name tells nothing", "my-deployment", "gpt-5.2", ""},
		{"a name that only holds a known one", "our-gpt-4o-killer", "qwen3-vl", ""},
		{"a version that is not known yet, of the same make", "qwen9-vl", "qwen2.5-vl", ""},
		{"a version that is not known yet, of another make", "qwen9-vl", "gemma-3", "gemma-3 is not the family that the model's name tells, qwen3-vl"},
		{"a family of who serves it", "Qwen/Qwen2.5-VL-72B-Instruct", "qwen2.5-dashscope", ""},
		{"the careful one", "gpt-4o", "unknown", ""},
		{"a slip that looks like a model's name", "gemini-2.0-flash", "gemini-classical", "gemini-classical is the name of no family and of no known model; it counts as gemini-3, like every name that begins with gemini; near it: gemini-classic"},
		{"a model that is not known yet, as a family", "my-deployment", "gpt-quite-another", "gpt-quite-another is the name of no family and of no known model; it counts as openai-patch, like every name that begins with gpt"},
		{"one that is refused", "gpt-4o", "zzz", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := familyWarning(c.model, c.family); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestEditsAreCounted(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "ac", 1}, {"ac", "abc", 1},
		{"abc", "acb", 2}, {"kitten", "sitting", 3}, {"sitting", "kitten", 3},
	} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearFamiliesAreFewAndTheNearestComeFirst(t *testing.T) {
	got := nearFamilies("gpt-5.9")
	if len(got) != maxNear || !slices.Contains(got, "gpt-5") && !slices.Contains(got, "gpt-5.2") {
		t.Errorf("got %q", got)
	}
	for i := 1; i < len(got); i++ {
		if edits("gpt-5.9", got[i-1]) > edits("gpt-5.9", got[i]) {
			t.Errorf("%q comes before %q", got[i-1], got[i])
		}
	}
}
