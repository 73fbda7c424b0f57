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
	name   string
	sees   bool
	family tokens.Family
	rules  []rule
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

// termsOf gathers what the policy, the provider and the vendor hold a request to.
func termsOf(in *Input) *terms {
	c := &in.Candidate
	t := &terms{name: c.name(), sees: true}
	declared := &router.Model{}
	if c.Declared != nil {
		declared, t.sees = c.Declared, c.Declared.ImageInput
	}
	t.ofPolicy(&in.Limits)
	t.ofModel(declared)
	t.ofVendor(c, declared)
	t.ofWindow(in, declared)
	if t.sees {
		t.family = tokens.Find(c.Model, declared.Family)
		t.warn(in, declared)
	}
	t.rules = requestRules(&t.bounds, len(in.Images) == 1)
	return t
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

// ofWindow is the context window, with what is kept free of it. Headroom is for
// what estimates miss; of a small window it takes a quarter at most. An output
// limit that fills the window by itself reserves nothing: no image could make
// room for it.
func (t *terms) ofWindow(in *Input, model *router.Model) {
	t.reserve = within(in.MaxOutputTokens)
	if model.MaxOutputTokens > 0 {
		t.reserve = min(t.reserve, model.MaxOutputTokens)
	}
	t.windowTokens = within(model.ContextWindowTokens)
	if t.windowTokens == 0 {
		return
	}
	t.headroom = min(tokens.Headroom(t.windowTokens), t.windowTokens/4)
	if t.reserve+t.headroom >= t.windowTokens {
		t.warnings = append(t.warnings, fmt.Sprintf("the output limit of %d tokens fills the context window of %s, which has %d; nothing is reserved for it", t.reserve, t.name, t.windowTokens))
		t.reserve = 0
	}
	t.window = []bound{{max: t.windowTokens, limit: "contextWindowTokens", owner: t.name}}
}

// warn tells what is not known of the candidate.
func (t *terms) warn(in *Input, declared *router.Model) {
	if len(in.Images) == 0 {
		return
	}
	if in.Candidate.Declared == nil {
		t.warnings = append(t.warnings, t.name+" is not declared by its provider; it is taken to look at images")
	}
	if t.windowTokens == 0 {
		t.warnings = append(t.warnings, "the context window of "+t.name+" is not known; tokens were not checked against it")
	}
	switch match := t.family.Match(); {
	case match.UnknownDeclared:
		t.warnings = append(t.warnings, fmt.Sprintf("no token family is called %q; that of %s is %s", declared.Family, t.name, t.family.Name()))
	case match.How == tokens.ByDefault:
		t.warnings = append(t.warnings, "the token rule of "+t.name+" is not known; its images are charged with care")
	}
}
