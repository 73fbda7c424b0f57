// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// document resolves the references of one source.
type document struct {
	root *node
	// recursive says of a pointer whether what it points to leads back to it.
	recursive map[string]bool
	// edges are the pointers of the references within what a pointer points to.
	edges map[string][]string
}

// resolve follows a reference within the document: "#", or "#/" and a JSON
// pointer. The pointer it returns is the same for every way to write it.
func (d *document) resolve(ref string) (pointer string, target *node, ok bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if !local || err != nil || fragment != "" && fragment[0] != '/' {
		return "", nil, false
	}
	pointer, target = "#", d.root
	if fragment == "" {
		return pointer, target, true
	}
	for step := range strings.SplitSeq(fragment[1:], "/") {
		name := pointerUnescaper.Replace(step)
		if target = target.child(name); target == nil {
			return "", nil, false
		}
		pointer += "/" + url.PathEscape(pointerEscaper.Replace(name))
	}
	return pointer, target, true
}

// child is a member or an item.
func (n *node) child(name string) *node {
	if n.kind == array {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.items) {
			return n.items[i]
		}
		return nil
	}
	return n.get(name)
}

// isRecursive reports whether a pointer's schema leads back to itself; ok is
// false when there are more references than are followed.
func (d *document) isRecursive(pointer string) (recursive, ok bool) {
	if known, seen := d.recursive[pointer]; seen {
		return known, true
	}
	if d.recursive == nil {
		d.recursive, d.edges = map[string]bool{}, map[string][]string{}
	}
	d.recursive[pointer] = false
	seen, todo := map[string]bool{}, []string{pointer}
	for len(todo) > 0 {
		from := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, to := range d.edgesOf(from) {
			if to == pointer {
				d.recursive[pointer] = true
			}
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
		if len(d.edges) > maxReferences {
			return false, false
		}
	}
	return d.recursive[pointer], true
}

// edgesOf are the pointers that a pointer's schema refers to.
func (d *document) edgesOf(pointer string) []string {
	if known, seen := d.edges[pointer]; seen {
		return known
	}
	var found []string
	seen := map[string]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if ref := n.get("$ref"); ref != nil && ref.kind == text {
			if to, _, ok := d.resolve(ref.text); ok && !seen[to] {
				seen[to] = true
				found = append(found, to)
			}
		}
		n.subschemas(walk)
	}
	if _, target, ok := d.resolve(pointer); ok {
		walk(target)
	}
	d.edges[pointer] = found
	return found
}

// subschemas calls f with the schemas right below n that lowering looks at.
func (n *node) subschemas(f func(*node)) {
	for _, m := range n.members {
		switch m.name {
		case "properties":
			for _, p := range m.value.members {
				f(p.value)
			}
		case "items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties", "additionalItems":
			if m.value.kind == array {
				for _, item := range m.value.items {
					f(item)
				}
			} else {
				f(m.value)
			}
		}
	}
}

// keeps returns the reference that stands for n in the result: one into a
// recursive schema, in a dialect that has them, with nothing beside it that
// must be kept. It is nil when n is to be written out.
func (l *lowering) keeps(n *node, at place) (*node, error) {
	ref := n.bareReference()
	if ref == nil || l.recursion == nowhere {
		return nil, nil
	}
	pointer, _, recursive, err := l.follow(ref, at)
	if err != nil || !recursive {
		return nil, err
	}
	if pointer == "#" {
		return record(member{"$ref", word("#")}), nil
	}
	name, known := l.kept[pointer]
	if !known {
		name = l.name(pointer)
		l.queue = append(l.queue, pointer)
	}
	return record(member{"$ref", word("#/$defs/" + name)}), nil
}

// bareReference is the value of $ref when n demands nothing else; it may be the
// only part of an allOf or anyOf, around which people write descriptions.
func (n *node) bareReference() *node {
	var demand member
	for _, m := range n.members {
		if isSilent(m.name) {
			continue
		}
		if demand.value != nil {
			return nil
		}
		demand = m
	}
	switch demand.name {
	case "$ref":
		return demand.value
	case "allOf", "anyOf", "oneOf":
		if len(demand.value.items) == 1 {
			return demand.value.items[0].bareReference()
		}
	}
	return nil
}

// follow resolves a reference and says whether it is recursive.
func (l *lowering) follow(ref *node, at place) (pointer string, target *node, recursive bool, err error) {
	if ref.kind != text {
		return "", nil, false, at.in("$ref").error(Malformed, "not a string")
	}
	pointer, target, ok := l.resolve(ref.text)
	if !ok {
		return "", nil, false, at.in("$ref").error(UnresolvedReference, "%.200q is not in the document", ref.text)
	}
	recursive, ok = l.isRecursive(pointer)
	if !ok {
		return "", nil, false, at.in("$ref").error(TooLarge, "over %d references", maxReferences)
	}
	return pointer, target, recursive, nil
}

// name chooses a name below $defs: the pointer's last step when that is free.
func (l *lowering) name(pointer string) string {
	if l.kept == nil {
		l.kept, l.names = map[string]string{}, map[string]bool{}
	}
	base := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, pointer[strings.LastIndex(pointer, "/")+1:])
	base = base[:min(len(base), 48)]
	name := base
	for i := 2; l.names[name] || name == ""; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	l.kept[pointer], l.names[name] = name, true
	return name
}

// holdsReference reports whether a lowered schema holds a reference that is not
// within an optional property.
func holdsReference(out *node) bool {
	if out.get("$ref") != nil {
		return true
	}
	if props := out.get("properties"); props != nil {
		for _, p := range props.members {
			if holdsReference(p.value) && isRequired(out, p.name) {
				return true
			}
		}
	}
	found := false
	out.without("properties").subschemas(func(n *node) { found = found || holdsReference(n) })
	return found
}

func isRequired(out *node, name string) bool {
	required := out.get("required")
	return required != nil && slices.ContainsFunc(required.items, func(n *node) bool { return n.text == name })
}
