// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"slices"
	"strings"

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
		if gone[i] || p.unusable(i) && p.label(i) != hard {
			out.left = append(out.left, i)
		}
	}
	if out.left == nil {
		out.left = []int{}
	}
	return out
}

// The labels of an image.
const (
	optional = "optional"
	soft     = "soft"
	hard     = "hard"
	own      = "untouchable"
)

func (p *past) label(i int) string {
	switch img := p.in.Images[i]; {
	case img.Untouchable:
		return own
	case !p.required(i):
		return optional
	case img.Soft:
		return soft
	}
	return hard
}

// required reads off the turns, as of the last one, whether an image is.
func (p *past) required(i int) bool {
	img := p.in.Images[i]
	if p.away(i) {
		return false
	}
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
	return !img.Untouchable && (img.Bad != nil || img.MediaType != "image/png" || !p.in.Candidate.Declared.ImageInput ||
		img.Bytes > p.in.Limits.Image.MaxBytes || img.Bytes > p.in.Limits.Request.MaxTotalImageBytes ||
		limits.MaxImageSide > 0 && side > limits.MaxImageSide)
}

// away says that an image stands in the conversation no more.
func (p *past) away(i int) bool {
	img := p.in.Images[i]
	return img.Until > 0 && p.last >= img.Until
}

// there are the images of a request that are sent and have one of the labels.
func (p *past) there(labels ...string) []int {
	var list []int
	for i, img := range p.in.Images {
		if img.Turn <= p.last && !p.away(i) && !p.gone[i] && !p.unusable(i) && slices.Contains(labels, p.label(i)) {
			list = append(list, i)
		}
	}
	return list
}

func (p *past) all() []int { return p.there(optional, soft, hard, own) }

func (p *past) name(i int) string {
	if name := p.in.Images[i].SHA256; name != "" {
		return name
	}
	return "image " + p.in.Images[i].ID
}

// wide says that Anthropic does not take the image among more than 20.
func (p *past) wide(i int) bool { return max(p.in.Images[i].Width, p.in.Images[i].Height) > 2000 }

// The rules, by what goes first: contents, those of a crowded message, the wide,
// occurrences.
var ruleOrder = []string{"contents", "content bytes", "images", "message", "wide", "body", "image tokens", "window"}

// over says whether a set of images is over a rule; alone, that they are all that is
// required, so that the model and its vendor count what is untouchable beside them,
// and text does not count as tokens.
func (p *past) over(rule string, list []int, alone bool) bool {
	in, limits := p.in, p.in.Candidate.Declared.Limits
	policy := rule == "contents" || rule == "content bytes" || rule == "image tokens"
	if alone && len(list) > 0 && !policy {
		list = append(slices.Clone(list), p.there(own)...)
	}
	names := map[string]bool{}
	var contentBytes, base64, cost int64
	for _, i := range list {
		if !names[p.name(i)] {
			contentBytes += in.Images[i].Bytes
		}
		names[p.name(i)] = true
		base64 += in.Images[i].Base64Bytes
		if in.Candidate.Declared.ImageInput {
			e, _ := tokens.Find(in.Candidate.Model, "").Estimate(tokens.Image{Width: in.Images[i].Width, Height: in.Images[i].Height})
			cost += e.Total()
		}
	}
	switch rule {
	case "contents":
		return int64(len(names)) > in.Limits.Request.MaxDistinctImages
	case "content bytes":
		return contentBytes > in.Limits.Request.MaxTotalImageBytes
	case "images":
		return limits.MaxImages > 0 && int64(len(list)) > limits.MaxImages
	case "message":
		return p.crowd(list) != nil
	case "wide":
		return in.Candidate.Host == "api.anthropic.com" && in.Candidate.Declared.ImageInput && len(list) > 20 && slices.ContainsFunc(list, p.wide)
	case "body":
		return limits.MaxRequestBytes > 0 && p.beside()+base64 > limits.MaxRequestBytes
	case "image tokens":
		return in.Limits.Request.MaxImageTokens > 0 && cost > in.Limits.Request.MaxImageTokens
	}
	window := in.Candidate.Declared.ContextWindowTokens
	if window == 0 || alone {
		return window > 0 && cost > window
	}
	headroom := min(tokens.Headroom(window), window/4)
	reserve := in.MaxOutputTokens
	if reserve+headroom >= window {
		reserve = 0
	}
	return (p.text()+3)/4+cost+reserve+headroom > window
}

func (p *past) text() int64 {
	text := p.in.TextBytes
	for _, t := range p.in.Turns[min(p.last+1, len(p.in.Turns)):] {
		text -= t.TextBytes
	}
	return text
}

// beside is what the body has beside images.
func (p *past) beside() int64 {
	body := p.in.BodyBytes
	if body == 0 {
		return p.text()
	}
	for _, t := range p.in.Turns[min(p.last+1, len(p.in.Turns)):] {
		body -= t.BodyBytes
	}
	for _, img := range p.in.Images {
		body -= img.Base64Bytes
	}
	return body
}

// crowd are the images of the first message that holds too many for Bedrock, which
// does not look at the assistant's own; nil when there is none.
func (p *past) crowd(list []int) []int {
	if !strings.HasPrefix(p.in.Candidate.Host, "bedrock") || !p.in.Candidate.Declared.ImageInput {
		return nil
	}
	for k := range p.in.Turns {
		var in []int
		for _, i := range list {
			if p.in.Images[i].Turn == k && p.label(i) != own {
				in = append(in, i)
			}
		}
		if len(in) > 20 {
			return in
		}
	}
	return nil
}

func (p *past) possible() bool {
	for i, img := range p.in.Images {
		if img.Turn <= p.last && p.label(i) == hard && p.unusable(i) {
			return false
		}
	}
	for _, rule := range ruleOrder {
		if p.over(rule, p.there(hard), true) {
			return false
		}
	}
	return true
}

// shed takes what is optional until no rule is broken or nothing of it is left, then
// what is soft until no rule would refuse it.
func (p *past) shed() {
	for _, rule := range ruleOrder {
		for p.over(rule, p.all(), false) {
			gone := p.next(rule, optional)
			if len(gone) == 0 {
				break
			}
			p.drop(gone)
			p.dropBeforeSignature(4 - len(slices.DeleteFunc(gone, p.unsigned)))
		}
	}
	for _, rule := range ruleOrder {
		for p.over(rule, p.there(soft, hard), true) {
			p.drop(p.next(rule, soft))
		}
	}
}

func (p *past) drop(list []int) {
	for _, i := range list {
		p.gone[i] = true
	}
}

// unsigned says that no signed reasoning comes after an image.
func (p *past) unsigned(i int) bool {
	return !slices.ContainsFunc(p.in.Turns[min(p.in.Images[i].Turn+1, p.last+1):min(p.last+1, len(p.in.Turns))], func(t preflight.Turn) bool { return t.Signed })
}

// dropBeforeSignature takes the n oldest that come before signed reasoning, if any
// of what was just taken does.
func (p *past) dropBeforeSignature(n int) {
	list := slices.DeleteFunc(p.there(optional), p.unsigned)
	if n > 0 && n < 4 {
		p.drop(list[:min(n, len(list))])
	}
}

// next are the images of a label that go next for a rule.
func (p *past) next(rule, label string) []int {
	list := p.all()
	mine := p.there(label)
	switch rule {
	case "contents", "content bytes":
		return p.nextContent(list, label)
	case "message":
		return p.nextOfMessage(list, label)
	case "wide":
		stays := false
		for _, i := range list {
			l := p.label(i)
			stays = stays || p.wide(i) && (l == own || l == hard || l == soft && label == optional)
		}
		if !stays {
			return mine[slices.IndexFunc(mine, p.wide):][:1]
		}
	}
	if label == soft {
		return mine[:1]
	}
	return p.nextOccurrence(list)
}

// nextContent is the oldest content of which no occurrence has to stay.
func (p *past) nextContent(list []int, label string) []int {
	var gone []int
	for at, i := range list {
		labels := map[string]bool{}
		gone = nil
		for _, j := range list {
			if p.name(j) == p.name(i) {
				labels[p.label(j)] = true
				if p.label(j) != own {
					gone = append(gone, j)
				}
			}
		}
		again := slices.ContainsFunc(list[at+1:], func(j int) bool { return p.name(j) == p.name(i) })
		if again || labels[hard] || labels[soft] != (label == soft) || label == optional && labels[own] {
			continue
		}
		return gone
	}
	return nil
}

// nextOfMessage is the first in a message that holds too many.
func (p *past) nextOfMessage(list []int, label string) []int {
	for {
		in := p.crowd(list)
		if in == nil {
			return nil
		}
		if at := slices.IndexFunc(in, func(i int) bool { return p.label(i) == label }); at >= 0 {
			return in[at : at+1]
		}
		list = slices.DeleteFunc(list, func(i int) bool { return slices.Contains(in, i) })
	}
}

// nextOccurrence is the oldest, duplicates first.
func (p *past) nextOccurrence(list []int) []int {
	for _, duplicatesOnly := range []bool{true, false} {
		for at, i := range list {
			again := slices.ContainsFunc(list[at+1:], func(j int) bool { return p.name(j) == p.name(i) })
			if p.label(i) == optional && (again || !duplicatesOnly) {
				return []int{i}
			}
		}
	}
	return nil
}
