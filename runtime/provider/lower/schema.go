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
	_, demands := split(n)
	outs := make([]*node, len(groups))
	for i, group := range groups {
		if outs[i], err = l.single(demands, group, at.deeper()); err != nil {
			return nil, err
		}
	}
	return l.joined(n, outs, at)
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
	_, demands := split(n.without("anyOf"))
	var outs []*node
	for i, branch := range branches {
		at := at.in("anyOf", strconv.Itoa(i))
		if len(demands.members) > 0 {
			if branch.kind != object && branch.kind != boolean {
				return nil, at.error(Malformed, "neither an object nor a boolean")
			}
			branch = allOf(demands, branch)
		}
		out, err := l.schema(branch, at)
		if e, ok := errors.AsType[*Error](err); ok && e.Reason == Unsatisfiable && e.Path == at.path {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !out.never() {
			outs = append(outs, out)
		}
	}
	return l.joined(n, outs, at)
}

// joined makes one schema of alternatives, which are lowered, with what n says
// about all of them.
func (l *lowering) joined(n *node, outs []*node, at place) (*node, error) {
	outs, nullable, err := l.distinct(outs, at)
	if err != nil {
		return nil, err
	}
	if len(outs) == 0 {
		return nil, at.error(Unsatisfiable, "no branch of anyOf can be met")
	}
	description := l.description(n, nil)
	if l.nullable && description != nil && len(outs) > 1 {
		for i := range outs {
			if outs[i].get("description") == nil {
				outs[i] = described(outs[i], description)
			}
		}
		if outs, _, err = l.distinct(outs, at); err != nil { // some may be alike now
			return nil, err
		}
	}
	if nullable {
		outs[0] = orNull(outs[0])
	}
	if len(outs) == 1 {
		out := described(outs[0], description)
		if title := n.get("title"); title != nil && title.kind == text && l.keywords["title"] && out.get("$ref") == nil {
			out = out.with("title", title)
		}
		return out, nil
	}
	if l.nullable {
		return record(member{"anyOf", list(outs...)}), nil
	}
	out := record()
	for _, m := range n.members {
		switch {
		case m.name == "description" || m.name == "title":
			if l.keywords[m.name] && m.value.kind == text {
				out = out.with(m.name, m.value)
			} else {
				out = described(out, description)
			}
		case !isSilent(m.name):
			out = out.with("anyOf", list(outs...))
		}
	}
	out = described(out.with("anyOf", list(outs...)), description)
	if description != nil {
		err = l.weigh(len(description.text), at)
	}
	return out, err
}

// distinct writes the alternatives within alternatives beside them, drops those
// that are there twice and, where null is allowed in another way, those that are
// null; it reports whether there were any.
func (l *lowering) distinct(outs []*node, at place) (left []*node, nullable bool, err error) {
	var flat []*node
	for _, out := range outs {
		if branches := out.get("anyOf"); branches != nil && len(out.members) == 1 {
			flat = append(flat, branches.items...)
		} else {
			flat = append(flat, out)
		}
	}
	seen := map[string]bool{}
	for _, out := range flat {
		if key := out.String(); !seen[key] {
			seen[key] = true
			left = append(left, out)
		}
	}
	if !l.nullable {
		return left, false, nil
	}
	var typed []*node
	for _, out := range left {
		if t := out.get("type"); t == nil || t.text != "null" {
			typed = append(typed, out)
		}
	}
	if len(typed) == 0 {
		return left, false, nil
	}
	return typed, len(typed) < len(left), l.spend(len(outs), at)
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
