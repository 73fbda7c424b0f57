// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

// Family is a set of models whose images are counted alike, as one model found
// it. The zero value counts like an unknown model.
type Family struct {
	entry *entry
	match Match
}

// How says how a family was found.
type How string

// The ways, from the surest.
const (
	// ByDeclaration: the caller named the family.
	ByDeclaration How = "declared"
	// ByName: the catalog, or the caller's own list, has exactly this name.
	ByName How = "exact"
	// ByPrefix: the catalog's longest name that the model's begins with.
	ByPrefix How = "prefix"
	// ByPart: the catalog's longest name within the model's, as in
	// databricks-claude-sonnet-4.
	ByPart How = "part"
	// ByDefault: no name fits; the family is the unknown one.
	ByDefault How = "none"
)

// Match says how a family was found.
type Match struct {
	// How is the way.
	How How
	// Pattern is the catalog's name that fitted; empty with ByDefault.
	Pattern string
	// UnknownDeclared is set when a family was declared that the catalog does not
	// have; the model's name then decided.
	UnknownDeclared bool
}

// known is the family's entry, or the unknown one's for the zero Family.
func (f Family) known() *entry {
	if f.entry == nil {
		return Default().unknown
	}
	return f.entry
}

// Name is the family's name, as a provider's models[].family may say it.
func (f Family) Name() string { return f.known().Name }

// Aliases are the other names that a provider's models[].family may say; mostly none.
func (f Family) Aliases() []string { return append([]string(nil), f.known().Aliases...) }

// Note says in one sentence what to know about the family; it may be empty.
func (f Family) Note() string { return f.known().Note }

// Confidence says how the rule is known.
func (f Family) Confidence() Confidence { return f.known().Confidence }

// Sources are where the rule and its numbers come from, at least one.
func (f Family) Sources() []string { return append([]string(nil), f.known().Sources...) }

// Match says how the family was found.
func (f Family) Match() Match {
	if f.entry == nil {
		return Match{How: ByDefault}
	}
	return f.match
}

// Max is the most tokens that one image can cost, at the costliest detail. For a
// rule without such a bound (bounded is false: Gemini up to 2.x counts tiles
// without end) it is what an image of unknown size is charged.
func (f Family) Max() (tokens int64, bounded bool) {
	e := f.known()
	if most := e.rule.max(); most > 0 {
		return most, true
	}
	return e.rule.most(auto), false
}

// Estimate estimates what an image costs. The error is a *RejectError: the vendor
// refuses such an image.
func (f Family) Estimate(image Image) (Estimate, error) {
	e := f.known()
	out := Estimate{Family: e.Name, Confidence: e.Confidence, Markers: e.Markers, UpperBound: e.UpperBound, image: image, rule: e.rule}
	detail := canonicalDetail(image.Detail)
	size := image.size()
	if !size.known() && e.rule.sized(detail) {
		out.count = count{tokens: e.rule.most(detail), unsized: true}
		out.Tokens, out.UpperBound = out.count.tokens, true
		return out, nil
	}
	c, no := e.rule.measure(size, detail)
	if no.limit != "" {
		return Estimate{}, no.error(e)
	}
	if image.quarterTurn() && size.Width != size.Height {
		turned, no := e.rule.measure(size.turned(), detail)
		if no.limit != "" {
			return Estimate{}, no.error(e)
		}
		if turned.tokens != c.tokens {
			out.UpperBound = true
		}
		if turned.tokens > c.tokens {
			c = turned
		}
	}
	out.count, out.Tokens, out.Resized = c, c.tokens, c.resized
	return out, nil
}
