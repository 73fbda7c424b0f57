// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection chooses the model that looks at an image: the call's own
// model, else the policy's default, else the first of the profile's providers
// that can see. It is pure: facts in, a choice or a fault out, with every
// candidate that was examined and the reason for each.
//
// A model that was named is used or refused, never replaced by another.
package selection

import (
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
}

// Choice is the one model that was chosen, with the endpoint it was chosen on.
type Choice = router.Entry

// Select chooses. The error is nil or a *fault.Fault; beside an error the
// Choice is nil, and the Selection still tells what was examined.
func Select(in Input) (*Choice, *observation.Selection, error) {
	c := newChooser(in)
	if in.Model != "" {
		if in.Profile.PerCallModel == router.PerCallDenied {
			return c.refuse(perCallDenied(in.Model))
		}
		if !isAuto(in.Model) {
			return c.named(in.Model, true)
		}
		return c.auto()
	}
	if isAuto(in.Profile.DefaultModel) {
		return c.auto()
	}
	// Fallbacks of the default model (Profile.FallbackModels) come in here: each
	// is one more named route, tried when the one before it cannot serve.
	return c.named(in.Profile.DefaultModel, false)
}

func isAuto(model string) bool { return model == "" || strings.EqualFold(model, router.Auto) }

// chooser gathers candidates on the way to a choice.
type chooser struct {
	Input
	catalog   *router.Catalog
	primary   router.Route // canonical; zero when unknown
	selection observation.Selection
}

func newChooser(in Input) *chooser {
	c := &chooser{Input: in, catalog: in.Document.Catalog(in.Profile)}
	c.selection.SelectedMode = observation.ModeUnavailable
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
func (c *chooser) named(model string, perCall bool) (*Choice, *observation.Selection, error) {
	c.selection.SelectionReason = observation.ReasonExplicitUnavailable
	route, err := router.ParseRoute(model)
	if err != nil {
		return c.refuse(badRoute(err))
	}
	choice := c.find(route)
	reason := c.examine(route, choice)
	switch reason {
	case observation.ReasonAdvertises:
		return c.choose(choice, observation.ReasonExplicit)
	case observation.ReasonNotAllowed:
		return c.refuse(notAllowed(choice.Route, perCall))
	}
	if choice != nil {
		route = choice.Route
	}
	return c.refuse(c.unavailable(namedUnavailable(route, reason)))
}

// auto takes the first that can see: the caller's primary model, then the
// profile's providers in order, each endpoint with each model.
func (c *chooser) auto() (*Choice, *observation.Selection, error) {
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
	return c.refuse(c.unavailable(noCandidate()))
}

// examine judges one route by a chain of checks and records it.
func (c *chooser) examine(route router.Route, choice *Choice) observation.Reason {
	candidate := observation.Candidate{Provider: route.Provider, Model: route.Model, ModelRef: route.String(), Reason: c.judge(choice)}
	if choice != nil {
		candidate.ModelRef = choice.Route.String()
		candidate.ImageInput = choice.Model.ImageInput
	}
	list := c.selection.Candidates
	if len(list) < MaxCandidates {
		list = append(list, candidate)
	} else if candidate.Reason == observation.ReasonAdvertises {
		list[len(list)-1] = candidate
	}
	c.selection.Candidates = list
	return candidate.Reason
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
	return reasons[verdict]
}

// choose ends with a choice; a caller's own model is told apart.
func (c *chooser) choose(choice *Choice, reason observation.Reason) (*Choice, *observation.Selection, error) {
	s := &c.selection
	s.SelectedMode, s.SelectionReason = observation.ModeAdapter, reason
	if choice.Route == c.primary {
		s.SelectedMode = observation.ModeNative
		if reason == observation.ReasonAuto {
			s.SelectionReason = observation.ReasonPrimary
		}
	}
	s.VisionProvider, s.VisionModel, s.VisionModelRef = choice.Route.Provider, choice.Route.Model, choice.Route.String()
	return choice, s, nil
}

func (c *chooser) refuse(f *fault.Fault) (*Choice, *observation.Selection, error) {
	if c.selection.SelectionReason == "" {
		c.selection.SelectionReason = observation.ReasonExplicitUnavailable
	}
	return nil, &c.selection, f
}
