// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection chooses the model that looks at an image: the call's own
// model, else the policy's default, else the first of the profile's providers
// that can see. It is pure: facts in, a plan or a fault out, with every
// candidate that was examined and the reason for each.
//
// A model that a call names is used or refused, never replaced by another. The
// policy's default gives way to the policy's fallbacks when it fails.
package selection

import (
	"cmp"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// MaxCandidates bounds how many candidates a Selection reports: the first ones,
// with the chosen one always last. More are examined, not more are listed.
const MaxCandidates = 64

// Input is all that a choice depends on.
type Input struct {
	// Document and Profile are of one snapshot; Profile is one of Document's.
	Document *router.Document
	Profile  *router.Profile
	// Model is the call's own route, or empty, or "auto" in any case.
	Model string
	// Primary is the caller's own model as a route, or empty. An automatic
	// choice tries it first, where the policy lets calls name a model at all.
	Primary string
	// Unmounted are the providers, "namespace/name", whose key this pod has not.
	Unmounted map[string]bool
	// Discovered are the models that endpoints list; nil when none was asked.
	// NeedsDiscovery says which of them may matter.
	Discovered router.Discovered
	// Check says what else stands against a choice that the router finds usable,
	// such as the model's limits against the image: the reason for the candidate,
	// and the fault for a call that has no other. Nil checks nothing.
	Check func(*Choice) (observation.Reason, *fault.Fault)
}

// named is the one route that may be used; empty when the choice is automatic.
func (in *Input) named() string {
	model := in.Model
	if model == "" {
		model = in.Profile.DefaultModel
	}
	if model == "" || strings.EqualFold(model, router.Auto) {
		return ""
	}
	return model
}

// denied reports a call that names a model where none may.
func (in *Input) denied() bool {
	return in.Model != "" && in.Profile.PerCallModel == router.PerCallDenied
}

// Choice is one model that was chosen, with the endpoint it was chosen on.
type Choice = router.Entry

// Plan is which model looks, and which may after it. It is never changed.
type Plan struct {
	// Choice is the model to ask; nil beside an error, and when no fallback is left.
	Choice *Choice
	// Selection is never nil. It tells of Choice, or of what was examined in vain.
	Selection *observation.Selection
	// Fallbacks are what may take Choice's place, judged, in the policy's order:
	// none when the call named a model, "auto" included. See FallBack.
	Fallbacks []Fallback
	// Unlisted are the endpoints that may list those Fallbacks that no provider
	// declares. They are worth asking once a fallback is needed; see Relist.
	Unlisted []Need

	primary router.Route
	refused int // how many of Selection.Candidates come before the first that was chosen
}

// Select chooses. The error is nil or a *fault.Fault. The Plan is never nil:
// beside an error its Choice is, and its Selection still tells what was examined.
func Select(in Input) (*Plan, error) {
	c := newChooser(in)
	if in.denied() {
		return c.refuse(perCallDenied(in.Model))
	}
	if model := in.named(); model != "" {
		return c.named(model)
	}
	return c.auto()
}

// chooser gathers candidates on the way to a choice.
type chooser struct {
	Input
	catalog   *router.Catalog
	primary   router.Route // canonical; zero when unknown
	selection observation.Selection
	checked   *fault.Fault // of the first candidate that Check spoke against
}

func newChooser(in Input) *chooser {
	c := &chooser{Input: in, catalog: in.Document.Catalog(in.Profile).WithDiscovered(in.Discovered)}
	c.selection.SelectedMode = observation.ModeUnavailable
	c.selection.SelectionReason = observation.ReasonExplicitUnavailable
	c.selection.Candidates = []observation.Candidate{}
	if in.Primary != "" {
		c.selection.PrimaryModel = clip(in.Primary)
		if r, err := router.ParseRoute(in.Primary); err == nil {
			c.selection.PrimaryProvider, c.selection.PrimaryModel = r.Provider, r.Model
			c.primary = c.catalog.Canonical(r)
		}
	}
	return c
}

// find looks a route up; nil when the router does not have it.
func (c *chooser) find(r router.Route) *Choice {
	entry, ok := c.catalog.Find(r)
	if !ok {
		return nil
	}
	return &entry
}

// named uses the one route that was named, or refuses.
func (c *chooser) named(model string) (*Plan, error) {
	route, err := router.ParseRoute(model)
	if err != nil {
		return c.refuse(badRoute(err))
	}
	route = c.catalog.Canonical(route)
	choice := c.find(route)
	reason := c.examine(route, choice)
	if choice == nil {
		reason = c.judgeUnknown(route)
	}
	switch reason {
	case observation.ReasonAdvertises:
		return c.choose(choice, observation.ReasonExplicit)
	case observation.ReasonNotAllowed:
		return c.refuse(notAllowed(route, c.Model != ""))
	}
	if c.checked != nil {
		return c.refuse(c.against())
	}
	return c.refuse(c.unavailable(c.namedUnavailable(route, choice, reason)))
}

// auto takes the first that can see: the caller's primary model, then the
// profile's providers in order, each endpoint with each model; then what was
// discovered.
func (c *chooser) auto() (*Plan, error) {
	c.selection.SelectionReason = observation.ReasonNone
	primaryFirst := c.primary.Model != "" && c.Profile.PerCallModel != router.PerCallDenied
	if primaryFirst {
		choice := c.find(c.primary)
		if c.examine(c.primary, choice) == observation.ReasonAdvertises {
			return c.choose(choice, observation.ReasonAuto)
		}
	}
	for choice := range c.catalog.All() {
		if primaryFirst && choice.Route == c.primary {
			continue
		}
		if c.examine(choice.Route, &choice) == observation.ReasonAdvertises {
			return c.choose(&choice, observation.ReasonAuto)
		}
	}
	if c.checked != nil { // without it there would be a choice
		return c.refuse(c.against())
	}
	return c.refuse(c.unavailable(c.noCandidate()))
}

// examine judges one canonical route and records it.
func (c *chooser) examine(route router.Route, choice *Choice) observation.Reason {
	candidate := c.candidate(route, choice)
	list := c.selection.Candidates
	if len(list) < MaxCandidates {
		list = append(list, candidate)
	} else if candidate.Reason == observation.ReasonAdvertises {
		list[len(list)-1] = candidate
	}
	c.selection.Candidates = list
	return candidate.Reason
}

func (c *chooser) candidate(route router.Route, choice *Choice) observation.Candidate {
	return observation.Candidate{
		Provider: route.Provider, Model: route.Model, ModelRef: route.String(),
		ImageInput: choice != nil && choice.Model.ImageInput,
		Reason:     c.judge(choice),
	}
}

// reasons are the catalog's verdicts in the words of the runtime's interface.
var reasons = map[router.Verdict]observation.Reason{
	router.VerdictNotAllowed:            observation.ReasonNotAllowed,
	router.VerdictLacksImageInput:       observation.ReasonLacksImageInput,
	router.VerdictTransportNotSupported: observation.ReasonTransportUnsupported,
	router.VerdictUsable:                observation.ReasonAdvertises,
}

func (c *chooser) judge(choice *Choice) observation.Reason {
	if choice == nil {
		return observation.ReasonUnknownRoute
	}
	verdict := c.catalog.Judge(*choice)
	if verdict == router.VerdictUsable && c.Unmounted[choice.Provider.Name] {
		return observation.ReasonCredentialNotMounted
	}
	if verdict == router.VerdictUsable && c.Check != nil {
		if reason, bad := c.Check(choice); bad != nil {
			c.checked = cmp.Or(c.checked, bad)
			return reason
		}
	}
	return reasons[verdict]
}

// choose ends with a choice; a caller's own model is told apart.
func (c *chooser) choose(choice *Choice, reason observation.Reason) (*Plan, error) {
	plan := &Plan{Choice: choice, Selection: &c.selection, primary: c.primary, refused: len(c.selection.Candidates) - 1}
	plan.tell(reason)
	if plan.Selection.SelectedMode == observation.ModeNative && reason == observation.ReasonAuto {
		plan.Selection.SelectionReason = observation.ReasonPrimary
	}
	if c.Model == "" {
		plan.Fallbacks = c.fallbacks()
		plan.Unlisted = c.unlisted(plan.Fallbacks)
	}
	return plan, nil
}

// tell writes the choice into the selection.
func (p *Plan) tell(reason observation.Reason) {
	s, route := p.Selection, p.Choice.Route
	s.SelectedMode, s.SelectionReason = observation.ModeAdapter, reason
	if route == p.primary {
		s.SelectedMode = observation.ModeNative
	}
	s.VisionProvider, s.VisionModel, s.VisionModelRef = route.Provider, route.Model, route.String()
}

func (c *chooser) refuse(f *fault.Fault) (*Plan, error) {
	return &Plan{Selection: &c.selection}, f
}
