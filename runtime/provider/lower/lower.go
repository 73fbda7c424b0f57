// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lower rewrites a JSON Schema (draft 2020-12, with what draft 7 and
// OpenAPI 3.0 write otherwise) into the part of it that a vendor's structured
// output takes. It is pure: the same schema gives the same bytes.
//
// References are inlined, allOf is merged, oneOf becomes anyOf and const an
// enum of one. What a dialect has no word for is said in the description, in
// brackets. Where a dialect cannot leave something open the result is narrower
// than its source: an open object is closed, a schema that takes any value
// takes any scalar (an object in GeminiSchema). Where it cannot be as strict it
// is wider. So a reply is still to be validated against the source, with one
// exception: in OpenAIStrict an optional property is null instead of absent.
package lower

import "fmt"

// Bounds of a source and of what becomes of it.
const (
	// MaxSource is the largest source, in bytes.
	MaxSource = 256 << 10
	// MaxResult is the largest result, in bytes.
	MaxResult = MaxSource
	// MaxDepth is how deep schemas may nest in a result.
	MaxDepth = 64
	// maxValues is how deep a source may nest JSON values: three to a schema and more.
	maxValues = 4 * MaxDepth
	// maxWork bounds the members that are looked at, and with them the time:
	// references that are inlined can make much of a small source.
	maxWork = 100_000
	// maxRounds is how often a schema with recursion is lowered until it stays the same.
	maxRounds = 8
	// maxReferences is how many different references a source may hold.
	maxReferences = 256
)

// Reason says why a schema could not be lowered.
type Reason string

// The reasons.
const (
	// Malformed is no JSON, or no JSON Schema: a keyword with a value of another kind.
	Malformed Reason = "Malformed"
	// TooLarge and TooDeep exceed a bound of this package or of the dialect.
	TooLarge Reason = "TooLarge"
	TooDeep  Reason = "TooDeep"
	// UnresolvedReference is a $ref out of the document, or to nothing in it.
	UnresolvedReference Reason = "UnresolvedReference"
	// Recursive is a $ref into itself that the dialect cannot have, there or at all.
	Recursive Reason = "Recursive"
	// Unsatisfiable is a schema that no value fits, such as an allOf that contradicts itself.
	Unsatisfiable Reason = "Unsatisfiable"
	// RootNotObject is a root that is no object, for a dialect that wants one.
	RootNotObject Reason = "RootNotObject"
	// UnknownDialect is a Dialect that this package does not define.
	UnknownDialect Reason = "UnknownDialect"
)

// Error says why and where a schema could not be lowered.
type Error struct {
	Reason Reason
	// Path leads to the place by keywords and names from the root: "#/properties/a/items".
	// A reference on the way does not show.
	Path string
	// Detail says it in words.
	Detail string
}

// Error renders all three.
func (e *Error) Error() string {
	return fmt.Sprintf("lowering JSON Schema at %s: %s: %s", e.Path, e.Reason, e.Detail)
}

// Lower rewrites schema into the dialect. Properties and members keep the order
// of the source. Lowering the result again changes nothing. Errors are *Error.
func Lower(schema []byte, to Dialect) ([]byte, error) {
	d, ok := dialects[to]
	if !ok {
		return nil, &Error{UnknownDialect, "#", fmt.Sprintf("%d is no dialect", to)}
	}
	root, err := parse(schema)
	if err != nil {
		return nil, err
	}
	out, err := d.lower(root)
	// Recursion may have been in nothing but what is left out now; each time it
	// is found so, there is less of it.
	for round := 0; err == nil && out.get("$defs") != nil && round < maxRounds; round++ {
		var again *node
		if again, err = d.lower(out); err == nil && again.String() == out.String() {
			break
		}
		out = again
	}
	if err != nil {
		return nil, err
	}
	if err := d.limits.check(out); err != nil {
		return nil, err
	}
	return out.append(nil), nil
}

// lower lowers a document once.
func (d dialect) lower(root *node) (*node, error) {
	l := &lowering{dialect: d, document: document{root: root}}
	return l.root()
}

// lowering is the state of one Lower.
type lowering struct {
	dialect
	document
	work   int
	kept   map[string]string // pointer of a recursive schema -> its name below $defs
	names  map[string]bool   // the names given out
	queue  []string          // pointers whose schema $defs still lacks
	weight int               // of the result so far, in bytes or less
}

// place is where the lowering is.
type place struct {
	path  string
	depth int
}

// in is the place of a schema below this one; it may be given unescaped names.
func (p place) in(steps ...string) place {
	p.depth++
	for _, s := range steps {
		p.path += "/" + pointerEscaper.Replace(s)
	}
	return p
}

// deeper is the place of a schema that the result has one level deeper than the source.
func (p place) deeper() place {
	p.depth++
	return p
}

func (p place) error(reason Reason, format string, args ...any) *Error {
	return &Error{reason, p.path, fmt.Sprintf(format, args...)}
}

// spend counts work, and fails when there was too much.
func (l *lowering) spend(n int, at place) error {
	if l.work += n; l.work > maxWork {
		return at.error(TooLarge, "the schema grows over %d members when it is written out", maxWork)
	}
	return nil
}

// weigh counts a text of the result, and fails when there was too much.
func (l *lowering) weigh(n int, at place) error {
	if l.weight += n; l.weight > MaxResult {
		return at.error(TooLarge, "the schema grows over %d bytes when it is written out", MaxResult)
	}
	return nil
}

// root lowers the document, and after it the recursive schemas that are kept below $defs.
func (l *lowering) root() (*node, error) {
	at := place{path: "#"}
	source, err := l.flatten(l.document.root, at, nil)
	if err != nil {
		return nil, err
	}
	out, err := l.schema(source, at)
	if err != nil {
		return nil, err
	}
	if out.never() {
		return nil, at.error(Unsatisfiable, "no value fits")
	}
	if l.rootObject {
		if out = withoutNull(out); out.get("type") == nil || out.get("type").text != "object" {
			return nil, at.error(RootNotObject, "the dialect wants an object with properties at the root")
		}
	}
	if err := l.placed(out, at); err != nil {
		return nil, err
	}
	var defs []member
	for len(l.queue) > 0 {
		pointer := l.queue[0]
		l.queue = l.queue[1:]
		name := l.kept[pointer]
		at := place{path: "#"}.in("$defs", name)
		_, target, _ := l.resolve(pointer)
		flat, err := l.flatten(target, at, []string{pointer})
		if err != nil {
			return nil, err
		}
		def, err := l.schema(flat, at)
		if err != nil {
			return nil, err
		}
		if def.never() {
			return nil, at.error(Unsatisfiable, "no value fits")
		}
		if err := l.placed(def, at); err != nil {
			return nil, err
		}
		defs = append(defs, member{name, def})
	}
	if len(defs) > 0 {
		out = out.with("$defs", &node{kind: object, members: defs})
	}
	if size := len(out.append(nil)); size > MaxResult {
		return nil, at.error(TooLarge, "the result has %d bytes, over %d", size, MaxResult)
	}
	return out, nil
}

// placed fails when a kept reference stands where the dialect cannot have it.
func (l *lowering) placed(out *node, at place) error {
	if l.recursion == inOptional && holdsReference(out) {
		return at.error(Recursive, "the dialect has recursion within optional properties alone")
	}
	return nil
}

// withoutNull turns an object that may be null into an object.
func withoutNull(out *node) *node {
	branches := out.get("anyOf")
	if branches == nil {
		return out
	}
	var left []*node
	for _, b := range branches.items {
		if t := b.get("type"); t == nil || t.text != "null" {
			left = append(left, b)
		}
	}
	if len(left) != 1 {
		return out
	}
	return described(left[0], out.get("description"))
}
