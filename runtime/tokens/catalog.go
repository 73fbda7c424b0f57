// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed catalog.json
var catalogJSON []byte

// Catalog knows the families and the names of their models. It is immutable and
// safe for concurrent use.
type Catalog struct {
	families []*entry
	byName   map[string]*entry
	// exact are whole names or whole beginnings, stems what anything may follow.
	exact, stems map[string]*entry
	// longestName is the length of the longest of them.
	longestName int
	unknown     *entry
	// own are the caller's names, as they go over the wire.
	own map[string]*entry
}

// entry is a family as the file has it, its rule filled in.
type entry struct {
	// Name and Aliases are what a provider's models[].family may say.
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	// Rule names the formula, Parameters are its numbers.
	Rule       string          `json:"rule"`
	Parameters json.RawMessage `json:"parameters"`
	// UpperBound is set where the rule gives a bound and not a count.
	UpperBound bool `json:"upperBound,omitempty"`
	// Markers are tokens around each image, beside the count.
	Markers int64 `json:"markers,omitempty"`
	// Models are names in normal form; one that ends in * fits whatever follows.
	Models     []string   `json:"models"`
	Confidence Confidence `json:"confidence"`
	Sources    []string   `json:"sources"`
	Note       string     `json:"note,omitempty"`

	rule rule
}

// unknownFamily is the family of a model that no name fits.
const unknownFamily = "unknown"

// Default is the catalog that is built in. It is read once, when first needed.
func Default() *Catalog { return builtin() }

var builtin = sync.OnceValue(func() *Catalog {
	c, err := parse(catalogJSON)
	if err != nil {
		panic(err) // The file is part of the program, and tested.
	}
	return c
})

// Find looks a model up in the built-in catalog; see [Catalog.Find].
func Find(model, declaredFamily string) Family { return Default().Find(model, declaredFamily) }

// Find is the family of a model. What is declared wins: the name of a family or of
// a model that the catalog knows. Then the caller's own names count, then the
// catalog's, the longest that sensibly fits. It always finds one: at worst the
// unknown family, which charges with care.
func (c *Catalog) Find(model, declaredFamily string) Family {
	if declaredFamily == "" {
		return c.byModel(model)
	}
	if e, ok := c.byName[strings.ToLower(strings.TrimSpace(declaredFamily))]; ok {
		return Family{entry: e, match: Match{How: ByDeclaration, Pattern: e.Name}}
	}
	if f := c.byModel(declaredFamily); f.match.How == ByName || f.match.How == ByPrefix {
		f.match.How = ByDeclaration
		return f
	}
	f := c.byModel(model)
	f.match.UnknownDeclared = true
	return f
}

func (c *Catalog) byModel(model string) Family {
	if e, ok := c.own[model]; ok {
		return Family{entry: e, match: Match{How: ByName, Pattern: model}}
	}
	name := normal(model)
	if e, ok := c.exact[name]; ok {
		return Family{entry: e, match: Match{How: ByName, Pattern: name}}
	}
	if e, pattern := c.longest(name); e != nil {
		return Family{entry: e, match: Match{How: ByPrefix, Pattern: pattern}}
	}
	for i := 1; i < len(name) && i < maxNameBytes; i++ {
		if !begins(name, i) {
			continue
		}
		if e, pattern := c.longest(name[i:]); e != nil && len(pattern) >= minPartBytes {
			return Family{entry: e, match: Match{How: ByPart, Pattern: pattern}}
		}
	}
	return Family{entry: c.unknown, match: Match{How: ByDefault}}
}

// The shortest name that is believed inside another (o3 is not), and how much of a
// name is searched for one.
const (
	minPartBytes = 5
	maxNameBytes = 256
)

// longest is the longest pattern that s begins with.
func (c *Catalog) longest(s string) (*entry, string) {
	for i := min(len(s), c.longestName); i > 0; i-- {
		if ends(s, i) {
			if e, ok := c.exact[s[:i]]; ok {
				return e, s[:i]
			}
		}
		if e, ok := c.stems[s[:i]]; ok {
			return e, s[:i] + "*"
		}
	}
	return nil, ""
}

// Families are all families, in the catalog's order.
func (c *Catalog) Families() []Family {
	out := make([]Family, 0, len(c.families))
	for _, e := range c.families {
		out = append(out, Family{entry: e, match: Match{How: ByDeclaration, Pattern: e.Name}})
	}
	return out
}

// UnknownFamilyError says that a list names a family which the catalog does not have.
type UnknownFamilyError struct{ Model, Family string }

// Error names both.
func (e *UnknownFamilyError) Error() string {
	return fmt.Sprintf("adding model %q to the token families: no family is named %q", e.Model, e.Family)
}

// With is the catalog with the caller's own models before it, such as a provider's
// models[]: name as it goes over the wire, to family. A model without a family is
// left to the catalog. The error joins an *UnknownFamilyError for each family that
// is not known; the catalog that comes with it has the rest.
func (c *Catalog) With(families map[string]string) (*Catalog, error) {
	out := *c
	out.own = make(map[string]*entry, len(c.own)+len(families))
	for model, e := range c.own {
		out.own[model] = e
	}
	var unknown []error
	for _, model := range slices.Sorted(maps.Keys(families)) {
		family := families[model]
		if family == "" {
			continue
		}
		f := c.Find("", family)
		if f.match.How != ByDeclaration {
			unknown = append(unknown, &UnknownFamilyError{Model: model, Family: family})
			continue
		}
		out.own[model] = f.entry
	}
	return &out, errors.Join(unknown...)
}

// parse reads and checks a catalog.
func parse(data []byte) (*Catalog, error) {
	var file struct {
		Comment  []string `json:"comment"`
		Families []*entry `json:"families"`
	}
	if err := decodeStrictly(data, &file); err != nil {
		return nil, fmt.Errorf("reading the catalog of token families: %w", err)
	}
	c := &Catalog{families: file.Families, byName: map[string]*entry{}, exact: map[string]*entry{}, stems: map[string]*entry{}}
	for _, e := range file.Families {
		if err := c.add(e); err != nil {
			return nil, fmt.Errorf("reading the catalog of token families: family %q: %w", e.Name, err)
		}
	}
	if c.unknown = c.byName[unknownFamily]; c.unknown == nil {
		return nil, fmt.Errorf("reading the catalog of token families: no family is named %q", unknownFamily)
	}
	return c, nil
}

func (c *Catalog) add(e *entry) error {
	if len(e.Sources) == 0 {
		return errors.New("no source")
	}
	switch e.Confidence {
	case Published, Derived, ThirdParty, Assumed:
	default:
		return fmt.Errorf("unknown confidence %q", e.Confidence)
	}
	r, err := newRule(e.Rule, e.Parameters)
	if err != nil {
		return err
	}
	e.rule = r
	for _, name := range append([]string{e.Name}, e.Aliases...) {
		if name == "" || c.byName[name] != nil {
			return fmt.Errorf("the name %q is empty or taken", name)
		}
		c.byName[name] = e
	}
	for _, pattern := range e.Models {
		stem, open := strings.CutSuffix(pattern, "*")
		names := c.exact
		if open {
			names = c.stems
		}
		if stem == "" || stem != normal(stem) || names[stem] != nil {
			return fmt.Errorf("the model name %q is empty, not in normal form, or taken", pattern)
		}
		names[stem] = e
		c.longestName = max(c.longestName, len(stem))
	}
	return nil
}

// newRule fills a formula's numbers in.
func newRule(name string, parameters []byte) (rule, error) {
	read, ok := rules[name]
	if !ok {
		return nil, fmt.Errorf("unknown rule %q", name)
	}
	r, err := read(parameters)
	if err != nil {
		return nil, fmt.Errorf("reading the parameters: %w", err)
	}
	if wrong := r.check(); wrong != "" {
		return nil, fmt.Errorf("checking the parameters: %s", wrong)
	}
	if p, ok := r.(preparer); ok {
		r = p.prepared()
	}
	return r, nil
}

// rules are the formulas by the names that the file uses.
var rules = map[string]func([]byte) (rule, error){
	"bisect":   read[bisectRule],
	"box":      read[boxRule],
	"canvas":   read[canvasRule],
	"cells":    read[cellRule],
	"cover":    read[coverRule],
	"crops":    read[cropRule],
	"deepseek": read[deepseekRule],
	"flat":     read[flatRule],
	"height":   read[heightRule],
	"kimi":     read[kimiRule],
	"pan":      read[panRule],
	"patches":  read[patchRule],
	"ratio":    read[ratioRule],
	"rows":     read[rowRule],
	"smart":    read[smartRule],
	"soft":     read[softRule],
	"steps":    read[stepRule],
	"tiles":    read[tileRule],
	"units":    read[unitRule],
	"views":    read[viewRule],
}

// read decodes the numbers of one kind of rule.
func read[R rule](parameters []byte) (rule, error) {
	var r R
	if err := decodeStrictly(parameters, &r); err != nil {
		return nil, err
	}
	return r, nil
}

// decodeStrictly refuses unknown fields and anything after the value.
func decodeStrictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}
