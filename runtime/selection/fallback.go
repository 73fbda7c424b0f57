// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"

	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Fallback is one of the policy's fallbackModels, judged like any candidate.
type Fallback struct {
	// Choice is nil when the router has not the route.
	Choice *Choice
	// Candidate is the fallback as a Selection reports it.
	Candidate observation.Candidate
}

// Usable reports whether the fallback may be asked.
func (f *Fallback) Usable() bool { return f.Candidate.Reason == observation.ReasonAdvertises }

// fallbacks judges the policy's fallbacks in order. Those that were examined
// already, the choice itself among them, and repeated ones are left out.
func (c *chooser) fallbacks() []Fallback {
	known := make(map[string]bool, len(c.selection.Candidates))
	for _, candidate := range c.selection.Candidates {
		known[candidate.ModelRef] = true
	}
	var list []Fallback
	for _, text := range c.Profile.FallbackModels {
		f := c.fallback(text)
		if !known[f.Candidate.ModelRef] {
			known[f.Candidate.ModelRef] = true
			list = append(list, f)
		}
	}
	return list
}

func (c *chooser) fallback(text string) Fallback {
	route, err := router.ParseRoute(text)
	if err != nil { // a document that was not validated
		text = clip(text)
		return Fallback{Candidate: observation.Candidate{Model: text, ModelRef: text, Reason: observation.ReasonUnknownRoute}}
	}
	route = c.catalog.Canonical(route)
	choice := c.find(route)
	return Fallback{Choice: choice, Candidate: c.candidate(route, choice)}
}

// unlisted are the endpoints that may list those of the plan's fallbacks that no
// provider declares and that are not known to be listed.
func (c *chooser) unlisted(list []Fallback) []Need {
	var needs []Need
	for i := range list {
		if list[i].Choice == nil {
			needs = append(needs, c.needOf(list[i].Candidate.ModelRef)...)
		}
	}
	return needs
}

// Relist returns p with what is left of its fallbacks judged anew, now that
// in.Discovered holds the lists of p.Unlisted. Nothing else of p changes, and
// Unlisted is empty; in is otherwise what p was made of.
func (p *Plan) Relist(in Input) *Plan {
	c := newChooser(in)
	c.selection.Candidates = p.Selection.Candidates
	next := *p
	next.Fallbacks, next.Unlisted = c.fallbacks(), nil
	return &next
}

// FallBack returns the plan after p's Choice was asked and failed. The next
// usable fallback is chosen; those on the way to it that are not usable are
// listed with their reasons. When none is left, Choice is nil, and the Selection
// is that of the last model that was asked, with all that was examined.
func (p *Plan) FallBack() *Plan {
	if p.Choice == nil {
		return p
	}
	next := &Plan{primary: p.primary, refused: p.refused, Unlisted: p.Unlisted}
	list := slices.Clone(p.Selection.Candidates)
	list[len(list)-1].Reason = observation.ReasonObservationFailed
	for i := range p.Fallbacks {
		list = append(list, p.Fallbacks[i].Candidate)
		if p.Fallbacks[i].Usable() {
			next.Choice, next.Fallbacks = p.Fallbacks[i].Choice, p.Fallbacks[i+1:]
			break
		}
	}
	told := *p.Selection
	next.Selection = &told
	next.Selection.Candidates = next.bound(list)
	if next.Choice != nil {
		next.tell(observation.ReasonFallback)
	}
	return next
}

// bound keeps a list of candidates within MaxCandidates: what was refused before
// the first choice goes first, from its end.
func (p *Plan) bound(list []observation.Candidate) []observation.Candidate {
	if over := len(list) - MaxCandidates; over > 0 {
		kept := max(0, p.refused-over)
		list = slices.Delete(list, kept, p.refused)
		p.refused = kept
	}
	return list[max(0, len(list)-MaxCandidates):]
}
