// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// property is one field of a CRD's schema.
type property struct {
	path     string
	schema   apiextensionsv1.JSONSchemaProps
	required bool
}

// foreign are fields whose types are Kubernetes' own, comments and all.
var foreign = []string{".podSelector", ".namespaceSelector", ".selector", ".resources", ".conditions"}

// properties lists every field of a kind's spec and status, down to foreign ones.
func properties(t *testing.T, plural string) []property {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "visionoperator.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	var all []property
	for _, part := range []string{"spec", "status"} {
		walk(part, root.Properties[part], part == "spec", &all)
	}
	return all
}

func walk(path string, s apiextensionsv1.JSONSchemaProps, required bool, all *[]property) {
	*all = append(*all, property{path, s, required})
	if slices.ContainsFunc(foreign, func(f string) bool { return strings.HasSuffix(path, f) }) {
		return
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", *s.Items.Schema, true, all)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		walk(path+"."+name, s.Properties[name], slices.Contains(s.Required, name), all)
	}
}

func everyProperty(t *testing.T, check func(t *testing.T, p property)) {
	t.Helper()
	for _, plural := range []string{"visionproviders", "visionpolicies"} {
		all := properties(t, plural)
		if len(all) < 20 {
			t.Fatalf("%s: only %d fields found", plural, len(all))
		}
		for _, p := range all {
			check(t, p)
		}
	}
}

func TestNoFieldHasADefaultInTheSchema(t *testing.T) {
	everyProperty(t, func(t *testing.T, p property) {
		if p.schema.Default != nil {
			t.Errorf("%s has the default %s: it would beat another layer's value", p.path, p.schema.Default.Raw)
		}
	})
}

func TestEveryFieldIsBounded(t *testing.T) {
	everyProperty(t, func(t *testing.T, p property) {
		s := p.schema
		switch {
		case s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0:
			t.Errorf("%s is a string without maxLength and enum", p.path)
		case s.Type == "array" && s.MaxItems == nil:
			t.Errorf("%s is a list without maxItems", p.path)
		case s.Type == "array" && s.XListType == nil:
			t.Errorf("%s is a list without listType", p.path)
		case s.Type == "integer" && (s.Minimum == nil || s.Maximum == nil) && strings.HasPrefix(p.path, "spec."):
			t.Errorf("%s is a number without minimum and maximum", p.path)
		}
	})
}

func TestEveryFieldIsExplained(t *testing.T) {
	everyProperty(t, func(t *testing.T, p property) {
		if strings.HasSuffix(p.path, "[]") {
			return
		}
		text := p.schema.Description
		if len(text) < 15 {
			t.Errorf("%s is described by %q", p.path, text)
		}
		leaf := strings.HasPrefix(p.path, "spec.") && len(p.schema.Properties) == 0 && p.schema.Type != "object"
		if leaf && !strings.Contains(text, "Example") && !strings.Contains(p.path, ".template.") {
			t.Errorf("%s has no example", p.path)
		}
		if leaf && !p.required && !strings.Contains(text, "Default") && !strings.Contains(text, "Absent") {
			t.Errorf("%s does not say what its absence means", p.path)
		}
	})
}

func TestEveryRuleSpeaksInWords(t *testing.T) {
	everyProperty(t, func(t *testing.T, p property) {
		if p.schema.Pattern != "" {
			t.Errorf("%s has a pattern, whose refusal would be a regular expression", p.path)
		}
		for _, r := range p.schema.XValidations {
			if len(r.Message) < 15 {
				t.Errorf("%s has a rule with the message %q", p.path, r.Message)
			}
		}
	})
}

// place returns YAML that sets the field at path, which may lead through lists,
// in an object of which lists have one element.
func place(path, value string) string {
	for _, list := range []struct{ from, to string }{
		{"spec.models[].", "spec.models[{name: tesseract, imageInput: true, "},
		{"spec.quotas[].", "spec.quotas[{scope: Pod, window: 1h, cost: '1', "},
	} {
		if rest, ok := strings.CutPrefix(path, list.from); ok {
			head, element, _ := strings.Cut(list.to, "[")
			_, name, _ := strings.Cut(head, ".")
			return "spec: {" + name + ": [" + element + nest(rest, value) + "}]}"
		}
	}
	return nest(path, value)
}

func nest(path, value string) string {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return name + ": " + value
	}
	return name + ": {" + nest(rest, value) + "}"
}

func TestZeroLimitsAreRefusedAndTheHardBoundsAreTheValidatorsToo(t *testing.T) {
	count := 0
	for plural, base := range map[string]string{"visionproviders": baseProvider, "visionpolicies": basePolicy} {
		for _, p := range properties(t, plural) {
			if p.schema.Type != "integer" || !strings.HasPrefix(p.path, "spec.") || strings.HasSuffix(p.path, ".runAsUser") {
				continue
			}
			count++
			field := strings.ReplaceAll(p.path, "[]", "[0]")
			highest := int64(*p.schema.Maximum)
			for _, r := range []rule{
				{name: "is refused at 0", edit: place(p.path, "0"), field: field, words: "should be greater than or equal to 1"},
				{name: "is refused below 0", edit: place(p.path, "-1"), field: field, words: "should be greater than or equal to 1"},
				{name: "is accepted at 1", edit: place(p.path, "1")},
				{name: "is accepted at its highest", edit: place(p.path, strconv.FormatInt(highest, 10))},
				{name: "is refused above its highest", edit: place(p.path, strconv.FormatInt(highest+1, 10)), field: field, words: "should be less than or equal to " + strconv.FormatInt(highest, 10)},
			} {
				t.Run(p.path+" "+r.name, func(t *testing.T) { r.check(t, base) })
			}
		}
	}
	if count < 15 {
		t.Errorf("only %d limits were found", count)
	}
}

func TestTheCRDsAreEstablishedWithTheirNames(t *testing.T) {
	for plural, short := range map[string]string{"visionproviders": "vprov", "visionpolicies": "vpol"} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		out, err := cluster.Kubectl(t.Context(), "", "get", "crd", plural+".visionoperator.dev", "-o", "yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(out), crd); err != nil {
			t.Fatal(err)
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.NonStructuralSchema && c.Status == apiextensionsv1.ConditionTrue {
				t.Errorf("%s: %s", plural, c.Message)
			}
		}
		names := crd.Status.AcceptedNames
		if !slices.Equal(names.ShortNames, []string{short}) || !slices.Equal(names.Categories, []string{"vision"}) {
			t.Errorf("%s has the short names %v and the categories %v", plural, names.ShortNames, names.Categories)
		}
	}
}
