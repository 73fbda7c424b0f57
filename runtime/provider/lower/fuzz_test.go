// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

// requireLowered lowers a schema into a dialect and holds the result against
// all that is promised: a typed error, or bounded JSON that obeys the dialect
// and is not changed by another lowering.
func requireLowered(t *testing.T, source []byte, to Dialect) ([]byte, *Error) {
	t.Helper()
	out, err := Lower(source, to)
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Reason == "" || e.Path == "" || out != nil {
			t.Fatalf("%v: %v beside %q", to, err, out)
		}
		return nil, e
	}
	if !json.Valid(out) || len(out) > MaxResult {
		t.Fatalf("%v: %d bytes, valid: %t", to, len(out), json.Valid(out))
	}
	for _, problem := range check(to, out) {
		t.Errorf("%v: %s\n of %s\nfrom %s", to, problem, out, source)
	}
	again, err := Lower(out, to)
	if err != nil || !bytes.Equal(again, out) {
		t.Errorf("%v: lowering again changes it (%v)\nfrom %s\nonce  %s\ntwice %s", to, err, source, out, again)
	}
	return out, nil
}

func FuzzLower(f *testing.F) {
	sources, err := filepath.Glob("testdata/*/source.json")
	if err != nil || len(sources) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Add(observation.ReplySchema())
	f.Add(observation.ResultSchema())
	for _, seed := range []string{
		`true`, `{}`, `[]`, `{"type":"object","required":["a"]}`, `{"enum":[1,"a",null,true,[],{}],"nullable":true}`,
		`{"properties":{"a":{"$ref":"#"}},"oneOf":[{"required":["a"]},{"type":"array","items":[true,false]}]}`,
		`{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"type":"object"}}}`,
		`{"type":["OBJECT","null"],"properties":{"title":{"type":["string","array","null"],"maxLength":1e1}}}`,
		`{"type":"array","prefixItems":[{"type":"string"},false],"items":false,"minItems":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		for to := range dialects {
			_, _ = requireLowered(t, source, to)
		}
	})
}

// FuzzLowerComposed composes schemas of keywords and values that belong
// together, which bytes at random seldom do.
func FuzzLowerComposed(f *testing.F) {
	f.Add([]byte("0123456789"))
	f.Add([]byte{3, 9, 0, 1, 7, 20, 5, 5, 40, 2, 0, 13, 1, 1, 8, 30, 4, 2, 17, 60, 6, 3, 3, 90, 200, 120, 33, 64})
	f.Fuzz(func(t *testing.T, choices []byte) {
		c := &composer{choices: choices}
		source := record(append(c.schema(4).members, member{"$defs", record(
			member{"a", c.schema(3)}, member{"b", c.schema(3)}, member{"c", c.schema(2)},
		)})...).append(nil)
		for to := range dialects {
			_, _ = requireLowered(t, source, to)
		}
	})
}

// composer turns bytes into a schema; when there are no more it chooses the first.
type composer struct{ choices []byte }

func (c *composer) choose(n int) int {
	if len(c.choices) == 0 {
		return 0
	}
	v := int(c.choices[0]) % n
	c.choices = c.choices[1:]
	return v
}

// schema composes a schema of up to depth levels; an object always.
func (c *composer) schema(depth int) *node {
	out := record()
	for range c.choose(5) {
		m := c.keyword(depth)
		out = out.with(m.name, m.value)
	}
	return out
}

func (c *composer) any(depth int) *node {
	switch c.choose(8) {
	case 0:
		return truth(true)
	case 1:
		return truth(false)
	case 2, 3:
		return record(member{"$ref", word([]string{"#/$defs/a", "#/$defs/b", "#/$defs/c", "#"}[c.choose(4)])})
	}
	if depth == 0 {
		return record(member{"type", word(typeNames[c.choose(len(typeNames))])})
	}
	return c.schema(depth - 1)
}

func (c *composer) value() *node {
	return []*node{word("a"), word(""), word("b"), count10(1), {kind: number, text: "2.5"}, truth(true), {}, list(count10(1)),
		record(member{"a", word("x")})}[c.choose(9)]
}

func (c *composer) several(n int, f func() *node) *node {
	out := list()
	for range 1 + c.choose(n) {
		out.items = append(out.items, f())
	}
	return out
}

func (c *composer) name() *node { return word([]string{"a", "b", "title", "$ref"}[c.choose(4)]) }

func (c *composer) keyword(depth int) member {
	schema := func() *node { return c.any(depth) }
	typeName := func() *node { return word(typeNames[c.choose(len(typeNames))]) }
	number := []string{"minimum", "maximum", "exclusiveMinimum", "multipleOf", "minItems", "maxItems", "minLength", "maxProperties"}
	switch c.choose(16) {
	case 0:
		return member{"type", typeName()}
	case 1:
		return member{"type", c.several(3, typeName)}
	case 2, 3:
		props := record()
		for range 1 + c.choose(3) {
			props = props.with(c.name().text, schema())
		}
		return member{"properties", props}
	case 4:
		return member{"required", c.several(2, c.name)}
	case 5:
		return member{"additionalProperties", schema()}
	case 6:
		return member{"items", schema()}
	case 7:
		return member{[]string{"prefixItems", "items"}[c.choose(2)], c.several(2, schema)}
	case 8, 9:
		return member{[]string{"anyOf", "oneOf"}[c.choose(2)], c.several(3, schema)}
	case 10:
		return member{"allOf", c.several(2, schema)}
	case 11:
		return member{"enum", c.several(3, c.value)}
	case 12:
		return member{[]string{"const", "default", "not"}[c.choose(3)], c.value()}
	case 13:
		return member{"nullable", truth(c.choose(2) == 0)}
	case 14:
		return member{number[c.choose(len(number))], count10(1 + c.choose(3))}
	}
	return member{[]string{"description", "title", "format", "pattern"}[c.choose(4)], word("date-time")}
}
