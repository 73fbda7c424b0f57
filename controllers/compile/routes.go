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

// Reasons of a candidate: the catalog's verdicts, and three for what no catalog has.
const (
	// CandidateUsable: the model takes images and the policy allows it.
	CandidateUsable = string(router.VerdictUsable)
	// CandidateDiscovered: the provider does not declare the model and discovers
	// its models, so each runtime finds out whether the endpoint has it. Nothing
	// else stands against the route.
	CandidateDiscovered = "DiscoveredAtRuntime"
	// CandidateRouteNotFound: no provider of the policy declares the endpoint or the model.
	CandidateRouteNotFound = v1alpha1.ReasonRouteNotFound
	// CandidateCredentialNotShared: the provider's key stays in its own
	// namespace. Nothing else stands against the route.
	CandidateCredentialNotShared = v1alpha1.ReasonCredentialNotShared
)

// judge says of the routes of a policy's providers whether they can serve.
type judge struct {
	// profile holds every provider that the policy names; the document's profile
	// only those that serve.
	profile *router.Profile
	catalog *router.Catalog
	// unshared are the providers, by name, whose key stays in their namespace.
	unshared map[string]bool
	// saidBy is what a message about a route begins with where a baseline names it.
	saidBy map[string]string
}

func newJudge(uses []use) *judge {
	j := &judge{profile: &router.Profile{}, unshared: map[string]bool{}, saidBy: map[string]string{}}
	byName := make(map[string]*router.Provider, len(uses))
	for _, u := range uses {
		j.profile.Providers = append(j.profile.Providers, router.ProviderUse{Alias: u.alias, Provider: u.Name})
		byName[u.Name] = &u.Provider
		if u.unshared {
			j.unshared[u.Name] = true
		}
	}
	j.catalog = router.NewCatalog(j.profile, func(name string) *router.Provider { return byName[name] })
	return j
}

// entry says why a route that is known can, or cannot, serve.
func (j *judge) entry(e router.Entry) string {
	verdict := j.catalog.Judge(e)
	switch {
	case verdict != router.VerdictUsable:
		return string(verdict)
	case j.unshared[e.Provider.Name]:
		return CandidateCredentialNotShared
	case e.Discovered:
		return CandidateDiscovered
	}
	return CandidateUsable
}

// route says why a route can, or cannot, serve, and finds its provider. A model
// that a provider with discovery does not declare is judged as if its endpoint
// had it.
func (j *judge) route(text string) (string, *router.Provider) {
	route, err := router.ParseRoute(text)
	if err != nil {
		return CandidateRouteNotFound, nil
	}
	asked := []router.Model{{Name: route.Model, ImageInput: true}}
	entry, ok := j.catalog.WithDiscovered(func(*router.Provider, string) []router.Model { return asked }).Find(route)
	if !ok {
		return CandidateRouteNotFound, nil
	}
	return j.entry(entry), entry.Provider
}

// refusedBy are the objects whose allow-lists do not hold a route.
func (j *judge) refusedBy(text string, provider *router.Provider) []string {
	route, err := router.ParseRoute(text)
	if err != nil {
		return nil
	}
	var from []string
	for _, list := range j.profile.Allow {
		alone := router.Profile{Allow: []router.AllowList{list}}
		if !alone.Allows(j.catalog.Canonical(route), provider.Name) {
			from = append(from, list.From)
		}
	}
	return from
}

// canonical fills in the endpoint that the short form leaves to the provider's
// first. A route that names nothing known stays as it is written, so that the
// runtime's refusal and the status name the same thing.
func (j *judge) canonical(text string) string {
	if text == router.Auto {
		return text
	}
	route, err := router.ParseRoute(text)
	if err != nil {
		return text
	}
	return j.catalog.Canonical(route).String()
}

// routes sets the default and the fallbacks of the profile. A route is written
// in the terms of a list of providers: one of another layer than the object's own
// and than the one whose list holds does not count where it names nothing here.
func (e *effective) routes(m *merge, named *layer) {
	inherited := func(l *layer) bool { return l != m.layers[0] && l != named }
	e.profile.DefaultModel = router.Auto
	from := FromDefault
	for _, l := range m.layers {
		if l.DefaultModel == nil {
			continue
		}
		route := e.judge.canonical(*l.DefaultModel)
		if inherited(l) && route != router.Auto && e.strange(m.at(l, "spec.defaultModel"), route) {
			continue
		}
		e.profile.DefaultModel, from = route, l.from
		e.said(m, l, "spec.defaultModel", route)
		break
	}
	m.note("spec.defaultModel", from, e.profile.DefaultModel)

	const field = "spec.fallbackModels"
	for _, l := range m.layers {
		if l.FallbackModels != nil {
			e.fallbacks(m.at(l, field), l.FallbackModels, inherited(l))
			e.said(m, l, field, e.profile.FallbackModels...)
			m.note(field, l.from, e.profile.FallbackModels)
			return
		}
	}
	m.note(field, FromDefault, "")
}

// said notes which baseline's field names a route, where it is not the object's own.
func (e *effective) said(m *merge, l *layer, field string, routes ...string) {
	for _, route := range routes {
		if _, known := e.judge.saidBy[route]; !known && l != m.layers[0] {
			e.judge.saidBy[route] = m.at(l, field) + ": "
		}
	}
}

// strange reports whether an inherited route names nothing here, and tells it.
func (e *effective) strange(field, route string) bool {
	if reason, _ := e.judge.route(route); reason != CandidateRouteNotFound {
		return false
	}
	e.redundant = append(e.redundant, fmt.Sprintf("%s: %s names nothing that the providers of this policy declare, and does not count here", field, route))
	return true
}

// fallbacks sets the fallbacks: canonical, and without what adds nothing, which
// redundant names by its field.
func (e *effective) fallbacks(at string, models []string, inherited bool) {
	fields := map[string]string{e.profile.DefaultModel: "spec.defaultModel"}
	for i, model := range models {
		route, field := e.judge.canonical(model), fmt.Sprintf("%s[%d]", at, i)
		if inherited && e.strange(field, route) {
			continue
		}
		if first, seen := fields[route]; seen {
			e.redundant = append(e.redundant, fmt.Sprintf("%s: %s is the route of %s already, and is not tried twice", field, route, first))
			continue
		}
		fields[route] = field
		e.profile.FallbackModels = append(e.profile.FallbackModels, route)
	}
}

// choice is what a call without a model may take.
type choice struct {
	defaultRoute string
	// provider is the default route's, "namespace/name".
	provider string
	// candidates are the first maxCandidates.
	candidates []v1alpha1.RouteCandidate
	problems   []problem
	// passedOver are sentences about fallbacks that are known and cannot serve.
	passedOver []string
}

// chooseRoutes judges the routes that a call without a model may take, in the
// runtime's order: the default, or every declared route of the policy's
// providers when the choice is left to their order; then the fallbacks. A
// policy without providers has no automatic choice, which is told elsewhere.
func chooseRoutes(profile *router.Profile, j *judge) choice {
	var c choice
	if profile.DefaultModel == router.Auto {
		c.auto(j, max(maxCandidates-len(profile.FallbackModels), maxCandidates/2))
	} else {
		c.named(j, profile.DefaultModel)
	}
	for _, fallback := range profile.FallbackModels {
		reason, provider := j.route(fallback)
		c.list(fallback, reason)
		switch {
		case reason == CandidateRouteNotFound:
			c.problems = append(c.problems, j.notFound(fallback))
		case !usable(reason):
			c.passedOver = append(c.passedOver, fmt.Sprintf("fallback %q cannot serve and is passed over: %s", fallback, j.because(reason, fallback, provider)))
		}
	}
	return c
}

// named takes the one route that is the default.
func (c *choice) named(j *judge, route string) {
	reason, provider := j.route(route)
	c.list(route, reason)
	switch {
	case usable(reason):
		c.defaultRoute, c.provider = route, provider.Name
	case reason == CandidateRouteNotFound:
		c.problems = append(c.problems, j.notFound(route))
	default:
		c.problems = append(c.problems, j.noUsableRoute(c.candidates))
	}
}

// auto takes the first declared route that can serve, and lists what it
// examined, most at the most. Where none can, runtimes may discover one.
func (c *choice) auto(j *judge, most int) {
	discovers := false
	for entry := range j.catalog.All() {
		discovers = discovers || entry.Provider.Discovery != nil && !j.unshared[entry.Provider.Name]
		reason := j.entry(entry)
		if usable(reason) && c.defaultRoute == "" {
			c.defaultRoute, c.provider = entry.Route.String(), entry.Provider.Name
		}
		if len(c.candidates) < most {
			c.list(entry.Route.String(), reason)
		} else if c.defaultRoute != "" {
			break
		}
	}
	if c.defaultRoute == "" && !discovers && len(c.candidates) > 0 {
		c.problems = append(c.problems, j.noUsableRoute(c.candidates))
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

// resolved is the verdict on references without a problem. Fallbacks that are
// passed over leave the policy in force, and are told.
func (c *choice) resolved() Verdict {
	v := Verdict{OK: true, Reason: v1alpha1.ReasonResolved, Message: "every reference is resolved"}
	if c.defaultRoute == "" {
		v.Message += "; no declared model can serve, so each runtime looks among those that it discovers"
	}
	if len(c.passedOver) > 0 {
		v.Reason = v1alpha1.ReasonFallbackNotUsable
		v.Message = joinProblems(append([]string{v.Message}, c.passedOver...))
	}
	return v
}

// usable reports whether nothing that the objects tell stands against a route.
func usable(reason string) bool { return reason == CandidateUsable || reason == CandidateDiscovered }

func (j *judge) notFound(route string) problem {
	return problem{v1alpha1.ReasonRouteNotFound, fmt.Sprintf(
		"%sroute %q names an endpoint or model that no provider of the policy declares", j.saidBy[route], route)}
}

// noUsableRoute names the first candidates with their reasons, and the objects
// whose allow-lists refuse them.
func (j *judge) noUsableRoute(candidates []v1alpha1.RouteCandidate) problem {
	const most = 4
	var parts []string
	for i, candidate := range candidates {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(candidates)-most))
			break
		}
		_, provider := j.route(candidate.Route)
		parts = append(parts, candidate.Route+" "+j.because(candidate.Reason, candidate.Route, provider))
	}
	return problem{v1alpha1.ReasonNoUsableRoute, "no route can serve: " + strings.Join(parts, ", ")}
}

// because is a candidate's reason with the objects behind it.
func (j *judge) because(reason, route string, provider *router.Provider) string {
	if reason == string(router.VerdictNotAllowed) && provider != nil {
		return reason + " by " + strings.Join(j.refusedBy(route, provider), " and ")
	}
	return reason
}
