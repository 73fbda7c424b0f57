// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

// TestH51 is behaviour H51: a boolean schema becomes an object, tuple items their first.
func TestH51(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"a property that is true":  {`{"type":"object","properties":{"a":true}}`, `{"type":"object","properties":{"a":{"type":"object"}},"propertyOrdering":["a"]}`},
		"a property that is false": {`{"type":"object","properties":{"a":false}}`, `{"type":"object","properties":{"a":{"type":"object"}},"propertyOrdering":["a"]}`},
		"items that are true":      {`{"type":"array","items":true}`, `{"type":"array","items":{"type":"object"}}`},
		"a root that is true":      {`true`, `{"type":"object"}`},
		"a root that is false":     {`false`, `{"type":"object"}`},
		"an empty schema":          {`{}`, `{"type":"object"}`},
		"items that are a list":    {`{"type":"array","items":[{"type":"string"},{"type":"number"}]}`, `{"type":"array","items":{"type":"string"}}`},
		"prefixItems":              {`{"type":"array","prefixItems":[{"const":"a"},{"type":"number"}]}`, `{"type":"array","items":{"type":"string","enum":["a"]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if out, fault := requireLowered(t, []byte(tc.source), GeminiSchema); string(out) != tc.want {
				t.Errorf("got %s (%v), want %s", out, fault, tc.want)
			}
		})
	}
}

func TestLower(t *testing.T) {
	for name, tc := range map[string]struct {
		to           Dialect
		source, want string
	}{
		"an allOf of anyOfs is each with each, without what contradicts": {
			Anthropic, `{"allOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]},{"anyOf":[{"type":"number"},{"type":"boolean"}]}]}`,
			`{"type":"integer"}`,
		},
		"what one part of an allOf forbids is left out": {
			Anthropic,
			`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false},{"properties":{"b":{"type":"string"}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`,
		},
		"what one part of an allOf says of other properties holds for them": {
			Anthropic,
			`{"allOf":[{"type":"object","additionalProperties":{"type":"string"}},{"required":["b"],"properties":{"b":{"enum":[1,"x"]}}}]}`,
			`{"type":"object","additionalProperties":false,"required":["b"],"properties":{"b":{"enum":["x"],"type":"string"}},"description":"[additionalProperties: {\"type\":\"string\"}]"}`,
		},
		"two patterns: the second is told": {
			OpenAIStrict, `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^a","allOf":[{"pattern":"b$"}]}}}`,
			`{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^a","description":"[pattern: b$]"}},"additionalProperties":false}`,
		},
		"a nullable reference": {
			GeminiSchema, `{"nullable":true,"description":"d","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"string"}}}`,
			`{"description":"d","type":"string","nullable":true}`,
		},
		"a required property that is not described": {
			OpenAIStrict, `{"required":["a"]}`,
			`{"type":"object","required":["a"],"properties":{"a":{"type":["string","number","boolean","null"]}},"additionalProperties":false}`,
		},
		"branches that come out alike are one": {
			GeminiSchema, `{"anyOf":[{"type":"string","format":"uri"},{"type":"string","description":"[format: uri]"}]}`,
			`{"type":"string","description":"[format: uri]"}`,
		},
		"a null type alone": {GeminiSchema, `{"type":"null"}`, `{"type":"null"}`},
		"a reference beside another demand is merged with it": {
			Anthropic, `{"$ref":"#/$defs/a","minItems":1,"$defs":{"a":{"type":"array","items":{"type":"null"}}}}`,
			`{"minItems":1,"type":"array","items":{"type":"null"}}`,
		},
		"a title where there is no title": {
			OpenAIStrict, `{"type":"object","title":"T","properties":{}}`,
			`{"type":"object","description":"T","properties":{},"required":[],"additionalProperties":false}`,
		},
		"a root that may be null, where it must be an object": {
			OpenAIStrict, `{"description":"d","anyOf":[{"type":"null"},{"type":"object"}]}`,
			`{"type":"object","properties":{},"required":[],"additionalProperties":false,"description":"d"}`,
		},
		"recursion is kept where there is recursion": {
			OpenAIStrict, `{"type":"object","properties":{"next":{"description":"lost","$ref":"#"}}}`,
			`{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}`,
		},
		"recursion within what carries a description": {
			OpenAIStrict, `{"type":"object","required":["next"],"properties":{"next":{"description":"lost","allOf":[{"$ref":"#"}]}}}`,
			`{"type":"object","required":["next"],"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`,
		},
		"what stands beside an anyOf of which one branch is left": {
			Anthropic, `{"description":"d","type":"number","multipleOf":3,"anyOf":[{"type":"string"},{"minimum":1,"description":"e"}]}`,
			`{"description":"d [multipleOf: 3; minimum: 1]","type":"number"}`,
		},
		"recursion through a part of allOf": {
			GeminiJSONSchema, `{"$ref":"#/$defs/b","$defs":{"b":{"allOf":[{"$ref":"#/$defs/a"}]},"a":{"type":"object","required":["x"],"properties":{"x":{"$ref":"#/$defs/b"}}}}}`,
			`{"type":"object","properties":{"x":{"$ref":"#/$defs/b"}},"propertyOrdering":["x"],"$defs":{"b":{"type":"object","properties":{"x":{"$ref":"#/$defs/b"}},"propertyOrdering":["x"]}}}`,
		},
		"a schema that is used in two places and in none of its own is no recursion": {
			GeminiSchema, `{"allOf":[{"$ref":"#/$defs/a"}],"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"object"}}}`,
			`{"properties":{"x":{"type":"object"}},"type":"object","propertyOrdering":["x"]}`,
		},
		"long constraints are not told": {
			Anthropic, `{"type":"string","not":{"pattern":"` + strings.Repeat("x", 200) + `"},"maxLength":3}`,
			`{"type":"string","description":"[maxLength: 3]"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if out, fault := requireLowered(t, []byte(tc.source), tc.to); string(out) != tc.want {
				t.Errorf("got  %s (%v)\nwant %s", out, fault, tc.want)
			}
		})
	}
}

func TestSchemasThatCannotBeLowered(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, MaxDepth+1) + `{}` + strings.Repeat(`}`, MaxDepth+1)
	objects := strings.Repeat(`{"type":"object","properties":{"a":`, 11) + `{"type":"string"}` + strings.Repeat(`}}`, 11)
	doubling := `{"$ref":"#/$defs/d0","$defs":{"d40":{"type":"string"}`
	for i := range 40 {
		doubling += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}
	optional := `{"type":"object","properties":{"p":{"type":"string"}`
	for i := range 25 {
		optional += fmt.Sprintf(`,"p%d":{"type":"string"}`, i)
	}
	for name, tc := range map[string]struct {
		to     Dialect
		source string
		reason Reason
		path   string
	}{
		"no JSON":                                       {Anthropic, `{"type":`, Malformed, "#"},
		"two documents":                                 {Anthropic, `{} {}`, Malformed, "#"},
		"nothing":                                       {Anthropic, ``, Malformed, "#"},
		"a list":                                        {Anthropic, `[]`, Malformed, "#"},
		"a name twice":                                  {Anthropic, `{"type":"string","type":"null"}`, Malformed, "#/type"},
		"no type of JSON Schema":                        {Anthropic, `{"type":"text"}`, Malformed, "#/type"},
		"properties that are a list":                    {Anthropic, `{"type":"object","properties":[]}`, Malformed, "#/properties"},
		"required that is no list":                      {Anthropic, `{"type":"object","required":true}`, Malformed, "#/required"},
		"a property that is a string":                   {Anthropic, `{"properties":{"a/b":"string"}}`, Malformed, "#/properties/a~1b"},
		"an enum without values":                        {Anthropic, `{"enum":[]}`, Malformed, "#/enum"},
		"an anyOf without branches":                     {Anthropic, `{"anyOf":[]}`, Malformed, "#/anyOf"},
		"an allOf that is no list":                      {Anthropic, `{"allOf":{}}`, Malformed, "#/allOf"},
		"a minimum that is no number":                   {OpenAIStrict, `{"properties":{"a":{"type":"number","minimum":"0"}}}`, Malformed, "#/properties/a/minimum"},
		"a count that is a fraction":                    {GeminiSchema, `{"type":"string","minLength":1.5}`, Malformed, "#/minLength"},
		"too many bytes":                                {Anthropic, `{"description":"` + strings.Repeat("x", MaxSource) + `"}`, TooLarge, "#"},
		"too many values within each other":             {Anthropic, strings.Repeat("[", 2000) + strings.Repeat("]", 2000), TooDeep, ""},
		"too many schemas within each other":            {GeminiSchema, deep, TooDeep, ""},
		"more levels than OpenAI takes":                 {OpenAIStrict, objects, TooDeep, "#"},
		"more optional properties than Anthropic takes": {Anthropic, optional + `}}`, TooLarge, "#"},
		"a small source that becomes a large result":    {GeminiSchema, doubling + `}}`, TooLarge, ""},
		"a reference to another document":               {Anthropic, `{"$ref":"https://example.com/a.json"}`, UnresolvedReference, "#/$ref"},
		"a reference to nothing":                        {Anthropic, `{"properties":{"a":{"$ref":"#/$defs/a"}}}`, UnresolvedReference, "#/properties/a/$ref"},
		"a dynamic reference":                           {Anthropic, `{"$dynamicRef":"#a"}`, UnresolvedReference, "#/$dynamicRef"},
		"a reference to itself alone":                   {OpenAIStrict, `{"$ref":"#"}`, Recursive, "#/$ref"},
		"recursion where there is none":                 {GeminiSchema, `{"properties":{"a":{"type":"array","items":{"$ref":"#"}}}}`, Recursive, "#/properties/a/items/$ref"},
		"recursion for Anthropic":                       {Anthropic, `{"properties":{"a":{"$ref":"#"}}}`, Recursive, "#/properties/a/$ref"},
		"recursion that is not optional":                {GeminiJSONSchema, `{"type":"array","items":{"$ref":"#"}}`, Recursive, "#"},
		"types that contradict":                         {Anthropic, `{"allOf":[{"type":"string"},{"type":"array"}]}`, Unsatisfiable, "#"},
		"values that contradict":                        {Anthropic, `{"properties":{"a":{"allOf":[{"const":1},{"enum":[2,3]}]}}}`, Unsatisfiable, "#/properties/a"},
		"a required property that is forbidden": {
			Anthropic, `{"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}},"required":["b"]}]}`,
			Unsatisfiable, "#/properties/b",
		},
		"branches of which none fits":                  {Anthropic, `{"type":"string","anyOf":[{"type":"null"},{"type":"array"}]}`, Unsatisfiable, "#"},
		"a root that nothing fits":                     {Anthropic, `false`, Unsatisfiable, "#"},
		"a string, where it must be an object":         {OpenAIStrict, `{"type":"string"}`, RootNotObject, "#"},
		"several branches, where it must be an object": {OpenAIStrict, `{"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}`, RootNotObject, "#"},
		"an unknown dialect":                           {Dialect(0), `{}`, UnknownDialect, "#"},
	} {
		t.Run(name, func(t *testing.T) {
			out, fault := requireLowered(t, []byte(tc.source), tc.to)
			if fault == nil {
				t.Fatalf("lowered to %.200s", out)
			}
			if fault.Reason != tc.reason || tc.path != "" && fault.Path != tc.path {
				t.Errorf("%v, want %s at %s", fault, tc.reason, tc.path)
			}
			if len(fault.Error()) > 2000 && tc.path != "" {
				t.Errorf("the error has %d bytes", len(fault.Error()))
			}
		})
	}
}

func BenchmarkReplySchema(b *testing.B) {
	source := observation.ReplySchema()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Lower(source, GeminiSchema); err != nil {
			b.Fatal(err)
		}
	}
}
