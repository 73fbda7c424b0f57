// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxDepth bounds how deep a schema is followed, so that a schema that refers
	// to itself ends.
	maxDepth = 16
	// maxAlternatives bounds how many alternatives of one member are looked at:
	// alternatives that refer to each other multiply with every step down.
	maxAlternatives = 256
	// maxSchemaBytes bounds a schema; the observation's own has a tenth of it.
	maxSchemaBytes = 64 << 10
)

// Schema is the JSON Schema that a caller wants the observation to obey. The
// zero Schema asks for nothing.
type Schema struct {
	root map[string]any
}

// SchemaError says why an observation cannot obey a schema.
type SchemaError struct {
	// Path is where, such as "elements[].colour"; empty for the whole.
	Path string
	// Problem is what is asked that cannot be given.
	Problem string
}

func (e *SchemaError) Error() string {
	if e.Path == "" {
		return "obeying schema: " + e.Problem
	}
	return fmt.Sprintf("obeying schema: %s: %s", e.Path, e.Problem)
}

// ReadSchema reads a JSON Schema of an object, of at most 64 KiB. Its errors
// are *SchemaError.
func ReadSchema(data []byte) (Schema, error) {
	if len(data) > maxSchemaBytes {
		return Schema{}, &SchemaError{Problem: fmt.Sprintf("it has more than %d bytes", maxSchemaBytes)}
	}
	var root map[string]any
	if err := json.Unmarshal(data, &root); err != nil || root == nil {
		return Schema{}, &SchemaError{Problem: "it is not a JSON object"}
	}
	return Schema{root: root}, nil
}

// Describes reports whether the schema has the observation's keys among its
// properties, which is how one under another name is recognised.
func (s Schema) Describes() bool {
	properties, _ := s.resolve(s.root)["properties"].(map[string]any)
	for _, key := range Keys() {
		if _, ok := properties[key]; !ok {
			return false
		}
	}
	return true
}

// JSON writes the observation so that it obeys the schema's objects: members
// that an object closed by additionalProperties:false does not list are left
// out, and required ones that an OCR engine does not know are null, or an
// empty string or list where null is not allowed. Other keywords are not
// looked at. Its errors are *SchemaError.
func (o Observation) JSON(s Schema) ([]byte, error) {
	data, err := json.Marshal(o)
	if err != nil || s.root == nil {
		return data, err
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("writing observation: %w", err)
	}
	if tree, err = s.conform(tree, s.root, "", 0); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// conform gives value as the schema at path wants it.
func (s Schema) conform(value any, schema map[string]any, path string, depth int) (any, error) {
	schema = s.resolve(schema)
	if schema == nil || depth > maxDepth {
		return value, nil
	}
	switch v := value.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i := range v {
			item, err := s.conform(v[i], items, path+"[]", depth+1)
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
	case map[string]any:
		return v, s.conformObject(v, schema, path, depth)
	}
	return value, nil
}

// conformObject changes an object in place.
func (s Schema) conformObject(v, schema map[string]any, path string, depth int) error {
	properties, _ := schema["properties"].(map[string]any)
	closed := schema["additionalProperties"] == false && len(properties) > 0 // closed and empty would leave nothing to say
	for key, member := range v {
		property, listed := properties[key].(map[string]any)
		if !listed {
			if closed && properties[key] == nil {
				delete(v, key)
			}
			continue
		}
		fitted, err := s.conform(member, property, join(path, key), depth+1)
		if err != nil {
			return err
		}
		v[key] = fitted
	}
	required, _ := schema["required"].([]any)
	for _, r := range required {
		key, _ := r.(string)
		if _, ok := v[key]; ok || key == "" {
			continue
		}
		property, _ := properties[key].(map[string]any)
		unknown, err := s.unknown(property, join(path, key))
		if err != nil {
			return err
		}
		v[key] = unknown
	}
	return nil
}

// unknown is the value that says "not known" under a schema.
func (s Schema) unknown(schema map[string]any, path string) (any, error) {
	types := s.types(s.follow(schema))
	switch {
	case len(types) == 0 || slices.Contains(types, "null"):
		return nil, nil
	case slices.Contains(types, "string") && schema["enum"] == nil && schema["const"] == nil:
		return "", nil
	case slices.Contains(types, "array"):
		return []any{}, nil
	}
	return nil, &SchemaError{Path: path, Problem: "is required and may not be null, and an OCR engine does not know it"}
}

// types lists the type names that a schema and its first maxAlternatives
// alternatives allow; none means any.
func (s Schema) types(schema map[string]any) []string {
	var out []string
	for todo, seen := []map[string]any{schema}, 0; len(todo) > 0 && seen < maxAlternatives; seen++ {
		schema, todo = todo[0], todo[1:]
		switch t := schema["type"].(type) {
		case string:
			out = append(out, t)
		case []any:
			for _, name := range t {
				if text, ok := name.(string); ok {
					out = append(out, text)
				}
			}
		}
		alternatives, _ := schema["anyOf"].([]any)
		for _, a := range alternatives[:min(len(alternatives), maxAlternatives)] {
			if option, ok := a.(map[string]any); ok {
				todo = append(todo, s.follow(option))
			}
		}
	}
	return out
}

// resolve follows references, and of alternatives (anyOf) takes the first that
// is not null.
func (s Schema) resolve(schema map[string]any) map[string]any {
	for range maxDepth {
		schema = s.follow(schema)
		alternatives, _ := schema["anyOf"].([]any)
		next := map[string]any(nil)
		for _, a := range alternatives {
			if option, ok := a.(map[string]any); ok && option["type"] != "null" {
				next = option
				break
			}
		}
		if next == nil {
			return schema
		}
		schema = next
	}
	return nil
}

// follow follows "$ref": "#" and "#/a/b" within the schema.
func (s Schema) follow(schema map[string]any) map[string]any {
	for range maxDepth {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		target := s.root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
			target, _ = target[step].(map[string]any)
		}
		schema = target
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
