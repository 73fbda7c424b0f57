// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Need is one endpoint whose list of models may matter to a choice.
type Need struct {
	Provider *router.Provider
	Endpoint *router.Endpoint
}

// NeedsDiscovery says which endpoints' lists may matter to a choice, so that
// the network is asked for no others, and in most cases for none:
//
//   - a route that the call or the policy names and a provider declares: none;
//   - such a route that no provider declares: its endpoint, if that has a list;
//   - an automatic choice: none when a declared model can serve, else all.
//
// An endpoint whose provider's key is not mounted is never asked, nor one for a
// route that the policy does not allow. Input.Discovered does not matter.
// Fallbacks need no list before they are needed themselves; see Plan.Unlisted.
func NeedsDiscovery(in Input) []Need {
	if in.denied() {
		return nil
	}
	in.Discovered = nil
	c := newChooser(in)
	if model := in.named(); model != "" {
		return c.needOf(model)
	}
	var needs []Need
	seen := map[Need]bool{}
	for at := range c.catalog.Discoverable() {
		need := Need{at.Provider, at.Endpoint}
		if !seen[need] && !in.Unmounted[at.Provider.Name] {
			seen[need] = true
			needs = append(needs, need)
		}
	}
	if len(needs) > 0 {
		if _, err := c.auto(); err == nil {
			return nil
		}
	}
	return needs
}

// needOf is the endpoint that may list a named model, when no provider declares it.
func (c *chooser) needOf(model string) []Need {
	route, err := router.ParseRoute(model)
	if err != nil {
		return nil
	}
	route = c.catalog.Canonical(route)
	at, ok := c.listOf(route)
	if !ok || c.find(route) != nil || c.judgeUnknown(route) != observation.ReasonUnknownRoute {
		return nil
	}
	return []Need{{at.Provider, at.Endpoint}}
}

// listOf is the endpoint of a canonical route, if it is asked for its models.
func (c *chooser) listOf(route router.Route) (router.Entry, bool) {
	for at := range c.catalog.Discoverable() {
		if at.Route.Provider == route.Provider && at.Route.Endpoint == route.Endpoint {
			return at, true
		}
	}
	return router.Entry{}, false
}

// judgeUnknown says why a route that the router does not have cannot serve: what
// keeps its endpoint from being asked for it comes before its not being there.
func (c *chooser) judgeUnknown(route router.Route) observation.Reason {
	at, ok := c.listOf(route)
	switch {
	case !ok:
		return observation.ReasonUnknownRoute
	case !c.Profile.Allows(route, at.Provider.Name):
		return observation.ReasonNotAllowed
	case c.Unmounted[at.Provider.Name]:
		return observation.ReasonCredentialNotMounted
	}
	return observation.ReasonUnknownRoute
}
