// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokens estimates what an image costs a model in input tokens, from
// its size alone: vendors count pixels, never bytes.
//
// Models that count alike form a [Family]. The families, their numbers, the
// names of their models and where each of them is published are data
// (catalog.json); the formulas are one file each (rule_*.go). [Find] goes from a
// model's name to its family, [Family.Estimate] from an image to a number with
// its reasons.
//
// The arithmetic is the vendor's. Where a rule is published as prose or as a
// table, it is computed in integers. Where it is published as code that uses
// IEEE double precision (Anthropic, Qwen, Mistral, Kimi, DeepSeek, Gemma 4), the
// same operations are done in the same order in float64, so that ties fall as
// they do there; each such rule says so.
//
// Estimates lean upwards: an unknown size is charged the most that the family
// can cost, and a rule that is not published is charged a bound.
//
// The package is pure: no files, no clock, no network.
package tokens

import "fmt"

// Image is what has to be known about an image. The zero value is an image of
// which nothing is known.
type Image struct {
	// Width and Height are in pixels, as stored. An image of which either is 0 or
	// less has an unknown size. Sides above 2^31-1, which no accepted format has,
	// count as 2^31-1.
	Width, Height int
	// Detail is what the request asks for, in the vendor's own word: OpenAI's low,
	// high, original and auto, Gemini's media resolutions (with or without
	// MEDIA_RESOLUTION_), and so on. Empty is the vendor's default; a word that the
	// family does not have counts as its default too. Case does not matter.
	Detail string
	// Orientation is EXIF's, 1 to 8; 0 when unknown. 5 to 8 turn the image by a
	// quarter. Whether a vendor turns it is mostly not published: where it makes a
	// difference, the larger number is charged.
	Orientation int
}

// Size is a width and a height in pixels.
type Size struct{ Width, Height int64 }

// known reports whether both sides are.
func (s Size) known() bool { return s.Width > 0 && s.Height > 0 }

// turned is the size after a quarter turn.
func (s Size) turned() Size { return Size{Width: s.Height, Height: s.Width} }

// long and short are the sides by their length.
func (s Size) long() int64  { return max(s.Width, s.Height) }
func (s Size) short() int64 { return min(s.Width, s.Height) }

// String is the form 1920x1080, or "unknown".
func (s Size) String() string {
	if !s.known() {
		return "unknown"
	}
	return fmt.Sprintf("%dx%d", s.Width, s.Height)
}

// maxSide is where sides are cut, so that areas fit into an int64.
const maxSide = 1<<31 - 1

// size is the stored size with its sides cut, or the zero Size when unknown.
func (i Image) size() Size {
	if i.Width <= 0 || i.Height <= 0 {
		return Size{}
	}
	return Size{Width: min(int64(i.Width), maxSide), Height: min(int64(i.Height), maxSide)}
}

// quarterTurn reports whether the orientation swaps the sides.
func (i Image) quarterTurn() bool { return i.Orientation >= 5 && i.Orientation <= 8 }

// Confidence says how a family's rule is known.
type Confidence string

// The confidences, the best first.
const (
	// Published: in the vendor's documents, SDK or released code.
	Published Confidence = "published"
	// Derived: our reading of something published for a neighbour, such as the
	// next version of a model.
	Derived Confidence = "derived"
	// ThirdParty: measured or worked out by others.
	ThirdParty Confidence = "third-party"
	// Assumed: nothing is known of the model; the number is a careful guess.
	Assumed Confidence = "assumed"
)

// Estimate is what one image costs.
type Estimate struct {
	// Tokens is the cost of the image itself. It is never negative.
	Tokens int64
	// Markers are the tokens that frame the image beside Tokens, such as Qwen's
	// start and end of vision. The vendor bills them too.
	Markers int64
	// Family names the family whose rule was used.
	Family string
	// Confidence says how that rule is known.
	Confidence Confidence
	// UpperBound is set when Tokens is the most that the image may cost and not
	// the count itself: an unknown size, an orientation that may or may not be
	// applied, or a rule of which only the bound is published.
	UpperBound bool
	// Resized is the size that the vendor counts. It is zero when the size is
	// unknown or the rule does not depend on it.
	Resized Size

	image Image
	rule  rule
	count count
}

// Total is Tokens and Markers together: what to charge.
func (e Estimate) Total() int64 { return e.Tokens + e.Markers }

// Basis is one short sentence that says the rule, the size it counted and the
// counts. It is built when asked for: the number alone costs no allocation.
func (e Estimate) Basis() string {
	if e.rule == nil {
		return "nothing was estimated"
	}
	detail := ""
	if d := canonicalDetail(e.image.Detail); d != auto {
		detail = ", detail " + quoted(d)
	}
	if e.count.unsized {
		return fmt.Sprintf("%s: size unknown%s, charged the most it can cost, %d tokens", e.Family, detail, e.Tokens)
	}
	text := fmt.Sprintf("%s: %s%s", e.Family, e.rule.basis(e), detail)
	if e.UpperBound {
		text += ", an upper bound"
	}
	return text
}

// quoted keeps a caller's word short and printable.
func quoted(s string) string {
	const most = 32
	if len(s) > most {
		s = s[:most]
	}
	return fmt.Sprintf("%q", s)
}

// RejectError says that the vendor refuses the image, whatever the budget. Such
// an image must not be sent: in a conversation it would fail every later turn.
type RejectError struct {
	// Family names the family whose rule refuses it.
	Family string
	// Limit says what is limited, such as "patches" or "aspect ratio".
	Limit string
	// Unit is the unit of Value and Actual.
	Unit string
	// Value is the limit and Actual what the image has. Where a ratio is limited,
	// Actual is rounded up.
	Value, Actual int64
	// Source is where the limit is published.
	Source string
}

// Error names the limit, both numbers and the source.
func (e *RejectError) Error() string {
	return fmt.Sprintf("estimating an image's tokens for %s: %s is %d %s, above the vendor's limit of %d (%s)",
		e.Family, e.Limit, e.Actual, e.Unit, e.Value, e.Source)
}
