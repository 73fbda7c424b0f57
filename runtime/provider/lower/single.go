// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"slices"
	"strconv"
)

// single lowers a flat schema for types that stand together; nil for any value.
func (l *lowering) single(n *node, types []string, at place) (*node, error) {
	p := &parts{lowering: l, source: n, types: types, at: at}
	for _, step := range []func() error{p.typed, p.enum, p.object, p.array} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	out, err := p.assemble()
	if err != nil {
		return nil, err
	}
	weight := 0
	for _, m := range out.members {
		weight += len(m.name) + len(m.value.text) + 4
		if m.name == "enum" || m.name == "example" {
			weight += len(m.value.String())
		}
		if m.name == "properties" {
			for _, property := range m.value.members {
				weight += len(property.name)
			}
		}
	}
	return out, l.weigh(weight, at)
}

// parts are the members of a lowered schema that its structure asks for, and the
// notes about what it could not say.
type parts struct {
	*lowering
	source *node
	types  []string
	at     place
	made   []member
	notes  []string
}

func (p *parts) is(t string) bool { return slices.Contains(p.types, t) }

func (p *parts) make(name string, value *node) { p.made = append(p.made, member{name, value}) }

// typed says the type.
func (p *parts) typed() error {
	switch {
	case len(p.types) == 0:
		anything, err := parse([]byte(p.anything))
		if err != nil {
			return err
		}
		p.made = append(p.made, anything.members...)
	case p.nullable:
		p.make("type", word(p.types[0]))
		if len(p.types) > 1 {
			p.make("nullable", truth(true))
		}
	case len(p.types) == 1:
		p.make("type", word(p.types[0]))
	default:
		p.make("type", words(p.types))
	}
	return nil
}

// enum says which values there are, as far as the dialect can: Google's own
// type takes strings alone, and none that is empty.
func (p *parts) enum() error {
	values := p.source.get("enum")
	if values == nil || len(p.types) == 1 && p.types[0] == "null" {
		return nil
	}
	var all, taken []*node
	for _, v := range values.items {
		if !v.fits(p.types) || v.kind == null && !slices.Contains(p.enumKinds, null) {
			continue
		}
		all = append(all, v)
		if slices.Contains(p.enumKinds, v.kind) && (!p.nullable || v.text != "") {
			taken = append(taken, v)
		}
	}
	if len(taken) == len(all) && len(taken) > 0 {
		p.make("enum", list(distinctValues(taken)...))
		return nil
	}
	p.notes = append(p.notes, noteOf(member{"enum", list(all...)}))
	if !p.keywords["minimum"] {
		return nil
	}
	var low, high *node
	for _, v := range all {
		f, ok := v.float()
		if !ok {
			return nil
		}
		if lowest, _ := orZero(low).float(); low == nil || f < lowest {
			low = v
		}
		if highest, _ := orZero(high).float(); high == nil || f > highest {
			high = v
		}
	}
	if low != nil && p.source.get("minimum") == nil && p.source.get("maximum") == nil {
		p.make("minimum", low)
		p.make("maximum", high)
	}
	return nil
}

func orZero(n *node) *node {
	if n == nil {
		return &node{kind: number, text: "0"}
	}
	return n
}

func distinctValues(values []*node) []*node {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(values), func(v *node) bool {
		before := seen[v.String()]
		seen[v.String()] = true
		return before
	})
}

// object says which properties there are.
func (p *parts) object() error {
	if !p.is("object") {
		return nil
	}
	props, required, err := p.properties()
	if err != nil {
		return err
	}
	if len(props) > 0 || p.closed {
		p.make("properties", record(props...))
	}
	if len(required) > 0 || p.allRequired {
		p.make("required", words(required))
	}
	rest := p.source.get("additionalProperties")
	switch {
	case p.closed:
		p.make("additionalProperties", truth(false))
	case p.keywords["additionalProperties"] && rest != nil:
		out, err := p.rest(rest)
		if err != nil {
			return err
		}
		p.make("additionalProperties", out)
	}
	if rest != nil && rest.kind == object && !p.keywords["additionalProperties"] {
		p.notes = append(p.notes, noteOf(member{"additionalProperties", rest}))
	}
	if p.ordering && len(props) > 0 {
		p.make("propertyOrdering", ordering(p.source.get("propertyOrdering"), props))
	}
	return nil
}

func (p *parts) rest(rest *node) (*node, error) {
	if rest.kind == boolean {
		return rest, nil
	}
	return p.schema(rest, p.at.in("additionalProperties"))
}

// properties lowers the properties and says which are required.
func (p *parts) properties() (props []member, required []string, err error) {
	source, demanded := p.source.get("properties"), p.source.get("required")
	if source != nil && source.kind != object {
		return nil, nil, p.at.in("properties").error(Malformed, "not an object")
	}
	for _, name := range entriesOf(demanded) {
		if name.kind != text {
			return nil, nil, p.at.in("required").error(Malformed, "not a list of names")
		}
	}
	if demanded != nil && demanded.kind != array {
		return nil, nil, p.at.in("required").error(Malformed, "not a list of names")
	}
	required = unique(names(demanded))
	wanted := set(required...)
	all := slices.Clip(membersOf(source))
	if source != nil || len(required) > 0 {
		if all, err = p.withRequired(all, required); err != nil {
			return nil, nil, err
		}
	}
	for _, m := range all {
		at := p.at.in("properties", m.name)
		if p.allRequired && !wanted[m.name] {
			at = at.deeper() // for the null beside it
		}
		out, err := p.schema(m.value, at)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case out.never() && wanted[m.name]:
			return nil, nil, at.error(Unsatisfiable, "a required property that nothing fits")
		case out.never():
			continue
		case p.allRequired && !wanted[m.name]:
			required = append(required, m.name)
			out = optional(out)
		case p.recursion == inOptional && wanted[m.name] && holdsReference(out):
			required = slices.DeleteFunc(required, func(name string) bool { return name == m.name })
		}
		props = append(props, member{m.name, out})
	}
	return props, required, nil
}

// withRequired adds the properties that are required and not described.
func (p *parts) withRequired(all []member, required []string) ([]member, error) {
	described := make(map[string]bool, len(all))
	for _, m := range all {
		described[m.name] = true
	}
	rest := p.source.rest()
	for _, name := range required {
		switch {
		case described[name]:
			continue
		case rest != nil && rest.never():
			return nil, p.at.in("required").error(Unsatisfiable, "%.200q is required, and not allowed", name)
		case rest == nil:
			all = append(all, member{name, truth(true)})
		default:
			all = append(all, member{name, rest})
		}
	}
	return all, nil
}

// optional lets a property be null that the source lets be absent.
func optional(out *node) *node {
	nothing := record(member{"type", word("null")})
	if branches := out.get("anyOf"); branches != nil {
		for _, b := range branches.items {
			if takesNull(b) {
				return out
			}
		}
		return out.with("anyOf", list(append(slices.Clip(branches.items), nothing)...))
	}
	t := out.get("type")
	switch {
	case takesNull(out):
		return out
	case t == nil || t.text == "object" || t.text == "array":
		return record(member{"anyOf", list(out, nothing)})
	case t.kind == array:
		out = out.with("type", list(append(slices.Clip(t.items), word("null"))...))
	default:
		out = out.with("type", list(t, word("null")))
	}
	if values := out.get("enum"); values != nil {
		out = out.with("enum", list(append(slices.Clip(values.items), &node{})...))
	}
	return out
}

// takesNull reports whether a lowered schema's own type says null.
func takesNull(out *node) bool {
	t := out.get("type")
	return t != nil && (t.text == "null" || slices.ContainsFunc(t.items, func(t *node) bool { return t.text == "null" }))
}

// ordering is the order of the properties: the source's, when that names each
// of them once, else that in which they stand.
func ordering(source *node, props []member) *node {
	order := mapped(props, func(m member) string { return m.name })
	if source != nil && source.kind == array {
		given, known := names(source), set(order...)
		strange := slices.ContainsFunc(given, func(name string) bool { return !known[name] })
		if len(given) == len(order) && len(unique(given)) == len(given) && !strange {
			return words(given)
		}
	}
	return words(order)
}

// array says which items there are.
func (p *parts) array() error {
	if !p.is("array") {
		return nil
	}
	prefix, items := p.source.get("prefixItems"), p.source.get("items")
	if prefix != nil && prefix.kind != array {
		return p.at.in("prefixItems").error(Malformed, "not a list of schemas")
	}
	entries := entriesOf(prefix)
	if items != nil && items.never() {
		p.bounded(len(entries))
		items = nil
	}
	if len(entries) > 0 {
		switch p.tuples {
		case keepEntries:
			return p.entries(entries, items)
		case firstEntry:
			items = entries[0]
		case anyEntry:
			if items != nil {
				entries = append(slices.Clip(entries), items)
			}
			items = record(member{"anyOf", list(entries...)})
		}
	}
	return p.items(items)
}

// items says what each item is.
func (p *parts) items(items *node) error {
	if items == nil {
		items = truth(true)
	}
	out, err := p.schema(items, p.at.in("items"))
	if err != nil {
		return err
	}
	if out.never() {
		p.bounded(0)
		out, err = p.schema(truth(true), p.at.in("items"))
	}
	p.make("items", out)
	return err
}

// entries says what the first items are, each, and what the others are.
func (p *parts) entries(entries []*node, items *node) error {
	outs := make([]*node, 0, len(entries))
	for i, entry := range entries {
		out, err := p.schema(entry, p.at.in("prefixItems", strconv.Itoa(i)))
		if err != nil {
			return err
		}
		if out.never() {
			p.bounded(i)
			break
		}
		outs = append(outs, out)
	}
	if len(outs) == 0 {
		return p.items(nil)
	}
	p.make("prefixItems", list(outs...))
	if items == nil || len(outs) < len(entries) {
		return nil
	}
	return p.items(items)
}

// bounded says that there are no more items than n.
func (p *parts) bounded(n int) {
	bound := member{"maxItems", count10(n)}
	if has, ok := orZero(p.source.get("maxItems")).float(); ok && p.source.get("maxItems") != nil && has <= float64(n) {
		return
	}
	if p.keywords["maxItems"] {
		p.made = append(p.made, bound)
	} else {
		p.notes = append(p.notes, noteOf(bound))
	}
}

// assemble puts the parts where the source has them, with what else it says.
func (p *parts) assemble() (*node, error) {
	made := map[string]*node{}
	for _, m := range p.made {
		made[m.name] = m.value
	}
	out := record()
	put := func(name string) {
		if value := made[name]; value != nil {
			out = out.with(name, value)
		}
	}
	if p.source.get("type") == nil {
		put("type")
		put("nullable")
	}
	about := ""
	for _, m := range p.source.members {
		if made[m.name] != nil {
			put(m.name)
			if m.name == "type" {
				put("nullable")
			}
			continue
		}
		if m.name == "description" || m.name == "title" && about == "" && !p.keywords["title"] {
			about = m.name
			out = out.with("description", word("")) // its place
			continue
		}
		value, err := p.other(m)
		if err != nil {
			return nil, err
		}
		if value != nil {
			out = out.with(m.name, value)
		}
	}
	for _, m := range p.made {
		put(m.name)
	}
	description := p.description(p.source, p.notes)
	if description == nil {
		return out.without("description"), nil
	}
	return out.with("description", description), nil
}

// other returns the value of a keyword that is taken as it is, or nil, with a
// note when it demanded something.
func (p *parts) other(m member) (*node, error) {
	speaksOf := applies[m.name]
	if m.name == "type" || m.name == "enum" || m.name == "anyOf" || structure[m.name] {
		return nil, nil
	}
	if len(speaksOf) > 0 && !slices.ContainsFunc(p.types, func(t string) bool { return slices.Contains(speaksOf, t) }) {
		return nil, nil // it demands nothing of such values
	}
	if p.keywords[m.name] {
		if m.name == "title" && m.value.kind != text {
			return nil, p.at.in("title").error(Malformed, "not a string")
		}
		value, err := p.checked(m, p.types, p.at)
		if value != nil || err != nil {
			return value, err
		}
	}
	if !isSilent(m.name) {
		p.notes = append(p.notes, noteOf(m))
	}
	return nil, nil
}

// structure are the keywords that the parts are made of.
var structure = set("properties", "required", "additionalProperties", "items", "prefixItems")
