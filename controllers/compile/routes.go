// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Reasons of a candidate: the catalog's verdicts, and one for what no catalog has.
const (
	// CandidateUsable: the model takes images, its transport is spoken and the policy allows it.
	CandidateUsable = string(router.VerdictUsable)
	// CandidateRouteNotFound: no provider of the policy declares the endpoint or the model.
	CandidateRouteNotFound = v1alpha1.ReasonRouteNotFound
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
func chooseRoutes(profile *router.Profile, catalog *router.Catalog) choice {
	var c choice
	if profile.DefaultModel != router.Auto {
		c.add(profile.DefaultModel, judgeRoute(catalog, profile.DefaultModel))
	} else {
		for entry := range catalog.All() {
			c.add(entry.Route.String(), string(catalog.Judge(entry)))
			if len(c.candidates) == maxCandidates && c.defaultRoute != "" {
				break
			}
		}
	}
	for _, fallback := range profile.FallbackModels {
		if judgeRoute(catalog, fallback) == CandidateRouteNotFound {
			c.missing = append(c.missing, fallback)
		}
	}
	return c
}

// add takes one more candidate in.
func (c *choice) add(route, reason string) {
	if reason == CandidateRouteNotFound {
		c.missing = append(c.missing, route)
	}
	if reason == CandidateUsable && c.defaultRoute == "" {
		c.defaultRoute = route
	}
	if len(c.candidates) < maxCandidates {
		c.candidates = append(c.candidates, v1alpha1.RouteCandidate{Route: route, Usable: reason == CandidateUsable, Reason: reason})
	}
}

// judgeRoute says why a route can, or cannot, serve.
func judgeRoute(catalog *router.Catalog, text string) string {
	route, err := router.ParseRoute(text)
	if err != nil {
		return CandidateRouteNotFound
	}
	entry, ok := catalog.Find(route)
	if !ok {
		return CandidateRouteNotFound
	}
	return string(catalog.Judge(entry))
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
