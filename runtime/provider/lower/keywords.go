// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// typeNames are the types of JSON Schema.
var typeNames = []string{"string", "number", "integer", "boolean", "null", "object", "array"}

// applies are the keywords that demand something of a value, with the types
// that they speak of; none for those that speak of all.
var applies = map[string][]string{
	"type": nil, "enum": nil, "const": nil, "anyOf": nil, "oneOf": nil, "allOf": nil, "$ref": nil, "nullable": nil,
	"not": nil, "if": nil, "then": nil, "else": nil,

	"properties": {"object"}, "required": {"object"}, "additionalProperties": {"object"}, "patternProperties": {"object"},
	"propertyNames": {"object"}, "minProperties": {"object"}, "maxProperties": {"object"}, "dependencies": {"object"},
	"dependentRequired": {"object"}, "dependentSchemas": {"object"},

	"items": {"array"}, "prefixItems": {"array"}, "contains": {"array"}, "minContains": {"array"}, "maxContains": {"array"},
	"minItems": {"array"}, "maxItems": {"array"}, "uniqueItems": {"array"},

	"pattern": {"string"}, "minLength": {"string"}, "maxLength": {"string"},
	"format":  {"string", "number", "integer"},
	"minimum": {"number", "integer"}, "maximum": {"number", "integer"}, "multipleOf": {"number", "integer"},
	"exclusiveMinimum": {"number", "integer"}, "exclusiveMaximum": {"number", "integer"},
}

// isSilent reports whether a keyword demands nothing: a description, an
// annotation, a place for definitions, or a word that JSON Schema does not know.
func isSilent(keyword string) bool {
	_, demands := applies[keyword]
	return !demands
}

// typeList reads the value of type.
func typeList(t *node, at place) ([]string, error) {
	items := t.items
	if t.kind != array {
		items = []*node{t}
	}
	var types []string
	for _, item := range items {
		name := strings.ToLower(item.text) // Google writes STRING
		if item.kind != text || !slices.Contains(typeNames, name) {
			return nil, at.in("type").error(Malformed, "not a type of JSON Schema")
		}
		types = append(types, name)
	}
	if len(types) == 0 {
		return nil, at.in("type").error(Malformed, "no type")
	}
	types = unique(types)
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	return types, nil
}

// typesOf are the types that a flat schema without anyOf takes, as it says them
// or as its keywords and values imply; nil for any.
func typesOf(n *node, at place) ([]string, error) {
	var types []string
	if t := n.get("type"); t != nil {
		var err error
		if types, err = typeList(t, at); err != nil {
			return nil, err
		}
	}
	values := n.get("enum")
	if values == nil {
		if types == nil {
			types = implied(n)
		}
		return types, nil
	}
	if values.kind != array || len(values.items) == 0 {
		return nil, at.in("enum").error(Malformed, "not a list of values")
	}
	found := mapped(values.items, (*node).typeName)
	if types == nil {
		types, found = typeNames, mapped(found, func(t string) string {
			if t == "integer" && slices.Contains(found, "number") {
				return "number"
			}
			return t
		})
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return !slices.Contains(found, t) })
		return types, nil
	}
	types = slices.DeleteFunc(types, func(t string) bool {
		return !slices.Contains(found, t) && (t != "number" || !slices.Contains(found, "integer"))
	})
	if len(types) == 0 {
		return nil, at.error(Unsatisfiable, "no value of enum has the type")
	}
	return types, nil
}

// implied are the types that n's keywords speak of.
func implied(n *node) []string {
	var types []string
	for _, m := range n.members {
		if speaksOf := applies[m.name]; len(speaksOf) > 0 {
			types = append(types, speaksOf[0])
		}
	}
	return unique(types)
}

// typeName is the type of a value.
func (n *node) typeName() string {
	switch n.kind {
	case null:
		return "null"
	case boolean:
		return "boolean"
	case text:
		return "string"
	case array:
		return "array"
	case object:
		return "object"
	}
	if strings.ContainsAny(n.text, ".eE") {
		return "number"
	}
	return "integer"
}

// fits reports whether a value is of one of the types.
func (n *node) fits(types []string) bool {
	t := n.typeName()
	return slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
}

// float is a number's value.
func (n *node) float() (float64, bool) {
	if n.kind != number {
		return 0, false
	}
	v, err := strconv.ParseFloat(n.text, 64)
	return v, err == nil
}

// maxCount bounds minItems and its like; no reply is longer.
const maxCount = math.MaxInt32

// checked returns the value of a keyword that is taken, in its plain form, or
// nil when the dialect takes this keyword but not this value.
func (l *lowering) checked(m member, types []string, at place) (*node, error) {
	wrong := at.in(m.name)
	switch m.name {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		v, ok := m.value.float()
		if m.value.kind == boolean && strings.HasPrefix(m.name, "exclusive") {
			return nil, nil // as draft 4 has it
		}
		if !ok || m.name == "multipleOf" && v <= 0 {
			return nil, wrong.error(Malformed, "not a number for it")
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		v, ok := m.value.float()
		if !ok || v < 0 || v != math.Trunc(v) {
			return nil, wrong.error(Malformed, "not a count")
		}
		if v > maxCount || l.oneItem && v > 1 {
			return nil, nil
		}
		return count10(int(v)), nil
	case "pattern":
		if m.value.kind != text {
			return nil, wrong.error(Malformed, "not a string")
		}
	case "format":
		if m.value.kind != text {
			return nil, wrong.error(Malformed, "not a string")
		}
		for _, t := range types {
			if slices.Contains(l.formats[t], m.value.text) {
				return m.value, nil
			}
		}
		return nil, nil
	}
	return m.value, nil
}

const (
	// maxNote is how long a keyword may be to be told in a description, maxNotes
	// how long all of a description's may be together, in bytes.
	maxNote  = 120
	maxNotes = 400
)

// noteOf tells a keyword: "minimum: 0". It is empty when that would be long.
func noteOf(m member) string {
	value := m.value.String()
	if m.value.kind == text {
		value = m.value.text
	}
	if len(value) > maxNote {
		return ""
	}
	return m.name + ": " + value
}

// noted is a description with the notes behind it, in brackets.
func noted(description string, notes []string) string {
	var told []string
	length := 0
	for _, note := range unique(notes) {
		if length += len(note); note != "" && length <= maxNotes {
			told = append(told, note)
		}
	}
	if len(told) == 0 {
		return description
	}
	return strings.TrimLeft(description+" ["+strings.Join(told, "; ")+"]", " ")
}
