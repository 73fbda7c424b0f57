// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// terms are everything that a candidate and a policy hold a request to.
type terms struct {
	bounds
	name string
	// declared is what the provider declares; empty, and undeclared set, where it
	// does not.
	declared   *router.Model
	undeclared bool
	sees       bool
	family     tokens.Family
	// rules are those of the request; ofOne those of one with a single image, where
	// they were made beforehand.
	rules, ofOne []rule
	// windowTokens is the context window, 0 when unknown; reserve and headroom are
	// what it keeps free of text and images.
	windowTokens, reserve, headroom int64
	advice                          []advice
	warnings                        []string
}

// bounds are the numbers and lists. Of an image: types to pixels. Of a request:
// the others.
type bounds struct {
	types, sources, stills                []words
	imageBytes, imageBase64, side, pixels []bound

	contents, contentBytes        []bound
	images, perTurn               []bound
	totalBytes, totalBase64, body []bound
	many                          *many
	imageTokens, window           []bound
}

// words is a list, and whose it is: what is accepted, and for stills the types
// of which animations are not, all when there is none.
type words struct {
	bound
	list []string
}

const thePolicy = "the policy"

// Terms are everything that a policy and a candidate hold requests to, gathered
// once for many of them. They never change.
type Terms struct{ of terms }

// NewTerms gathers the terms of a candidate under a policy.
func NewTerms(limits router.Limits, candidate Candidate) *Terms {
	t := prepare(&limits, &candidate)
	t.ofOne = requestRules(&t.bounds, true)
	return &Terms{of: *t}
}

// Review is the package's Review, with the limits and the candidate of the terms:
// those of in are not read.
func (t *Terms) Review(in Input) Verdict { return review(&in, t.of.forRequest(&in)) }

// termsOf gathers what the policy, the provider and the vendor hold a request to.
func termsOf(in *Input) *terms { return prepare(&in.Limits, &in.Candidate).forRequest(in) }

// prepare gathers what does not depend on the request.
func prepare(limits *router.Limits, c *Candidate) *terms {
	t := &terms{name: c.name(), sees: true, declared: c.Declared, undeclared: c.Declared == nil}
	if t.undeclared {
		t.declared = &router.Model{}
	} else {
		t.sees = c.Declared.ImageInput
	}
	t.ofPolicy(limits)
	t.ofModel(t.declared)
	t.ofVendor(c, t.declared)
	if t.windowTokens = within(t.declared.ContextWindowTokens); t.windowTokens > 0 {
		t.headroom = min(tokens.Headroom(t.windowTokens), t.windowTokens/4)
		t.window = []bound{{max: t.windowTokens, limit: "contextWindowTokens", owner: t.name}}
	}
	if t.sees {
		t.family = tokens.Find(c.Model, t.declared.Family)
	}
	return t
}

// forRequest is a copy of the terms, with what depends on the request.
func (t *terms) forRequest(in *Input) *terms {
	with := *t
	with.reserveOutput(in)
	if t.sees {
		with.warn(in)
	}
	if single := len(in.Images) == 1; single && t.ofOne != nil {
		with.rules = t.ofOne
	} else {
		with.rules = requestRules(&with.bounds, single)
	}
	return &with
}

// ofPolicy are the policy's own bounds.
func (t *terms) ofPolicy(limits *router.Limits) {
	policy := func(max int64, limit string) []bound { return []bound{{max: max, limit: limit, owner: thePolicy}} }
	if list := limits.Image.MediaTypes; len(list) > 0 {
		t.types = append(t.types, words{bound{limit: "limits.image.mediaTypes", owner: thePolicy}, list})
	}
	t.imageBytes = append(policy(limits.Image.MaxBytes, "limits.image.maxBytes"),
		policy(limits.Request.MaxTotalImageBytes, "limits.request.maxTotalImageBytes")...)
	t.pixels = policy(limits.Image.MaxPixels, "limits.image.maxPixels")
	t.contents = policy(limits.Request.MaxDistinctImages, "limits.request.maxDistinctImages")
	t.contentBytes = policy(limits.Request.MaxTotalImageBytes, "limits.request.maxTotalImageBytes")
	if most := limits.Request.MaxImageTokens; most > 0 {
		t.imageTokens = policy(most, "limits.request.maxImageTokens")
	}
}

// ofModel are the bounds that the provider declares of the model, as they count
// on the wire: an image in base64. The types are those of
// router.Model.AcceptedMediaTypes.
func (t *terms) ofModel(model *router.Model) {
	owner := t.name
	if limits := model.Limits; limits != nil {
		declare := func(into *[]bound, max int64, limit string) {
			if max > 0 {
				*into = append(*into, bound{max: max, limit: limit, owner: owner})
			}
		}
		declare(&t.images, limits.MaxImages, "limits.maxImages")
		declare(&t.side, limits.MaxImageSide, "limits.maxImageSide")
		declare(&t.body, limits.MaxRequestBytes, "limits.maxRequestBytes")
		declare(&t.imageBase64, limits.MaxImageBytes, "limits.maxImageBytes")
	}
	if t.sees {
		types, _ := model.AcceptedMediaTypes()
		t.types = append(t.types, words{bound{limit: "limits.mediaTypes", owner: owner}, types})
	}
}

// reserveOutput keeps the answer's share of the context window free. Headroom is
// for what estimates miss; of a small window it takes a quarter at most. An output
// limit that fills the window by itself reserves nothing: no image could make
// room for it.
func (t *terms) reserveOutput(in *Input) {
	t.reserve = within(in.MaxOutputTokens)
	if most := t.declared.MaxOutputTokens; most > 0 {
		t.reserve = min(t.reserve, most)
	}
	if t.windowTokens > 0 && t.reserve+t.headroom >= t.windowTokens {
		t.warnings = append(t.warnings, fmt.Sprintf("the output limit of %d tokens fills the context window of %s, which has %d; nothing is reserved for it", t.reserve, t.name, t.windowTokens))
		t.reserve = 0
	}
}

// warn tells what is not known of the candidate.
func (t *terms) warn(in *Input) {
	if len(in.Images) == 0 {
		return
	}
	if t.undeclared {
		t.warnings = append(t.warnings, t.name+" is not declared by its provider; it is taken to look at images")
	}
	if t.windowTokens == 0 {
		t.warnings = append(t.warnings, "the context window of "+t.name+" is not known; tokens were not checked against it")
	}
	switch match := t.family.Match(); {
	case match.UnknownDeclared:
		t.warnings = append(t.warnings, fmt.Sprintf("no token family is called %q; that of %s is %s", t.declared.Family, t.name, t.family.Name()))
	case match.How == tokens.ByDefault:
		t.warnings = append(t.warnings, "the token rule of "+t.name+" is not known; its images are charged with care")
	}
}
