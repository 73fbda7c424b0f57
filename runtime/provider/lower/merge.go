// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"slices"
)

// normal writes n in one way where JSON Schema has several: oneOf as anyOf,
// const as enum, a tuple as prefixItems and items, nullable as a type. What it
// returns has an allOf when two of them are to hold at once.
func (l *lowering) normal(n *node, at place) (*node, error) {
	for _, name := range []string{"$dynamicRef", "$recursiveRef"} {
		if n.get(name) != nil {
			return nil, at.in(name).error(UnresolvedReference, "dynamic references are not followed")
		}
	}
	var also []*node
	if v := n.get("const"); v != nil {
		values := list(v)
		if n.get("enum") == nil {
			n = n.renamed("const", "enum", values)
		} else {
			n, also = n.without("const"), append(also, record(member{"enum", values}))
		}
	}
	if values := n.get("enum"); values != nil && slices.ContainsFunc(values.items, composite) {
		n, also = n.without("enum"), append(also, spelled(values.items))
	}
	if one := n.get("oneOf"); one != nil {
		if n.get("anyOf") == nil {
			n = n.renamed("oneOf", "anyOf", one)
		} else {
			n, also = n.without("oneOf"), append(also, record(member{"anyOf", one}))
		}
	}
	if items := n.get("items"); items != nil && items.kind == array {
		n = n.renamed("items", "prefixItems", items)
		if rest := n.get("additionalItems"); rest != nil {
			n = n.renamed("additionalItems", "items", rest)
		}
	}
	if v := n.get("nullable"); v != nil {
		n = nullAllowed(n.without("nullable"), v)
	}
	if branches := n.get("anyOf"); branches != nil {
		if branches.kind != array || len(branches.items) == 0 {
			return nil, at.in("anyOf").error(Malformed, "not a list of schemas")
		}
		if len(branches.items) == 1 {
			n, also = n.without("anyOf"), append(also, branches.items[0])
		}
	}
	if len(also) == 0 {
		return n, nil
	}
	if all := n.get("allOf"); all != nil {
		if all.kind != array {
			return nil, at.in("allOf").error(Malformed, "not a list of schemas")
		}
		also = append(slices.Clip(all.items), also...)
	}
	return n.with("allOf", list(also...)), nil
}

// composite reports whether a value is an object or an array, which no dialect
// has in an enum.
func composite(v *node) bool { return v.kind == object || v.kind == array }

// spelled is an enum with composite values, each as a schema that it alone fits.
func spelled(values []*node) *node {
	var simple, branches []*node
	for _, v := range values {
		switch v.kind {
		case object:
			props := mapped(v.members, func(m member) member { return member{m.name, record(member{"const", m.value})} })
			branches = append(branches, record(member{"type", word("object")}, member{"properties", record(props...)},
				member{"required", words(mapped(v.members, func(m member) string { return m.name }))},
				member{"additionalProperties", truth(false)}))
		case array:
			entries := mapped(v.items, func(item *node) *node { return record(member{"const", item}) })
			branches = append(branches, record(member{"type", word("array")}, member{"prefixItems", list(entries...)},
				member{"items", truth(false)}, member{"minItems", count10(len(entries))}))
		default:
			simple = append(simple, v)
		}
	}
	if len(simple) > 0 {
		branches = append(branches, record(member{"enum", list(simple...)}))
	}
	return record(member{"anyOf", list(branches...)})
}

// nullAllowed is n after a member nullable: null is one of the types, or an
// alternative to whatever n says without a type.
func nullAllowed(n, nullable *node) *node {
	if nullable.text != "true" {
		return n
	}
	if t := n.get("type"); t != nil {
		types := []*node{t}
		if t.kind == array {
			types = t.items
		}
		n = n.with("type", list(append(slices.Clip(types), word("null"))...))
		if values := n.get("enum"); values != nil && values.kind == array {
			n = n.with("enum", list(append(slices.Clip(values.items), &node{})...))
		}
		return n
	}
	about, rest := split(n)
	if len(rest.members) == 0 {
		return n
	}
	return about.with("anyOf", list(rest, record(member{"type", word("null")})))
}

// split parts what a schema says about its value from what it demands of it.
func split(n *node) (about, demands *node) {
	about, demands = record(), record()
	about.notes = n.notes
	for _, m := range n.members {
		if isSilent(m.name) || m.name == "default" {
			about.members = append(about.members, m)
		} else {
			demands.members = append(demands.members, m)
		}
	}
	return about, demands
}

// flatten returns n without references and without allOf: a boolean, or an
// object. active are the references that are being written out around it.
func (l *lowering) flatten(n *node, at place, active []string) (*node, error) {
	if n.kind == boolean {
		return n, nil
	}
	if n.kind != object {
		return nil, at.error(Malformed, "neither an object nor a boolean")
	}
	if err := l.spend(1+len(n.members), at); err != nil {
		return nil, err
	}
	if len(active) > MaxDepth {
		return nil, at.error(TooDeep, "over %d references to one another", MaxDepth)
	}
	n, err := l.normal(n, at)
	if err != nil {
		return nil, err
	}
	out := n.without("$ref", "allOf")
	if ref := n.get("$ref"); ref != nil {
		pointer, target, recursive, err := l.follow(ref, at)
		if err != nil {
			return nil, err
		}
		if recursive && l.recursion == nowhere || slices.Contains(active, pointer) {
			return nil, at.in("$ref").error(Recursive, "%.200q leads back to itself", ref.text)
		}
		flat, err := l.flatten(target, at, append(slices.Clip(active), pointer))
		if err != nil {
			return nil, err
		}
		if out, err = l.both(out, flat, at); err != nil {
			return nil, err
		}
	}
	if all := n.get("allOf"); all != nil {
		if all.kind != array {
			return nil, at.in("allOf").error(Malformed, "not a list of schemas")
		}
		for _, part := range all.items {
			flat, err := l.flatten(part, at, active)
			if err != nil {
				return nil, err
			}
			if out, err = l.both(out, flat, at); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// both returns a flat schema for what fits a and b. What lies deeper is left as
// an allOf, merged when it is reached.
func (l *lowering) both(a, b *node, at place) (*node, error) {
	switch {
	case a.never() || b.always():
		return a, nil
	case b.never() || a.always():
		return b, nil
	}
	if err := l.spend(len(a.members)+len(b.members), at); err != nil {
		return nil, err
	}
	a = a.noting(b.notes...)
	fields, err := l.bothObjects(a, b, at)
	if err != nil {
		return nil, err
	}
	fields = append(fields, bothArrays(a, b)...)
	merged := map[string]*node{}
	for _, f := range fields {
		merged[f.name] = f.value
		if a.get(f.name) != nil {
			a = a.with(f.name, f.value)
		}
	}
	for _, m := range b.members {
		if merged[m.name] != nil {
			a = a.with(m.name, merged[m.name])
			continue
		}
		if a, err = l.bothKeywords(a, m, at); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// bothKeywords adds a keyword to a, which may have it already.
func (l *lowering) bothKeywords(a *node, m member, at place) (*node, error) {
	has := a.get(m.name)
	if has == nil {
		return a.with(m.name, m.value), nil
	}
	switch m.name {
	case "type":
		types, err := commonTypes(has, m.value, at)
		if err != nil {
			return nil, err
		}
		return a.with("type", types), nil
	case "enum":
		values, err := commonValues(has, m.value, at)
		if err != nil {
			return nil, err
		}
		return a.with("enum", values), nil
	case "anyOf":
		// One of these and one of those: each of these with one of those.
		if has.kind != array || m.value.kind != array {
			return nil, at.in("anyOf").error(Malformed, "not a list of schemas")
		}
		those := record(m)
		return a.with("anyOf", list(mapped(has.items, func(this *node) *node { return allOf(this, those) })...)), nil
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return tighter(a, m, has, func(this, that float64) bool { return this > that }), nil
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return tighter(a, m, has, func(this, that float64) bool { return this < that }), nil
	}
	if isSilent(m.name) || has.String() == m.value.String() {
		return a, nil
	}
	return a.noting(noteOf(m)), nil
}

// tighter keeps the bound that holds more.
func tighter(a *node, m member, has *node, tight func(this, that float64) bool) *node {
	this, ok := m.value.float()
	that, also := has.float()
	if ok && also && tight(this, that) {
		return a.with(m.name, m.value)
	}
	return a // what is no number is found later
}

// commonTypes are the types that both have; an integer is a number.
func commonTypes(a, b *node, at place) (*node, error) {
	these, err := typeList(a, at)
	if err != nil {
		return nil, err
	}
	those, err := typeList(b, at)
	if err != nil {
		return nil, err
	}
	var common []string
	for _, t := range these {
		switch {
		case slices.Contains(those, t), t == "integer" && slices.Contains(those, "number"):
			common = append(common, t)
		case t == "number" && slices.Contains(those, "integer"):
			common = append(common, "integer")
		}
	}
	if len(common) == 0 {
		return nil, at.error(Unsatisfiable, "no type fits all parts of allOf")
	}
	return words(common), nil
}

// commonValues are the values that stand in both enums.
func commonValues(a, b *node, at place) (*node, error) {
	if a.kind != array || b.kind != array {
		return nil, at.in("enum").error(Malformed, "not a list of values")
	}
	those := map[string]bool{}
	for _, v := range b.items {
		those[v.String()] = true
	}
	var common []*node
	for _, v := range a.items {
		if those[v.String()] {
			common = append(common, v)
		}
	}
	if len(common) == 0 {
		return nil, at.error(Unsatisfiable, "no value fits all parts of allOf")
	}
	return list(common...), nil
}

// bothObjects merges what two schemas say of objects' members.
func (l *lowering) bothObjects(a, b *node, at place) ([]member, error) {
	var out []member
	required := append(names(a.get("required")), names(b.get("required"))...)
	if a.get("required") != nil && b.get("required") != nil {
		out = append(out, member{"required", words(unique(required))})
	}
	these, those := a.get("properties"), b.get("properties")
	if these != nil || those != nil {
		props := record()
		of := map[string]*node{}
		if those != nil {
			for _, p := range those.members {
				of[p.name] = p.value
			}
		}
		add := func(p member, other *node) error {
			switch {
			case other == nil || other.always():
				props.members = append(props.members, p)
			case other.never() && slices.Contains(required, p.name):
				return at.in("properties", p.name).error(Unsatisfiable, "one part of allOf requires what another forbids")
			case other.never():
			default:
				props.members = append(props.members, member{p.name, allOf(p.value, other)})
			}
			return nil
		}
		seen := map[string]bool{}
		for _, p := range membersOf(these) {
			other, shared := of[p.name]
			if seen[p.name] = true; !shared {
				other = b.rest()
			}
			if err := add(p, other); err != nil {
				return nil, err
			}
		}
		for _, p := range membersOf(those) {
			if !seen[p.name] {
				if err := add(p, a.rest()); err != nil {
					return nil, err
				}
			}
		}
		if err := l.spend(len(props.members), at); err != nil {
			return nil, err
		}
		out = append(out, member{"properties", props})
	}
	if this, that := a.get("additionalProperties"), b.get("additionalProperties"); this != nil && that != nil {
		out = append(out, member{"additionalProperties", bothDeep(this, that)})
	}
	return out, nil
}

// rest is the schema for members that are not named; nil when any will do.
func (n *node) rest() *node {
	if n.get("patternProperties") != nil {
		return nil
	}
	return n.get("additionalProperties")
}

// bothArrays merges what two schemas say of arrays' items.
func bothArrays(a, b *node) []member {
	var out []member
	these, those := a.get("prefixItems"), b.get("prefixItems")
	this, that := a.get("items"), b.get("items")
	if these != nil || those != nil {
		var entries []*node
		for i := 0; i < len(entriesOf(these)) || i < len(entriesOf(those)); i++ {
			entries = append(entries, bothDeep(entry(these, this, i), entry(those, that, i)))
		}
		out = append(out, member{"prefixItems", list(entries...)})
	}
	if this != nil && that != nil {
		out = append(out, member{"items", bothDeep(this, that)})
	}
	return out
}

// entry is the schema of the item at i: nil when any will do.
func entry(prefix, rest *node, i int) *node {
	if entries := entriesOf(prefix); i < len(entries) {
		return entries[i]
	}
	return rest
}

// bothDeep is what fits both, to be merged when it is reached.
func bothDeep(a, b *node) *node {
	switch {
	case a == nil || b != nil && (a.always() || b.never()):
		return b
	case b == nil || b.always() || a.never():
		return a
	case a.kind != object || b.kind != object:
		return list() // found as malformed when it is reached
	}
	return allOf(a, b)
}

func membersOf(n *node) []member {
	if n == nil {
		return nil
	}
	return n.members
}

func entriesOf(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.items
}

func names(n *node) []string {
	return mapped(entriesOf(n), func(n *node) string { return n.text })
}

func unique(values []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool {
		before := seen[v]
		seen[v] = true
		return before
	})
}
