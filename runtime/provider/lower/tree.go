// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kind is a kind of JSON value.
type kind byte

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// node is a JSON value whose members stand in order. Nodes are never changed
// once they are shared: with and without return others.
type node struct {
	kind    kind
	text    string // a text's value, a number's or boolean's literal
	items   []*node
	members []member
	// notes are what a merge could not keep, for the description.
	notes []string
}

type member struct {
	name  string
	value *node
}

// parse reads a document within the bounds.
func parse(source []byte) (*node, error) {
	at := place{path: "#"}
	if len(source) > MaxSource {
		return nil, at.error(TooLarge, "%d bytes, over %d", len(source), MaxSource)
	}
	if !json.Valid(source) {
		return nil, at.error(Malformed, "not one JSON document")
	}
	decoder := json.NewDecoder(bytes.NewReader(source))
	decoder.UseNumber()
	return read(decoder, at)
}

// read reads one value of a valid document.
func read(decoder *json.Decoder, at place) (*node, error) {
	if at.depth > maxValues {
		return nil, at.error(TooDeep, "over %d values within each other", maxValues)
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, at.error(Malformed, "not JSON")
	}
	switch v := token.(type) {
	case bool:
		return truth(v), nil
	case json.Number:
		return &node{kind: number, text: v.String()}, nil
	case string:
		return word(v), nil
	case json.Delim:
		if v == '[' {
			return readArray(decoder, at)
		}
		return readObject(decoder, at)
	}
	return &node{kind: null}, nil
}

func readArray(decoder *json.Decoder, at place) (*node, error) {
	n := &node{kind: array}
	for decoder.More() {
		item, err := read(decoder, at.in(strconv.Itoa(len(n.items))))
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := decoder.Token() // the closing bracket
	return n, err
}

func readObject(decoder *json.Decoder, at place) (*node, error) {
	n := &node{kind: object}
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, at.error(Malformed, "not JSON")
		}
		name := fmt.Sprint(token)
		if seen[name] {
			return nil, at.in(name).error(Malformed, "the name stands twice")
		}
		seen[name] = true
		value, err := read(decoder, at.in(name))
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member{name, value})
	}
	_, err := decoder.Token() // the closing brace
	return n, err
}

func truth(v bool) *node          { return &node{kind: boolean, text: strconv.FormatBool(v)} }
func word(v string) *node         { return &node{kind: text, text: v} }
func list(items ...*node) *node   { return &node{kind: array, items: items} }
func record(m ...member) *node    { return &node{kind: object, members: m} }
func allOf(parts ...*node) *node  { return record(member{"allOf", list(parts...)}) }
func count10(n int) *node         { return &node{kind: number, text: strconv.Itoa(n)} }
func words(values []string) *node { return list(mapped(values, word)...) }

func mapped[A, B any](from []A, f func(A) B) []B {
	to := make([]B, len(from))
	for i, a := range from {
		to[i] = f(a)
	}
	return to
}

// never reports whether the schema takes no value.
func (n *node) never() bool { return n.kind == boolean && n.text == "false" }

// always reports whether the schema is true.
func (n *node) always() bool { return n.kind == boolean && n.text == "true" }

// get is a member's value, nil when there is none.
func (n *node) get(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (n *node) index(name string) int {
	return slices.IndexFunc(n.members, func(m member) bool { return m.name == name })
}

// with is n with a member set, in its place or at the end.
func (n *node) with(name string, value *node) *node {
	out := *n
	if i := n.index(name); i >= 0 {
		out.members = slices.Clone(n.members)
		out.members[i].value = value
	} else {
		out.members = append(slices.Clip(n.members), member{name, value})
	}
	return &out
}

// without is n with no such members.
func (n *node) without(names ...string) *node {
	if !slices.ContainsFunc(names, func(name string) bool { return n.index(name) >= 0 }) {
		return n
	}
	out := *n
	out.members = slices.DeleteFunc(slices.Clone(n.members), func(m member) bool { return slices.Contains(names, m.name) })
	return &out
}

// renamed is n with a member called otherwise, in its place.
func (n *node) renamed(from, to string, value *node) *node {
	out := n.without(to)
	if from == to {
		out = n
	}
	cloned := *out
	cloned.members = slices.Clone(out.members)
	cloned.members[cloned.index(from)] = member{to, value}
	return &cloned
}

// noting is n with a note more.
func (n *node) noting(notes ...string) *node {
	out := *n
	out.notes = append(slices.Clip(n.notes), notes...)
	return &out
}

// append writes n in its shortest form.
func (n *node) append(b []byte) []byte {
	switch n.kind {
	case null:
		return append(b, "null"...)
	case text:
		return appendText(b, n.text)
	case array:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	case object:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = m.value.append(append(appendText(b, m.name), ':'))
		}
		return append(b, '}')
	}
	return append(b, n.text...)
}

// String is n as JSON.
func (n *node) String() string { return string(n.append(nil)) }

// appendText writes a string as JSON; <, > and & stay as they are.
func appendText(b []byte, s string) []byte {
	plain := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string into memory
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}
