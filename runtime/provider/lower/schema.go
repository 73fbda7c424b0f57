// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"errors"
	"slices"
	"strconv"
)

// schema lowers one schema. The result is the boolean false when no value fits
// a source that says so itself; its place decides what that means.
func (l *lowering) schema(n *node, at place) (*node, error) {
	if at.depth > MaxDepth {
		return nil, at.error(TooDeep, "over %d schemas within each other", MaxDepth)
	}
	if err := l.spend(1, at); err != nil {
		return nil, err
	}
	if ref, err := l.keeps(n, at); ref != nil || err != nil {
		return ref, err
	}
	n, err := l.flatten(n, at, nil)
	if err != nil {
		return nil, err
	}
	if n.never() && !l.booleans {
		return n, nil
	}
	if n.kind == boolean {
		return l.single(record(), nil, at)
	}
	if branches := n.get("anyOf"); branches != nil {
		return l.union(n, branches.items, at)
	}
	types, err := typesOf(n, at)
	if err != nil {
		return nil, err
	}
	groups := l.groups(n, types)
	if len(groups) == 1 {
		return l.single(n, groups[0], at)
	}
	demands := l.demands(n)
	alternatives := make([]alternative, len(groups))
	for i, group := range groups {
		if alternatives[i].out, err = l.single(demands, group, at.deeper()); err != nil {
			return nil, err
		}
	}
	return l.joined(n, alternatives, at)
}

// alternative is one branch of what is to become an anyOf.
type alternative struct{ source, out *node }

// demands is what of n each branch is to say: what n demands, and where nothing
// can stand beside anyOf its description too.
func (l *lowering) demands(n *node) *node {
	_, demands := split(n)
	if description := l.description(n, nil); l.nullable && description != nil {
		return demands.with("description", description)
	}
	return demands
}

// groups parts types into those that can stand in one schema of the dialect.
func (l *lowering) groups(n *node, types []string) [][]string {
	hasNull := slices.Contains(types, "null")
	var groups [][]string
	var scalars []string
	for _, t := range types {
		switch {
		case t == "null":
		case t == "object" || t == "array" || l.nullable:
			groups = append(groups, []string{t})
		default:
			scalars = append(scalars, t)
		}
	}
	if len(scalars) > 0 {
		groups = append(groups, scalars)
	}
	if !hasNull {
		if len(groups) == 0 {
			return [][]string{nil}
		}
		return groups
	}
	nullInEnum := n.get("enum") == nil || slices.Contains(l.enumKinds, null)
	switch {
	case l.nullable && len(groups) > 0:
		groups[0] = append(groups[0], "null")
	case len(scalars) > 0 && nullInEnum:
		groups[len(groups)-1] = append(scalars, "null")
	default:
		groups = append(groups, []string{"null"})
	}
	return groups
}

// union lowers a flat schema with an anyOf. What stands beside it is demanded in
// each branch; a branch that nothing fits then is left out.
func (l *lowering) union(n *node, branches []*node, at place) (*node, error) {
	beside := n.without("anyOf")
	_, demands := split(beside)
	var alternatives []alternative
	for i, branch := range branches {
		at := at.in("anyOf", strconv.Itoa(i))
		if branch.kind != object && branch.kind != boolean {
			return nil, at.error(Malformed, "neither an object nor a boolean")
		}
		source := branch
		if len(demands.members) > 0 {
			source = allOf(demands, source)
		}
		if all := l.demands(beside); all.get("description") != nil {
			source = allOf(source, record(member{"description", all.get("description")}))
		}
		out, err := l.schema(source, at)
		if e, ok := errors.AsType[*Error](err); ok && e.Reason == Unsatisfiable && e.Path == at.path {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !out.never() {
			alternatives = append(alternatives, alternative{branch, out})
		}
	}
	alternatives, nullable := l.distinct(alternatives)
	switch {
	case len(alternatives) == 0:
		return nil, at.error(Unsatisfiable, "no branch of anyOf can be met")
	case len(alternatives) > 1 && nullable:
		alternatives[0].out = orNull(alternatives[0].out)
	case len(alternatives) == 1 && alternatives[0].out.get("$ref") != nil:
		return alternatives[0].out, nil
	case len(alternatives) == 1:
		// With one branch left, it and n say the same thing together.
		out, err := l.schema(beside.with("allOf", list(alternatives[0].source)), at)
		if err == nil && nullable {
			out = orNull(out)
		}
		return out, err
	}
	return l.joined(n, alternatives, at)
}

// distinct writes the alternatives within alternatives beside them, drops those
// that are there twice and, where null is allowed in another way, those that are
// null; it reports whether one of the others must take null instead.
func (l *lowering) distinct(alternatives []alternative) (left []alternative, nullable bool) {
	var flat, typed []alternative
	for _, a := range alternatives {
		if branches := a.out.get("anyOf"); branches != nil && len(a.out.members) == 1 {
			for _, out := range branches.items {
				flat = append(flat, alternative{a.source, out})
			}
		} else {
			flat = append(flat, a)
		}
	}
	seen, takesNull := map[string]bool{}, false
	for _, a := range flat {
		key := a.out.String()
		if seen[key] {
			continue
		}
		seen[key] = true
		left = append(left, a)
		if t := a.out.get("type"); t == nil || t.text != "null" {
			typed = append(typed, a)
			takesNull = takesNull || a.out.get("nullable") != nil
		}
	}
	if !l.nullable || len(typed) == 0 {
		return left, false
	}
	return typed, len(typed) < len(left) && !takesNull
}

// joined makes one schema of several alternatives, with what n says about all of them.
func (l *lowering) joined(n *node, alternatives []alternative, at place) (*node, error) {
	outs := list(mapped(alternatives, func(a alternative) *node { return a.out })...)
	if l.nullable {
		return record(member{"anyOf", outs}), nil
	}
	description := l.description(n, nil)
	out := record()
	for _, m := range n.members {
		switch {
		case m.name == "title" && l.keywords["title"] && m.value.kind == text:
			out = out.with("title", m.value)
		case m.name == "description" || m.name == "title":
			out = described(out, description)
		case !isSilent(m.name):
			out = out.with("anyOf", outs)
		}
	}
	out = described(out.with("anyOf", outs), description)
	if description == nil {
		return out, nil
	}
	return out, l.weigh(len(description.text), at)
}

// orNull lets a schema of the dialect with nullable be null.
func orNull(out *node) *node {
	if out.get("nullable") != nil {
		return out
	}
	at := out.index("type") + 1
	cloned := *out
	cloned.members = slices.Insert(slices.Clone(out.members), at, member{"nullable", truth(true)})
	return &cloned
}

// described is a lowered schema with another description, unless that is blank.
func described(out *node, description *node) *node {
	if description == nil || out.get("$ref") != nil {
		return out
	}
	return out.with("description", description)
}

// description is what a schema says about itself, with notes; nil when it says nothing.
func (l *lowering) description(n *node, notes []string) *node {
	says := ""
	for _, name := range []string{"description", "title"} {
		if v := n.get(name); v != nil && v.kind == text && says == "" && (name == "description" || !l.keywords[name]) {
			says = v.text
		}
	}
	all := append(slices.Clip(n.notes), notes...)
	if v := n.get("default"); v != nil {
		all = append(all, noteOf(member{"default", v}))
	}
	if says = noted(says, all); says == "" {
		return nil
	}
	return word(says)
}
