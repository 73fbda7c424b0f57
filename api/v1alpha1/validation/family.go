// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// family refuses a token family that the runtime's catalog does not have: it would
// count by the model's name instead, and nobody would notice. What is near is
// named; where nothing is, the first such problem names all families.
func (c *checks) family(at *field.Path, name string) {
	if name == "" || declaredFamily(name).Match().How == tokens.ByDeclaration {
		return
	}
	problem := "is no token family, nor a model whose family is known; "
	switch near := nearFamilies(name); {
	case len(near) > 0:
		problem += "near it: " + strings.Join(near, ", ")
	case c.familiesAt != nil:
		problem += fmt.Sprintf("%s names all families", c.familiesAt)
	default:
		c.familiesAt = at
		problem += "the families: " + strings.Join(allFamilies(), ", ")
	}
	c.invalid(at, name, problem)
}

// declaredFamily is the family that models[].family names, whatever the model.
func declaredFamily(name string) tokens.Family { return tokens.Find("", name) }

func allFamilies() []string {
	var names []string
	for _, f := range tokens.Default().Families() {
		names = append(names, f.Name())
	}
	return names
}

// The families that a message names at most, and the longest name that is compared.
const (
	maxNear       = 3
	maxFamilyName = 64
)

// nearFamilies are the names of families, and their other names, that a slip of
// the keyboard makes of name: one edit, and one more for every four letters. The
// nearest come first.
func nearFamilies(name string) []string {
	if len(name) > maxFamilyName {
		return nil
	}
	type near struct {
		name  string
		edits int
	}
	var found []near
	for _, f := range tokens.Default().Families() {
		for _, other := range append(f.Aliases(), f.Name()) {
			if n := edits(name, other); n <= 1+min(len(name), len(other))/4 {
				found = append(found, near{other, n})
			}
		}
	}
	slices.SortFunc(found, func(a, b near) int { return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, n := range found[:min(len(found), maxNear)] {
		names = append(names, n.name)
	}
	return names
}

// edits is how many bytes must be put in, taken out or replaced to make b of a
// (Levenshtein's distance).
func edits(a, b string) int {
	row := make([]int, len(b)+1) // of the bytes of a so far, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// byServer are the families that a model's name cannot tell, because they are of
// who serves a model and not of who makes it. Declaring one contradicts no name.
var byServer = []string{"gemini-gdc", "qwen-siliconflow", "qwen2.5-dashscope", "qwen3-dashscope", "unknown"}

// familyWarning says why a family may not be what was meant.
func familyWarning(model, family string) string {
	if family == "" {
		return ""
	}
	declared := declaredFamily(family)
	if declared.Match().How != tokens.ByDeclaration {
		return "" // refused
	}
	if stem, open := strings.CutSuffix(declared.Match().Pattern, "*"); open {
		problem := fmt.Sprintf("%s is the name of no family and of no known model; it counts as %s, like every name that begins with %s", family, declared.Name(), stem)
		if near := nearFamilies(family); len(near) > 0 {
			problem += "; near it: " + strings.Join(near, ", ")
		}
		return problem
	}
	told := tokens.Find(model, "")
	if told.Name() == declared.Name() || slices.Contains(byServer, declared.Name()) {
		return ""
	}
	if how := told.Match().How; how != tokens.ByName && how != tokens.ByPrefix {
		return "" // the name is not sure
	}
	if stem, open := strings.CutSuffix(told.Match().Pattern, "*"); open && strings.HasPrefix(declared.Name(), stem) {
		return "" // a version that the catalog does not know, of the same make
	}
	return fmt.Sprintf("%s is not the family that the model's name tells, %s; images are counted as %s", family, told.Name(), declared.Name())
}
