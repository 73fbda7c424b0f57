// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/vendors"
)

// occurrence is an image of the request: of its body, or of a sight. The other
// index is -1.
type occurrence struct{ image, sight int }

// judge sends the request through preflight, with the images of its sights as if
// they stood in it. What is over a limit is left out, or refuses the request.
//
// Images that were not read whole are, once anything has to go: what is a second
// occurrence goes before others, in this request and in all that come after it.
func (p *preparation) judge(ctx context.Context) *fault.Fault {
	all, in := p.gather()
	p.shown = make([]injection.Shown, len(p.plan.Sights))
	p.outset()
	if len(all) == 0 {
		return nil
	}
	verdict := p.snapshot.review(p, in)
	if !p.whole && !admitsAll(&verdict) {
		p.whole = true
		if bad := p.inspect(ctx); bad != nil {
			return bad
		}
		all, in = p.gather()
		verdict = p.snapshot.review(p, in)
	}
	p.record.Tokens = &verdict.Tokens
	p.record.Warnings = append(p.record.Warnings, verdict.Warnings...)
	if verdict.Refusal != nil {
		return verdict.Refusal
	}
	for i, of := range all {
		if d := &verdict.Decisions[i]; p.rule(of, d) {
			p.admitted, p.record.Decisions = append(p.admitted, of), append(p.record.Decisions, *d)
		}
	}
	return nil
}

// rule takes a decision over, and reports whether it is about an image that stands
// in the request or is left out of it; not about one that only once stood there.
func (p *preparation) rule(of occurrence, d *preflight.Decision) bool {
	left := d.Outcome == preflight.Degraded
	if of.sight < 0 {
		if left {
			p.replace(of.image, d.Note())
			p.record.Degraded++
		}
		return true
	}
	gone := p.found[of.sight].picture == nil
	if !left || p.plan.Sights[of.sight].State == injection.Old {
		return !gone
	}
	p.shown[of.sight] = injection.Shown{Text: d.Note(), Constant: true}
	p.record.Sights[of.sight].Outcome, p.record.Sights[of.sight].Reason = SightDegraded, d.Reason
	if p.record.Degraded++; gone {
		p.record.Unavailable--
	} else {
		p.record.Injected--
	}
	return true
}

// admitsAll reports whether nothing was left out or refused.
func admitsAll(v *preflight.Verdict) bool {
	return v.Refusal == nil && !slices.ContainsFunc(v.Decisions, func(d preflight.Decision) bool { return d.Outcome != preflight.Admitted })
}

// replace puts a text in the place of an image of the body.
func (p *preparation) replace(image int, text string) {
	part := p.scanned.TextPart(p.request.Body, image, text)
	p.edits = append(p.edits, message.Edit{Span: p.scanned.Images[image].Part, Segments: []message.Segment{{Text: part}}})
}

// outset is what each sight shows before any limit speaks: its picture, or why
// there is none.
func (p *preparation) outset() {
	p.record.Sights = make([]Sighted, len(p.plan.Sights))
	for i := range p.plan.Sights {
		s, r := &p.plan.Sights[i], &p.record.Sights[i]
		r.ID, r.CallID = s.ID, s.CallID
		switch {
		case s.State == injection.ShownByTool || s.State == injection.ShownInConversation:
			r.Outcome, r.Reason = SightShown, string(s.State)
		case s.State == injection.Wanted && p.found[i].picture != nil:
			p.shown[i] = injection.Shown{Picture: p.found[i].picture}
			r.Outcome, r.SHA256 = SightInjected, p.found[i].picture.SHA256
			p.record.Injected++
		default:
			r.Reason = string(s.State)
			if s.State == injection.Wanted {
				r.Reason = p.found[i].reason
			}
			p.shown[i] = injection.Shown{Text: p.plan.Unavailable(i, r.Reason)}
			r.Outcome = SightUnavailable
			p.record.Unavailable++
		}
	}
}

// weighs reports whether preflight is told of a sight: of its image, or of the one
// that it showed before and shows no more. What was left out beside that one is not
// to come back because a file has changed meanwhile, or a human has spoken.
func (p *preparation) weighs(i int) bool {
	switch found := &p.found[i]; p.plan.Sights[i].State {
	case injection.Wanted:
		return found.picture != nil || found.was.SHA256 != ""
	case injection.Old:
		return found.was.SHA256 != "" && p.plan.OldAt(i) > 0
	default:
		return false
	}
}

// gather lists every image of the request in the order of its turns, and what
// preflight judges.
func (p *preparation) gather() ([]occurrence, preflight.Input) {
	all := make([]occurrence, 0, len(p.images)+len(p.found))
	for i := range p.images {
		all = append(all, occurrence{i, -1})
	}
	for i := range p.found {
		if p.weighs(i) {
			all = append(all, occurrence{-1, i})
		}
	}
	if len(all) == 0 {
		return nil, preflight.Input{}
	}
	slices.SortStableFunc(all, func(a, b occurrence) int { return cmp.Compare(p.turnOf(a), p.turnOf(b)) })
	in := preflight.Input{
		Turns: preflight.TurnsOf(p.scanned), TextBytes: p.scanned.TextBytes,
		BodyBytes: int64(len(p.request.Body)), MaxOutputTokens: p.scanned.MaxOutputTokens,
	}
	for _, of := range all {
		if of.sight < 0 {
			in.Images = append(in.Images, p.images[of.image])
			continue
		}
		image := p.sighted(of.sight)
		in.BodyBytes += image.Base64Bytes
		in.Images = append(in.Images, image)
	}
	return all, in
}

func (p *preparation) turnOf(o occurrence) int {
	if o.sight < 0 {
		return p.images[o.image].Turn
	}
	return p.plan.Sights[o.sight].Turn
}

// sighted is the image of a sight as preflight judges it. One that we put in
// refuses no request: the model is told that it was left out. Where the policy
// wants images alone and the model takes none, it does.
func (p *preparation) sighted(i int) preflight.Image {
	s, found := &p.plan.Sights[i], &p.found[i]
	digest, size, facts, until := found.was.SHA256, found.was.Size, found.was.Facts, 0
	if found.picture != nil {
		digest, size, facts = found.picture.SHA256, found.picture.Size, found.facts
	} else if s.State == injection.Old {
		until = p.plan.OldAt(i)
	}
	var bad *fault.Fault
	if p.form == router.InjectionImage && !p.plan.Takes(p.request.Dialect, i, facts.MediaType) {
		bad = fault.New(fault.InvalidToolInput, preflight.ReasonMediaType, "the image is %s, which results of tools may not hold in this dialect", facts.MediaType)
	}
	return preflight.Image{
		ID: s.ID, Bad: bad, SHA256: digest, Bytes: size, Base64Bytes: vendors.Base64Length(size), Source: vendors.SourceBase64,
		MediaType: facts.MediaType, Width: facts.Width, Height: facts.Height,
		Orientation: facts.Orientation, Animated: facts.Animated == probe.Yes,
		Turn: s.Turn, InResult: s.Kind == injection.Called, Until: until,
		Soft: found.picture == nil || p.form != router.InjectionImage || p.entry.Model.ImageInput,
	}
}

// review judges by the model's own terms; where images are shown as text, by the
// policy's alone, since the model gets none. What looks at them judges for itself.
func (s *snapshot) review(p *preparation, in preflight.Input) preflight.Verdict {
	if p.entry.Provider == nil {
		return preflight.NewTerms(p.profile.Limits, p.foreign()).Review(in)
	}
	if p.form == router.InjectionObservation {
		return preflight.NewTerms(p.profile.Limits, preflight.Candidate{Route: p.entry.Route.String()}).Review(in)
	}
	return s.termsOf(&p.entry, s.clientOf(&p.entry)).Review(in)
}
