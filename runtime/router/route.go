// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"regexp"
	"strings"
)

// Route names one model of one endpoint of one provider. Its text form is
// "provider@endpoint/model", or "provider/model" where the endpoint is left to
// the provider's first. The model may contain slashes.
type Route struct {
	Provider string
	// Endpoint is empty in the short form.
	Endpoint string
	Model    string
}

// Bounds of a route's parts, in bytes.
const (
	maxRouteLabel = 63  // as a DNS label: provider aliases and endpoint names
	maxRouteModel = 253 // as models[].name
)

var routeLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9_]*[a-z0-9])?$`)

// labelGrammar is what isRouteLabel wants, in words.
const labelGrammar = "1 to 63 of a-z, 0-9, - and _, beginning and ending with a letter or digit"

func isRouteLabel(s string) bool { return len(s) <= maxRouteLabel && routeLabel.MatchString(s) }

// ParseRoute reads a route: split at the first slash, then at the first @.
func ParseRoute(s string) (Route, error) {
	head, model, ok := strings.Cut(s, "/")
	if !ok {
		return Route{}, &RouteError{Route: s, Problem: "has no slash: want provider@endpoint/model or provider/model"}
	}
	name, endpoint, hasEndpoint := strings.Cut(head, "@")
	if err := checkRouteLabel(s, "provider", name); err != nil {
		return Route{}, err
	}
	if hasEndpoint {
		if err := checkRouteLabel(s, "endpoint", endpoint); err != nil {
			return Route{}, err
		}
	}
	switch {
	case model == "":
		return Route{}, &RouteError{Route: s, Problem: "has an empty model"}
	case len(model) > maxRouteModel:
		return Route{}, &RouteError{Route: s, Problem: fmt.Sprintf("has a model of %d bytes; the limit is %d", len(model), maxRouteModel)}
	case strings.ContainsFunc(model, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return Route{}, &RouteError{Route: s, Problem: "has white space or a control character in its model"}
	}
	return Route{Provider: name, Endpoint: endpoint, Model: model}, nil
}

// String is the text form.
func (r Route) String() string {
	if r.Endpoint == "" {
		return r.Provider + "/" + r.Model
	}
	return r.Provider + "@" + r.Endpoint + "/" + r.Model
}

// RouteError says why a text is not a route.
type RouteError struct {
	Route   string
	Problem string
}

// Error names the route and the problem.
func (e *RouteError) Error() string { return fmt.Sprintf("route %q %s", e.Route, e.Problem) }

func checkRouteLabel(route, part, label string) error {
	if !isRouteLabel(label) {
		return &RouteError{Route: route, Problem: fmt.Sprintf("has the %s %q: want %s", part, label, labelGrammar)}
	}
	return nil
}
