// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A checker holds a lowered schema against a vendor's rules, which are written
// down here a second time, from the vendors' references and not from dialects.
type checker struct {
	keywords []string
	// schema checks one schema for what is this dialect's own.
	schema func(c *checker, at string, n map[string]any)
	root   func(c *checker, n map[string]any)

	problems                                     []string
	levels, properties, enums, unions, optionals int
}

var checkers = map[Dialect]checker{
	OpenAIStrict: {
		keywords: []string{
			"type", "description", "enum", "anyOf", "properties", "required", "additionalProperties", "items", "$ref", "$defs",
			"pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
		},
		schema: func(c *checker, at string, n map[string]any) {
			c.closed(at, n)
			if props, ok := n["properties"].(map[string]any); ok && len(props) != len(strs(n["required"])) {
				c.fail(at, "%d of %d properties are required", len(strs(n["required"])), len(props))
			}
			c.typed(at, n)
			c.oneOf(at, n, "format", "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
		},
		root: func(c *checker, n map[string]any) {
			if n["type"] != "object" || n["anyOf"] != nil || n["$ref"] != nil {
				c.fail("#", "the root is not an object")
			}
			if c.levels > 10 || c.properties > 5000 || c.enums > 1000 {
				c.fail("#", "%d levels, %d properties, %d enum values", c.levels, c.properties, c.enums)
			}
		},
	},
	Anthropic: {
		keywords: []string{
			"type", "title", "description", "enum", "anyOf", "properties", "required", "additionalProperties", "items",
			"pattern", "format", "minItems",
		},
		schema: func(c *checker, at string, n map[string]any) {
			c.closed(at, n)
			c.typed(at, n)
			c.oneOf(at, n, "format", "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
			c.oneOf(at, n, "minItems", "0", "1")
		},
		root: func(c *checker, _ map[string]any) {
			if c.unions > 16 || c.optionals > 24 {
				c.fail("#", "%d unions, %d optional properties", c.unions, c.optionals)
			}
		},
	},
	GeminiSchema: {
		keywords: []string{
			"anyOf", "description", "enum", "example", "format", "items", "minItems", "maxItems", "minLength", "maxLength",
			"minProperties", "maxProperties", "minimum", "maximum", "nullable", "pattern", "properties", "propertyOrdering",
			"required", "title", "type",
		},
		schema: func(c *checker, at string, n map[string]any) {
			if n["anyOf"] != nil {
				if len(n) > 1 {
					c.fail(at, "something stands beside anyOf: %v", slices.Sorted(maps.Keys(n)))
				}
				return
			}
			if _, ok := n["type"].(string); !ok {
				c.fail(at, "no type: %v", n["type"])
			}
			for _, v := range anys(n["enum"]) {
				if s, ok := v.(string); !ok || s == "" || n["type"] != "string" {
					c.fail(at, "the enum of a %v holds %v", n["type"], v)
				}
			}
			if n["type"] == "array" && n["items"] == nil {
				c.fail(at, "an array without items")
			}
			c.ordered(at, n)
			c.oneOf(at, n, "format", "date-time", "float", "double", "int32", "int64")
		},
	},
	GeminiJSONSchema: {
		keywords: []string{
			"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
			"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required",
			"propertyOrdering",
		},
		schema: func(c *checker, at string, n map[string]any) {
			for _, v := range anys(n["enum"]) {
				switch v.(type) {
				case string, json.Number:
				default:
					c.fail(at, "an enum with %v", v)
				}
			}
			c.ordered(at, n)
		},
		root: func(c *checker, n map[string]any) {
			c.references("#", n)
			defs, _ := n["$defs"].(map[string]any)
			for name, def := range defs {
				c.references("#/$defs/"+name, def.(map[string]any))
			}
		},
	},
}

// check returns what is wrong with a lowered schema.
func check(to Dialect, lowered []byte) []string {
	c := checkers[to]
	decoder := json.NewDecoder(strings.NewReader(string(lowered)))
	decoder.UseNumber()
	var root map[string]any
	if err := decoder.Decode(&root); err != nil {
		return []string{err.Error()}
	}
	defs, _ := root["$defs"].(map[string]any)
	c.levels = c.walk("#", root, defs)
	for name, def := range defs {
		c.levels = max(c.levels, c.walk("#/$defs/"+name, def, defs))
	}
	if c.root != nil {
		c.root(&c, root)
	}
	return c.problems
}

func (c *checker) fail(at, format string, args ...any) {
	c.problems = append(c.problems, at+": "+fmt.Sprintf(format, args...))
}

// walk checks a schema and all below it, and returns the levels of its objects and arrays.
func (c *checker) walk(at string, schema any, defs map[string]any) (levels int) {
	n, ok := schema.(map[string]any)
	if !ok {
		c.fail(at, "no schema: %v", schema)
		return 0
	}
	for keyword := range n {
		if !slices.Contains(c.keywords, keyword) || keyword == "$defs" && at != "#" {
			c.fail(at, "%q has no place here", keyword)
		}
	}
	if ref, ok := n["$ref"].(string); ok {
		name, below := strings.CutPrefix(ref, "#/$defs/")
		if len(n) > 1 && at != "#" || ref != "#" && (!below || defs[name] == nil) {
			c.fail(at, "a broken reference: %v", n)
		}
		return 0
	}
	c.schema(c, at, n)
	down := func(step string, child any) { levels = max(levels, c.walk(at+"/"+step, child, defs)) }
	props, _ := n["properties"].(map[string]any)
	c.properties += len(props)
	c.optionals += len(props) - len(strs(n["required"]))
	for name, p := range props {
		down("properties/"+name, p)
	}
	for _, name := range strs(n["required"]) {
		if props[name] == nil {
			c.fail(at, "%q is required and no property", name)
		}
	}
	for _, keyword := range []string{"anyOf", "prefixItems"} {
		for i, branch := range anys(n[keyword]) {
			down(fmt.Sprint(keyword, "/", i), branch)
		}
		if n[keyword] != nil && len(anys(n[keyword])) == 0 || keyword == "anyOf" && len(anys(n[keyword])) == 1 {
			c.fail(at, "%s of %d", keyword, len(anys(n[keyword])))
		}
	}
	if items, ok := n["items"]; ok {
		down("items", items)
	}
	if rest, ok := n["additionalProperties"]; ok && rest != false && rest != true {
		down("additionalProperties", rest)
	}
	if _, list := n["type"].([]any); list || n["anyOf"] != nil {
		c.unions++
	}
	c.enums += len(anys(n["enum"]))
	if n["type"] == "object" || n["type"] == "array" {
		levels++
	}
	return levels
}

// closed wants every object to name its properties and to have no others.
func (c *checker) closed(at string, n map[string]any) {
	_, named := n["properties"].(map[string]any)
	if (n["type"] == "object") != (n["additionalProperties"] == false && named) {
		c.fail(at, "type %v with additionalProperties %v", n["type"], n["additionalProperties"])
	}
}

// typed wants a type, one of the list's scalars or several, and values that have it.
func (c *checker) typed(at string, n map[string]any) {
	types := strs(n["type"])
	if one, ok := n["type"].(string); ok {
		types = []string{one}
	}
	if len(types) == 0 && n["anyOf"] == nil {
		c.fail(at, "neither a type nor anyOf")
	}
	for _, t := range types {
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "null", "object", "array"}, t) ||
			len(types) > 1 && (t == "object" || t == "array") {
			c.fail(at, "type %v", n["type"])
		}
	}
	if slices.Contains(types, "array") != (n["items"] != nil) {
		c.fail(at, "type %v with items %v", types, n["items"])
	}
	for _, v := range anys(n["enum"]) {
		switch v.(type) {
		case map[string]any, []any:
			c.fail(at, "an enum with %v", v)
		}
	}
	if n["enum"] != nil && len(anys(n["enum"])) == 0 {
		c.fail(at, "an empty enum")
	}
}

func (c *checker) oneOf(at string, n map[string]any, keyword string, values ...string) {
	if v, ok := n[keyword]; ok && !slices.Contains(values, fmt.Sprint(v)) {
		c.fail(at, "%s %v", keyword, v)
	}
}

// ordered wants the order of the properties, each once.
func (c *checker) ordered(at string, n map[string]any) {
	props, _ := n["properties"].(map[string]any)
	order := strs(n["propertyOrdering"])
	slices.Sort(order)
	if !slices.Equal(order, slices.Sorted(maps.Keys(props))) {
		c.fail(at, "properties %v, their order %v", slices.Sorted(maps.Keys(props)), order)
	}
}

// references wants every reference within a property that is not required.
func (c *checker) references(at string, n map[string]any) {
	if n["$ref"] != nil {
		c.fail(at, "a reference that is not within an optional property")
	}
	props, _ := n["properties"].(map[string]any)
	for _, name := range strs(n["required"]) {
		if p, ok := props[name].(map[string]any); ok {
			c.references(at+"/"+name, p)
		}
	}
	for _, keyword := range []string{"anyOf", "prefixItems"} {
		for _, branch := range anys(n[keyword]) {
			c.references(at+"/"+keyword, branch.(map[string]any))
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if child, ok := n[keyword].(map[string]any); ok {
			c.references(at+"/"+keyword, child)
		}
	}
}

func anys(v any) []any {
	list, _ := v.([]any)
	return list
}

func strs(v any) []string {
	var out []string
	for _, item := range anys(v) {
		out = append(out, fmt.Sprint(item))
	}
	return out
}
