// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Reasons of a candidate. The runtime gives the same answers in the words of
// its own interface; these are spelled as Kubernetes spells reasons.
const (
	// CandidateUsable: the model takes images, its transport is spoken and the policy allows it.
	CandidateUsable = "Usable"
	// CandidateRouteNotFound: no provider of the policy declares the endpoint or the model.
	CandidateRouteNotFound = v1alpha1.ReasonRouteNotFound
	// CandidateTransportNotSupported: this build's runtime does not speak the provider's transport.
	CandidateTransportNotSupported = v1alpha1.ReasonTransportNotSupported
	// CandidateLacksImageInput: the model is declared with imageInput false.
	CandidateLacksImageInput = "LacksImageInput"
	// CandidateNotAllowed: allowedModels does not hold the route.
	CandidateNotAllowed = "NotAllowed"
)

// choice is what a call without a model may take.
type choice struct {
	defaultRoute string
	// candidates are the first maxCandidates; missing are all routes that name nothing known.
	candidates []v1alpha1.RouteCandidate
	missing    []string
}

// chooseRoutes judges the routes that a call without a model may take, in the
// runtime's order: the default alone, or every route of the profile's
// providers when the choice is left to their order. Fallbacks are looked up,
// and are no candidates as long as the runtime tries none.
func chooseRoutes(profile *router.Profile, uses []use) choice {
	var c choice
	for route := range routesOf(profile, uses) {
		reason := judgeRoute(profile, uses, route)
		if reason == CandidateRouteNotFound {
			c.missing = append(c.missing, route)
		}
		if reason == CandidateUsable && c.defaultRoute == "" {
			c.defaultRoute = route
		}
		if len(c.candidates) < maxCandidates {
			c.candidates = append(c.candidates, v1alpha1.RouteCandidate{Route: route, Usable: reason == CandidateUsable, Reason: reason})
		} else if c.defaultRoute != "" {
			break
		}
	}
	for _, fallback := range profile.FallbackModels {
		if judgeRoute(profile, uses, fallback) == CandidateRouteNotFound {
			c.missing = append(c.missing, fallback)
		}
	}
	return c
}

func routesOf(profile *router.Profile, uses []use) iter.Seq[string] {
	return func(yield func(string) bool) {
		if profile.DefaultModel != router.Auto {
			yield(profile.DefaultModel)
			return
		}
		yieldAll(uses, yield)
	}
}

// yieldAll yields every route of the providers in order of preference.
func yieldAll(uses []use, yield func(string) bool) {
	for _, u := range uses {
		for _, e := range u.Endpoints {
			for _, m := range u.Models {
				if !yield(router.Route{Provider: u.alias, Endpoint: e.Name, Model: m.Name}.String()) {
					return
				}
			}
		}
	}
}

// judgeRoute says why a route can, or cannot, serve.
func judgeRoute(profile *router.Profile, uses []use, text string) string {
	route, err := router.ParseRoute(text)
	if err != nil {
		return CandidateRouteNotFound
	}
	u := findUse(route.Provider, uses)
	if u == nil || !u.hasEndpoint(route.Endpoint) {
		return CandidateRouteNotFound
	}
	switch model := u.model(route.Model); {
	case model == nil:
		return CandidateRouteNotFound
	case !profile.Allows(route, u.Name):
		return CandidateNotAllowed
	case !model.ImageInput:
		return CandidateLacksImageInput
	case !u.supported:
		return CandidateTransportNotSupported
	}
	return CandidateUsable
}

// problems tells what the choice says about a policy's references.
func (c *choice) problems(providers int) []problem {
	var problems []problem
	for _, route := range c.missing {
		problems = append(problems, problem{v1alpha1.ReasonRouteNotFound, fmt.Sprintf(
			"route %q names an endpoint or model that no provider of the policy declares", route)})
	}
	if c.defaultRoute == "" && providers > 0 && !c.allMissing() {
		problems = append(problems, problem{v1alpha1.ReasonNoUsableRoute, "no route can serve: " + c.reasons()})
	}
	return problems
}

// allMissing reports whether every candidate names nothing known, which is told already.
func (c *choice) allMissing() bool {
	return len(c.candidates) > 0 && !slices.ContainsFunc(c.candidates, func(candidate v1alpha1.RouteCandidate) bool {
		return candidate.Reason != CandidateRouteNotFound
	})
}

// reasons lists the first candidates with their reasons.
func (c *choice) reasons() string {
	const most = 4
	var parts []string
	for i, candidate := range c.candidates {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(c.candidates)-most))
			break
		}
		parts = append(parts, candidate.Route+" "+candidate.Reason)
	}
	return strings.Join(parts, ", ")
}
