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

// Reasons of a candidate: the catalog's verdicts, and two for what no catalog has.
const (
	// CandidateUsable: the model takes images and the policy allows it.
	CandidateUsable = string(router.VerdictUsable)
	// CandidateDiscovered: the provider does not declare the model and discovers
	// its models, so each runtime finds out whether the endpoint has it. Nothing
	// else stands against the route.
	CandidateDiscovered = "DiscoveredAtRuntime"
	// CandidateRouteNotFound: no provider of the policy declares the endpoint or the model.
	CandidateRouteNotFound = v1alpha1.ReasonRouteNotFound
)

// choice is what a call without a model may take.
type choice struct {
	defaultRoute string
	// candidates are the first maxCandidates.
	candidates []v1alpha1.RouteCandidate
	problems   []problem
}

// chooseRoutes judges the routes that a call without a model may take, in the
// runtime's order: the default, or every declared route of the profile's
// providers when the choice is left to their order; then the fallbacks. A
// profile without providers has no automatic choice, which is told elsewhere.
func chooseRoutes(profile *router.Profile, catalog *router.Catalog) choice {
	var c choice
	if profile.DefaultModel == router.Auto {
		c.auto(catalog, max(maxCandidates-len(profile.FallbackModels), maxCandidates/2))
	} else {
		c.named(catalog, profile.DefaultModel)
	}
	for _, fallback := range profile.FallbackModels {
		reason := judgeRoute(catalog, fallback)
		c.list(fallback, reason)
		switch {
		case reason == CandidateRouteNotFound:
			c.problems = append(c.problems, notFound(fallback))
		case !usable(reason):
			c.problems = append(c.problems, problem{v1alpha1.ReasonFallbackNotUsable, fmt.Sprintf("fallback %q cannot serve: %s", fallback, reason)})
		}
	}
	return c
}

// named takes the one route that is the default.
func (c *choice) named(catalog *router.Catalog, route string) {
	reason := judgeRoute(catalog, route)
	c.list(route, reason)
	switch {
	case usable(reason):
		c.defaultRoute = route
	case reason == CandidateRouteNotFound:
		c.problems = append(c.problems, notFound(route))
	default:
		c.problems = append(c.problems, noUsableRoute(c.candidates))
	}
}

// auto takes the first declared route that can serve, and lists what it
// examined, most at the most. Where none can, runtimes may discover one.
func (c *choice) auto(catalog *router.Catalog, most int) {
	discovers := false
	for entry := range catalog.All() {
		discovers = discovers || entry.Provider.Discovery != nil
		reason := string(catalog.Judge(entry))
		if usable(reason) && c.defaultRoute == "" {
			c.defaultRoute = entry.Route.String()
		}
		if len(c.candidates) < most {
			c.list(entry.Route.String(), reason)
		} else if c.defaultRoute != "" {
			break
		}
	}
	if c.defaultRoute == "" && !discovers && len(c.candidates) > 0 {
		c.problems = append(c.problems, noUsableRoute(c.candidates))
	}
}

// list makes a route a candidate, unless it is one: an automatic choice may
// have come by a fallback.
func (c *choice) list(route, reason string) {
	listed := slices.ContainsFunc(c.candidates, func(candidate v1alpha1.RouteCandidate) bool { return candidate.Route == route })
	if !listed && len(c.candidates) < maxCandidates {
		c.candidates = append(c.candidates, v1alpha1.RouteCandidate{Route: route, Usable: usable(reason), Reason: reason})
	}
}

// resolved is the message of references without a problem.
func (c *choice) resolved() string {
	if c.defaultRoute == "" {
		return "every reference is resolved; no declared model can serve, so each runtime looks among those that it discovers"
	}
	return "every reference is resolved"
}

// usable reports whether nothing that the objects tell stands against a route.
func usable(reason string) bool { return reason == CandidateUsable || reason == CandidateDiscovered }

// judgeRoute says why a route can, or cannot, serve. A model that a provider
// with discovery does not declare is judged as if its endpoint had it.
func judgeRoute(catalog *router.Catalog, text string) string {
	route, err := router.ParseRoute(text)
	if err != nil {
		return CandidateRouteNotFound
	}
	asked := []router.Model{{Name: route.Model, ImageInput: true}}
	entry, ok := catalog.WithDiscovered(func(*router.Provider, string) []router.Model { return asked }).Find(route)
	if !ok {
		return CandidateRouteNotFound
	}
	verdict := catalog.Judge(entry)
	if entry.Discovered && verdict == router.VerdictUsable {
		return CandidateDiscovered
	}
	return string(verdict)
}

func notFound(route string) problem {
	return problem{v1alpha1.ReasonRouteNotFound, fmt.Sprintf(
		"route %q names an endpoint or model that no provider of the policy declares", route)}
}

// noUsableRoute names the first candidates with their reasons.
func noUsableRoute(candidates []v1alpha1.RouteCandidate) problem {
	const most = 4
	var parts []string
	for i, candidate := range candidates {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(candidates)-most))
			break
		}
		parts = append(parts, candidate.Route+" "+candidate.Reason)
	}
	return problem{v1alpha1.ReasonNoUsableRoute, "no route can serve: " + strings.Join(parts, ", ")}
}
