// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

// TestMeaning holds replies against a schema before and after it is lowered.
func TestMeaning(t *testing.T) {
	const shape = `{
		"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"size": {"type": "number", "minimum": 1}}, "required": ["size"]}],
		"$defs": {"base": {
			"type": "object", "required": ["kind"], "properties": {"kind": {"const": "box"}, "at": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}
		}}
	}`
	for name, tc := range map[string]struct {
		source, reply  string
		before, strict bool // whether the reply fits the source, and the schema for OpenAI
	}{
		"all is there":              {shape, `{"kind":"box","size":2,"at":"x"}`, true, true},
		"another constant":          {shape, `{"kind":"ball","size":2,"at":"x"}`, false, false},
		"a bound of one part":       {shape, `{"kind":"box","size":0,"at":"x"}`, false, false},
		"what one part requires":    {shape, `{"kind":"box","at":"x"}`, false, false},
		"no branch":                 {shape, `{"kind":"box","size":2,"at":true}`, false, false},
		"an optional one is absent": {shape, `{"kind":"box","size":2}`, true, false},
		"an optional one is null":   {shape, `{"kind":"box","size":2,"at":null}`, false, true},
		"one more property":         {shape, `{"kind":"box","size":2,"at":1,"more":1}`, true, false},
		"an observation": {
			string(observation.ReplySchema()),
			`{"type":"visual_observation","schema":"visual_observation.v1","summary":"s","ocr":[],"elements":[],"relations":[],"issues":[],"uncertainties":[],"external_sources":[]}`,
			true, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			lowered, fault := requireLowered(t, []byte(tc.source), OpenAIStrict)
			if fault != nil {
				t.Fatal(fault)
			}
			if got := accepts(t, []byte(tc.source), tc.reply); got != tc.before {
				t.Errorf("the source accepts it: %t", got)
			}
			if got := accepts(t, lowered, tc.reply); got != tc.strict {
				t.Errorf("the lowered schema accepts it: %t\n%s", got, lowered)
			}
		})
	}
}

// TestWhatALoweredSchemaAcceptsItsSourceAccepts composes schemas and values, the
// same at each run. Where nothing had to be told in a description instead, a
// value that fits the lowered schema must fit the source.
func TestWhatALoweredSchemaAcceptsItsSourceAccepts(t *testing.T) {
	random := rand.New(rand.NewPCG(20260901, 1))
	lowered, accepted := 0, 0
	for range 3000 {
		choices := make([]byte, 80)
		for i := range choices {
			choices[i] = byte(random.UintN(256))
		}
		c := &composer{choices: choices}
		source := plainly(record(append(c.schema(3).members, member{"$defs", record(
			member{"a", c.schema(2)}, member{"b", c.schema(2)}, member{"c", c.schema(1)},
		)})...)).append(nil)
		out, err := Lower(source, Anthropic)
		if err != nil || bytes.Contains(out, []byte(`[`)) && bytes.Contains(out, []byte(`"description":"`)) && bytes.Contains(out, []byte(`]"`)) {
			continue
		}
		lowered++
		before, after := validator(t, source), validator(t, out)
		for range 12 {
			value := compose(random, 3)
			if after.Validate(value) != nil {
				continue
			}
			accepted++
			if err := before.Validate(value); err != nil {
				t.Fatalf("%v fits the lowered schema alone: %v\nfrom %s\nto   %s", value, err, source, out)
			}
		}
	}
	if lowered < 1500 || accepted < 3000 {
		t.Errorf("of %d lowered schemas %d values were accepted: this shows little", lowered, accepted)
	}
}

// plainly is a composed schema without what lowering widens by design, or what
// is not JSON Schema: tuples, oneOf, nullable, a not that is no schema.
func plainly(n *node) *node {
	out := record()
	for _, m := range n.members {
		switch {
		case m.name == "prefixItems" || m.name == "not" || m.name == "nullable" || m.name == "oneOf" || m.name == "items" && m.value.kind == array:
			continue
		case m.name == "properties" || m.name == "$defs":
			props := record()
			for _, p := range m.value.members {
				props = props.with(p.name, below(p.value))
			}
			m.value = props
		case m.name == "items" || m.name == "additionalProperties":
			m.value = below(m.value)
		case m.name == "anyOf" || m.name == "allOf":
			m.value = list(mapped(m.value.items, below)...)
		}
		out = out.with(m.name, m.value)
	}
	return out
}

func below(n *node) *node {
	if n.kind != object {
		return n
	}
	return plainly(n)
}

// compose makes a value of what composed schemas speak of.
func compose(random *rand.Rand, depth int) any {
	scalars := []any{"a", "", "b", "x", "date-time", 1.0, 2.5, 0.0, 3.0, true, false, nil}
	switch pick := random.IntN(10); {
	case pick < 4 || depth == 0:
		return scalars[random.IntN(len(scalars))]
	case pick < 6:
		items := []any{}
		for range random.IntN(3) {
			items = append(items, compose(random, depth-1))
		}
		return items
	}
	members := map[string]any{}
	for _, name := range []string{"a", "b", "title", "$ref"} {
		if random.IntN(2) == 0 {
			members[name] = compose(random, depth-1)
		}
	}
	return members
}

func accepts(t *testing.T, schema []byte, reply string) bool {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(reply), &value); err != nil {
		t.Fatal(err)
	}
	return validator(t, schema).Validate(value) == nil
}

func validator(t *testing.T, schema []byte) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	return resolved
}

func TestDialectsHaveNames(t *testing.T) {
	var names []string
	for to := range dialects {
		names = append(names, to.String())
	}
	slices.Sort(names)
	if want := []string{"Anthropic", "GeminiJSONSchema", "GeminiSchema", "OpenAIStrict"}; !slices.Equal(names, want) {
		t.Errorf("they are %v", names)
	}
	if got := Dialect(99).String(); got != "dialect 99" {
		t.Errorf("an unknown one is %q", got)
	}
}
