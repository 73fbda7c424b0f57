// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type node = map[string]any

func decodeSchema(t *testing.T, data []byte) node {
	t.Helper()
	var root node
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// common are the keywords that the structured outputs of OpenAI (strict mode),
// Anthropic and Gemini (responseJsonSchema) all accept.
var common = []string{"type", "description", "properties", "required", "additionalProperties", "items", "enum", "anyOf"}

// strict walks a schema and reports whatever strict mode refuses; it returns
// the deepest nesting of objects and counts properties and unions.
func strict(t *testing.T, at string, n node, properties, unions *int) (depth int) {
	t.Helper()
	for key := range n {
		if !slices.Contains(common, key) {
			t.Errorf("%s: keyword %q is not common to the vendors", at, key)
		}
	}
	deepest := func(name string, child any) {
		sub, ok := child.(node)
		if !ok {
			t.Fatalf("%s%s: not a schema: %v", at, name, child)
		}
		depth = max(depth, strict(t, at+name, sub, properties, unions))
	}
	if branches, ok := n["anyOf"].([]any); ok {
		*unions++
		for i, branch := range branches {
			deepest(fmt.Sprintf("|%d", i), branch)
		}
		return depth
	}
	switch n["type"] {
	case "object":
		props, _ := n["properties"].(node)
		var required []string
		for _, name := range n["required"].([]any) {
			required = append(required, name.(string))
		}
		slices.Sort(required)
		if names := slices.Sorted(maps.Keys(props)); !slices.Equal(names, required) {
			t.Errorf("%s: properties %v, required %v", at, names, required)
		}
		if n["additionalProperties"] != false {
			t.Errorf("%s: an open object", at)
		}
		for name, child := range props {
			*properties++
			deepest("."+name, child)
		}
		return depth + 1
	case "array":
		deepest("[]", n["items"])
		return depth + 1
	case "string", "number", "null":
	default:
		if _, isUnion := n["type"].([]any); !isUnion {
			t.Errorf("%s: type %v", at, n["type"])
		}
		*unions++
	}
	return depth
}

func TestReplySchemaIsStrict(t *testing.T) {
	var properties, unions int
	root := decodeSchema(t, ReplySchema())
	depth := strict(t, "root", root, &properties, &unions)
	if root["type"] != "object" || root["anyOf"] != nil {
		t.Error("the root is not an object")
	}
	// OpenAI: 10 levels and 5,000 properties. Anthropic: 16 unions.
	if depth > 10 || properties > 5000 || unions > 16 {
		t.Errorf("%d levels, %d properties, %d unions", depth, properties, unions)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(ReplySchemaName) {
		t.Errorf("%q is no schema name", ReplySchemaName)
	}
	if len(ReplySchema()) > 5000 {
		t.Errorf("%d bytes are sent with every look", len(ReplySchema()))
	}
}

func TestInstructionsSayWhatTheSchemaSays(t *testing.T) {
	props := decodeSchema(t, ReplySchema())["properties"].(node)
	for name, child := range props {
		if !strings.Contains(Instructions, fmt.Sprintf("- %q:", name)) {
			t.Errorf("the instructions do not explain %q", name)
		}
		items, _ := child.(node)["items"].(node)
		entry, _ := items["properties"].(node)
		for key := range entry {
			if !strings.Contains(Instructions, fmt.Sprintf("%q", key)) {
				t.Errorf("the instructions do not name %q of %q", key, name)
			}
		}
	}
	for _, value := range []string{observationType, Schema} {
		if !strings.Contains(Instructions, fmt.Sprintf("always %q", value)) {
			t.Errorf("the instructions do not give %q", value)
		}
	}
}

func TestResultSchemaDescribesTheResult(t *testing.T) {
	root := decodeSchema(t, ResultSchema())
	describes(t, "root", root, reflect.TypeFor[Result]())
}

// describes compares an object schema with the struct it is about.
func describes(t *testing.T, at string, n node, typ reflect.Type) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Slice:
		expectType(t, at, n, "array")
		describes(t, at+"[]", n["items"].(node), typ.Elem())
	case reflect.Map:
		expectType(t, at, n, "object")
	case reflect.String:
		expectType(t, at, n, "string")
	case reflect.Bool:
		expectType(t, at, n, "boolean")
	case reflect.Int, reflect.Int64:
		expectType(t, at, n, "integer")
	case reflect.Struct:
		expectType(t, at, n, "object")
		props, _ := n["properties"].(node)
		required := n["required"].([]any)
		if len(props) != typ.NumField() {
			t.Errorf("%s: %d properties for the %d fields of %s", at, len(props), typ.NumField(), typ)
		}
		for i := range typ.NumField() {
			name, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			child, ok := props[name].(node)
			if !ok {
				t.Errorf("%s: no property %q", at, name)
				continue
			}
			if optional := options == "omitempty"; slices.Contains(required, any(name)) == optional {
				t.Errorf("%s.%s: required and optional at once, or neither", at, name)
			}
			describes(t, at+"."+name, child, typ.Field(i).Type)
		}
	default:
		t.Errorf("%s: no rule for %s", at, typ)
	}
}

func expectType(t *testing.T, at string, n node, want string) {
	t.Helper()
	if n["type"] != want {
		t.Errorf("%s: type %v, the field is a %s", at, n["type"], want)
	}
}

func TestSchemasBelongToTheirCallers(t *testing.T) {
	for _, get := range []func() []byte{ReplySchema, ResultSchema} {
		clear(get())
		if !json.Valid(get()) {
			t.Error("a caller's change reaches the next one")
		}
	}
}

// sample makes a document that fits a schema of the strict kind.
func sample(t *testing.T, schema []byte) string {
	t.Helper()
	var value func(n node) any
	value = func(n node) any {
		if branches, ok := n["anyOf"].([]any); ok {
			return value(branches[0].(node))
		}
		if choices, ok := n["enum"].([]any); ok {
			return choices[0]
		}
		typ := n["type"]
		if union, ok := typ.([]any); ok {
			typ = union[0]
		}
		switch typ {
		case "object":
			object := node{}
			for name, child := range n["properties"].(node) {
				object[name] = value(child.(node))
			}
			return object
		case "array":
			return []any{value(n["items"].(node))}
		case "number":
			return 0.5
		}
		return "text"
	}
	data, err := json.Marshal(value(decodeSchema(t, schema)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
