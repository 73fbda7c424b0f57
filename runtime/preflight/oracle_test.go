// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"slices"

	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// told is what the oracle says of a request: whether it is allowed, and which
// images are left out of it.
type told struct {
	allowed bool
	left    []int
}

// past is a request that ended at some turn, looked at without any cleverness:
// every sum is made anew, every label read off the turns.
type past struct {
	in   preflight.Input
	last int
	gone map[int]bool
}

// oracle is the rule of the package comment, written from its text: for each
// request that the conversation has been, shed what that one had to, for good.
func oracle(in preflight.Input) told {
	gone := map[int]bool{}
	out := told{allowed: true}
	last := max(len(in.Turns)-1, 0)
	for k := 0; k <= last; k++ {
		p := &past{in: in, last: k, gone: gone}
		out.allowed = p.possible()
		if out.allowed {
			p.shed()
		}
	}
	p := &past{in: in, last: last, gone: gone}
	for i := range in.Images {
		if gone[i] || p.unusable(i) && !p.required(i) {
			out.left = append(out.left, i)
		}
	}
	if out.left == nil {
		out.left = []int{}
	}
	return out
}

// required reads the label of an image off the turns, as of the last one.
func (p *past) required(i int) bool {
	img := p.in.Images[i]
	if img.Required || len(p.in.Turns) == 0 {
		return img.Required
	}
	newest := func(kind preflight.Kind) int {
		for k := p.last; k >= 0; k-- {
			if p.in.Turns[k].Kind == kind {
				return k
			}
		}
		return -1
	}
	kind := p.in.Turns[img.Turn].Kind
	return kind == preflight.Human && newest(preflight.Human) == img.Turn ||
		(kind == preflight.Results || img.InResult) && newest(preflight.Assistant) < img.Turn
}

func (p *past) unusable(i int) bool {
	img, limits := p.in.Images[i], p.in.Candidate.Declared.Limits
	side := int64(max(img.Width, img.Height))
	return img.Bad != nil || img.MediaType != "image/png" || !p.in.Candidate.Declared.ImageInput ||
		img.Bytes > p.in.Limits.Image.MaxBytes || img.Bytes > p.in.Limits.Request.MaxTotalImageBytes ||
		limits.MaxImageSide > 0 && side > limits.MaxImageSide
}

// there are the images of a request that are sent: of all, or of the required ones.
func (p *past) there(requiredOnly bool) []int {
	var list []int
	for i, img := range p.in.Images {
		if img.Turn <= p.last && !p.gone[i] && !p.unusable(i) && (!requiredOnly || p.required(i)) {
			list = append(list, i)
		}
	}
	return list
}

func (p *past) name(i int) string {
	if name := p.in.Images[i].SHA256; name != "" {
		return name
	}
	return "image " + p.in.Images[i].ID
}

// wide says that Anthropic does not take the image among more than 20.
func (p *past) wide(i int) bool { return max(p.in.Images[i].Width, p.in.Images[i].Height) > 2000 }

// over says which rule a set of images is over, by what goes first: contents,
// occurrences, wide, or none ("").
// alone leaves text out of the tokens.
func (p *past) over(list []int, alone bool) string {
	in, limits := p.in, p.in.Candidate.Declared.Limits
	names := map[string]bool{}
	var contentBytes, base64, cost int64
	for _, i := range list {
		if !names[p.name(i)] {
			contentBytes += in.Images[i].Bytes
		}
		names[p.name(i)] = true
		base64 += in.Images[i].Base64Bytes
		e, _ := tokens.Find(in.Candidate.Model, "").Estimate(tokens.Image{Width: in.Images[i].Width, Height: in.Images[i].Height})
		cost += e.Total()
	}
	if int64(len(names)) > in.Limits.Request.MaxDistinctImages || contentBytes > in.Limits.Request.MaxTotalImageBytes {
		return "contents"
	}
	text, body := in.TextBytes, in.BodyBytes
	for _, t := range in.Turns[min(p.last+1, len(in.Turns)):] {
		text, body = text-t.TextBytes, body-t.BodyBytes
	}
	if in.BodyBytes > 0 {
		for _, img := range in.Images {
			body -= img.Base64Bytes
		}
	} else {
		body = text
	}
	if limits.MaxImages > 0 && int64(len(list)) > limits.MaxImages {
		return "occurrences"
	}
	if in.Candidate.Host == "api.anthropic.com" && len(list) > 20 && slices.ContainsFunc(list, p.wide) {
		return "wide"
	}
	if limits.MaxRequestBytes > 0 && body+base64 > limits.MaxRequestBytes {
		return "occurrences"
	}
	if most := in.Limits.Request.MaxImageTokens; most > 0 && cost > most {
		return "occurrences"
	}
	window := in.Candidate.Declared.ContextWindowTokens
	if window == 0 {
		return ""
	}
	if alone {
		if cost > window {
			return "occurrences"
		}
		return ""
	}
	headroom := min(tokens.Headroom(window), window/4)
	reserve := in.MaxOutputTokens
	if reserve+headroom >= window {
		reserve = 0
	}
	if (text+3)/4+cost+reserve+headroom > window {
		return "occurrences"
	}
	return ""
}

func (p *past) possible() bool {
	for i, img := range p.in.Images {
		if img.Turn <= p.last && p.required(i) && p.unusable(i) {
			return false
		}
	}
	return p.over(p.there(true), true) == ""
}

// shed takes the oldest content, or the oldest occurrence with duplicates first,
// until no rule is broken or nothing optional is left.
func (p *past) shed() {
	for {
		list := p.there(false)
		switch p.over(list, false) {
		case "":
			return
		case "contents":
			if !p.shedContent(list) {
				return
			}
		case "wide":
			if !slices.ContainsFunc(list, func(i int) bool { return p.wide(i) && p.required(i) }) {
				p.gone[list[slices.IndexFunc(list, p.wide)]] = true
				continue
			}
			fallthrough
		default:
			if !p.shedOccurrence(list) {
				return
			}
		}
	}
}

func (p *past) shedContent(list []int) bool {
	newest := map[string]int{}
	for _, i := range list {
		newest[p.name(i)] = i
	}
	for _, i := range list {
		needed := slices.ContainsFunc(list, func(j int) bool { return p.name(j) == p.name(i) && p.required(j) })
		if newest[p.name(i)] != i || needed {
			continue
		}
		for _, j := range list {
			if p.name(j) == p.name(i) {
				p.gone[j] = true
			}
		}
		return true
	}
	return false
}

func (p *past) shedOccurrence(list []int) bool {
	for _, duplicatesOnly := range []bool{true, false} {
		for at, i := range list {
			again := slices.ContainsFunc(list[at+1:], func(j int) bool { return p.name(j) == p.name(i) })
			if !p.required(i) && (again || !duplicatesOnly) {
				p.gone[i] = true
				return true
			}
		}
	}
	return false
}
