// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import "strconv"

// Dialect is a vendor's part of JSON Schema.
type Dialect int

// The dialects.
const (
	// OpenAIStrict is response_format json_schema (Chat Completions) and
	// text.format (Responses) with strict: true.
	OpenAIStrict Dialect = iota + 1
	// Anthropic is output_config.format, and a tool's input_schema with strict: true.
	Anthropic
	// GeminiSchema is generationConfig.responseSchema, Google's own type, after OpenAPI 3.0.
	GeminiSchema
	// GeminiJSONSchema is generationConfig.responseJsonSchema.
	GeminiJSONSchema
)

// String is the dialect's name, as it stands in its definition.
func (d Dialect) String() string {
	if known, ok := dialects[d]; ok {
		return known.name
	}
	return "dialect " + strconv.Itoa(int(d))
}

// recursion says where a dialect has references into themselves.
type recursion int

const (
	nowhere recursion = iota
	anywhere
	inOptional // within a property that is not required
)

// tuples says what becomes of prefixItems.
type tuples int

const (
	anyEntry   tuples = iota // each item fits one of the entries
	firstEntry               // each item fits the first
	keepEntries
)

// dialect is what a vendor takes, as data.
type dialect struct {
	name string
	// keywords are those that are taken beside the ones that say the structure:
	// type, description, enum, anyOf, properties, required and items.
	keywords map[string]bool
	// formats are the values of format that are taken, by type.
	formats map[string][]string
	// enumKinds are the kinds of value that enum takes.
	enumKinds []kind
	// anything stands for a schema that takes every value.
	anything string
	// booleans says that it stands for false as well (behaviour H51).
	booleans bool
	// nullable: null is allowed by nullable: true, types come one by one, and
	// nothing stands beside anyOf. Otherwise type may be a list of scalars' types.
	nullable bool
	// closed: every object says additionalProperties: false.
	closed bool
	// allRequired: every property is required; an optional one may be null instead.
	allRequired bool
	// ordering: objects give the order of their properties in propertyOrdering.
	ordering bool
	// oneItem: minItems is 0 or 1.
	oneItem bool
	// rootObject: the root is an object, no union.
	rootObject bool
	tuples     tuples
	recursion  recursion
	limits     limits
}

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// scalars stands for any value where a type must be said and objects are closed.
const scalars = `{"type":["string","number","boolean","null"]}`

// dialects come from the vendors' references, read in 2026: OpenAI, "Structured
// model outputs", supported schemas; Anthropic, "Structured outputs", JSON
// Schema limitations, and the schema helper of its SDKs; Google, "Schema" and
// "GenerationConfig.responseJsonSchema" of the Gemini API.
var dialects = map[Dialect]dialect{
	OpenAIStrict: {
		name: "OpenAIStrict",
		keywords: set("pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
			"minItems", "maxItems"),
		formats:     map[string][]string{"string": {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}},
		enumKinds:   []kind{text, number, boolean, null},
		anything:    scalars,
		closed:      true,
		allRequired: true,
		rootObject:  true,
		recursion:   anywhere,
		limits:      limits{levels: 10, properties: 5000, characters: 120_000, enumValues: 1000, longEnum: 250, longEnumCharacters: 15_000},
	},
	Anthropic: {
		name:      "Anthropic",
		keywords:  set("title", "pattern", "format", "minItems"),
		formats:   map[string][]string{"string": {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}},
		enumKinds: []kind{text, number, boolean, null},
		anything:  scalars,
		closed:    true,
		oneItem:   true,
		limits:    limits{optional: 24, unions: 16},
	},
	GeminiSchema: {
		name: "GeminiSchema",
		keywords: set("title", "example", "pattern", "format", "minimum", "maximum", "minLength", "maxLength",
			"minItems", "maxItems", "minProperties", "maxProperties"),
		// The service refuses other formats of strings.
		formats:   map[string][]string{"string": {"date-time"}, "number": {"float", "double"}, "integer": {"int32", "int64"}},
		enumKinds: []kind{text},
		anything:  `{"type":"object"}`,
		booleans:  true,
		nullable:  true,
		ordering:  true,
		tuples:    firstEntry,
	},
	GeminiJSONSchema: {
		name:     "GeminiJSONSchema",
		keywords: set("title", "format", "minimum", "maximum", "minItems", "maxItems", "additionalProperties"),
		formats: map[string][]string{
			"string": {"date-time", "date", "time"}, "number": {"float", "double"}, "integer": {"int32", "int64"},
		},
		enumKinds: []kind{text, number},
		anything:  `{}`,
		ordering:  true,
		tuples:    keepEntries,
		recursion: inOptional,
	},
}

// limits are a vendor's bounds of one schema; 0 is none.
type limits struct {
	levels             int // of objects and arrays within each other
	properties         int
	characters         int // of all names and enum values
	enumValues         int // of all enums
	longEnum           int // an enum of more values has at most
	longEnumCharacters int // so many characters
	optional           int // properties that are not required
	unions             int // anyOf, or a type that is a list
}

// count is what a schema has of what limits bound.
type count struct{ properties, characters, enumValues, longest, optional, unions int }

// check fails when out is over a limit.
func (m limits) check(out *node) error {
	var c count
	depth := m.count(out, &c)
	if defs := out.get("$defs"); defs != nil {
		for _, def := range defs.members {
			c.characters += len(def.name)
			depth = max(depth, m.count(def.value, &c))
		}
	}
	at := place{path: "#"}
	if m.levels > 0 && depth > m.levels {
		return at.error(TooDeep, "%d levels, and the dialect takes %d", depth, m.levels)
	}
	for _, bound := range []struct {
		what     string
		has, max int
	}{
		{"properties", c.properties, m.properties},
		{"characters in names and enum values", c.characters, m.characters},
		{"enum values", c.enumValues, m.enumValues},
		{"characters in a long enum", c.longest, m.longEnumCharacters},
		{"optional properties", c.optional, m.optional},
		{"unions", c.unions, m.unions},
	} {
		if bound.max > 0 && bound.has > bound.max {
			return at.error(TooLarge, "%d %s, and the dialect takes %d", bound.has, bound.what, bound.max)
		}
	}
	return nil
}

// count adds up a schema and returns its levels.
func (m limits) count(n *node, c *count) int {
	var depth int
	if branches := n.get("anyOf"); branches != nil {
		c.unions++
		for _, b := range branches.items {
			depth = max(depth, m.count(b, c))
		}
	}
	if t := n.get("type"); t != nil && t.kind == array {
		c.unions++
	}
	if values := n.get("enum"); values != nil {
		characters := 0
		for _, v := range values.items {
			characters += len(v.text)
		}
		c.enumValues += len(values.items)
		c.characters += characters
		if m.longEnum > 0 && len(values.items) > m.longEnum {
			c.longest = max(c.longest, characters)
		}
	}
	if props := n.get("properties"); props != nil {
		required := 0
		if r := n.get("required"); r != nil {
			required = len(r.items)
		}
		c.properties += len(props.members)
		c.optional += len(props.members) - required
		for _, p := range props.members {
			c.characters += len(p.name)
			depth = max(depth, m.count(p.value, c))
		}
	}
	if items := n.get("items"); items != nil {
		depth = max(depth, m.count(items, c))
	}
	if t := n.get("type"); t != nil && (t.text == "object" || t.text == "array") {
		depth++
	}
	return depth
}
