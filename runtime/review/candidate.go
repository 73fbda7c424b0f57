// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"net/url"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// candidate is the model that the request is for: the one that the review
// names, else the body, else the path. A route of the profile is that; a bare
// name is the declared model of that name; anything else is a model that is not
// declared, of which its name alone tells.
//
// denied is set when the policy's allow-lists do not let the model look at
// images; see mayBeAllowed for one that is not declared.
func (r *review) candidate(scanned *message.Request, grant Grant) (candidate preflight.Candidate, denied *fault.Fault) {
	name := r.req.Model
	if name == "" {
		name = scanned.Model
	}
	if name == "" {
		name = r.Target.Model
	}
	entry, found := grant.Catalog.Named(name, r.Dialect.Transport())
	if !found {
		if len(grant.Profile.Allow) > 0 && !mayBeAllowed(name, grant) {
			denied = notAllowed(name)
		}
		return preflight.Candidate{Model: name, Transport: r.Dialect.Transport()}, denied
	}
	if entry.Others > 0 {
		r.warn("%d declared models have the name of the request's; it is judged as %s", entry.Others+1, entry.Route)
	}
	candidate = preflight.Candidate{
		Route: entry.Route.String(), Model: entry.Model.Name, Transport: entry.Provider.Transport,
		Host: hostOf(entry.Endpoint.URL), Declared: entry.Model,
	}
	if !grant.Profile.Allows(entry.Route, entry.Provider.Name) {
		denied = notAllowed(candidate.Route)
	}
	return candidate, denied
}

func notAllowed(model string) *fault.Fault {
	f := fault.New(fault.PolicyDenied, "ModelNotAllowed", "the policy's allow-lists do not let the model %s look at images", clip(model))
	if model == "" {
		f = fault.New(fault.PolicyDenied, "ModelNotAllowed", "the request names no model; the policy's allow-lists let only those that they name look at images")
	}
	return f.With("model", clip(model)).Hint("Choose a model that the policy allows, or leave the images out.")
}

// mayBeAllowed reports whether the allow-lists have a model that is not declared:
// under the route by which it is named, or, by its bare name, at an endpoint
// that is asked for its models.
func mayBeAllowed(name string, grant Grant) bool {
	if route, err := router.ParseRoute(name); err == nil {
		if at, _ := grant.Catalog.Find(route); at.Provider != nil {
			return at.Endpoint != nil && grant.Profile.Allows(at.Route, at.Provider.Name)
		}
	}
	for at := range grant.Catalog.Discoverable() {
		route := at.Route
		route.Model = strings.TrimPrefix(name, "models/")
		if name != "" && grant.Profile.Allows(route, at.Provider.Name) {
			return true
		}
	}
	return false
}

// hostOf is the host of a base URL, with its port if it has one.
func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Host
}
