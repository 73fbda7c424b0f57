// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// This file says where a request for a model goes.

// longestNamed bounds a model's name in messages; names are the caller's own words.
const longestNamed = 253

// proxied returns what is in use and its profile, if that has a proxy.
func (e *Engine) proxied() (*snapshot, *fault.Fault) {
	snap := e.snapshot.Load()
	if snap == nil {
		return nil, noRouter()
	}
	profile, bad := snap.granted(e.options.Profile)
	if bad != nil {
		return nil, bad
	}
	if profile.Runtime.Proxy == nil {
		return nil, fault.New(fault.PolicyDenied, "ProxyDisabled", "the policy of this pod has no model proxy").
			Hint("Ask the platform team to set runtime.proxy.enabled, or call the model's vendor directly.")
	}
	return snap, nil
}

// entry finds the model that a request of a dialect names. Endpoints are asked for
// their models only for a name that no provider declares.
func (e *Engine) entry(ctx context.Context, snap *snapshot, d message.Dialect, name string) (router.Entry, *fault.Fault) {
	if name == "" {
		return router.Entry{}, fault.New(fault.InvalidToolInput, "ModelMissing", "the request names no model").
			With("field", "model").Hint("Name a model or a route of the policy.")
	}
	found, ok := e.named(ctx, snap, d, name)
	if !ok {
		return router.Entry{}, unserved(name, "no provider of the policy has it")
	}
	switch entry := found.Entry; {
	case !snap.profile.Allows(entry.Route, entry.Provider.Name):
		return entry, fault.New(fault.PolicyDenied, "ModelNotAllowed", "the policy does not allow the model %s", entry.Route).
			With("field", "model").With("model", entry.Route.String()).Hint("Choose a model that the policy allows.")
	case !router.Serves(entry.Provider.Transport, d.Transport()):
		return entry, unserved(name, "it is served by "+entry.Route.String()+", which speaks "+entry.Provider.Transport).
			Hint("Call it in that dialect, or choose a model of this one.")
	default:
		return entry, nil
	}
}

// named looks a model up by its route or name: among those that are declared, and
// then among those that endpoints tell.
func (e *Engine) named(ctx context.Context, snap *snapshot, d message.Dialect, name string) (router.Named, bool) {
	catalog := snap.catalog
	found, ok := catalog.Named(name, d.Transport())
	if !ok && name != "" {
		if lists := e.listed(ctx, snap, catalog); lists != nil {
			found, ok = catalog.WithDiscovered(lists).Named(name, d.Transport())
		}
	}
	return found, ok
}

// listed are the models that the endpoints which tell them list; nil when none does.
func (e *Engine) listed(ctx context.Context, snap *snapshot, catalog *router.Catalog) router.Discovered {
	l := &look{engine: e, snapshot: snap, profile: snap.profile}
	for at := range catalog.Discoverable() {
		l.needs = append(l.needs, selection.Need{Provider: at.Provider, Endpoint: at.Endpoint})
	}
	if len(l.needs) == 0 {
		return nil
	}
	return l.lists(ctx)
}

func unserved(name, why string) *fault.Fault {
	name = observation.Printable(name[:min(len(name), longestNamed)])
	f := fault.New(fault.InvalidToolInput, "ModelNotFound", "the model %s is not served here: %s", name, why).
		With("field", "model").With("model", name).Hint("List the models to see what is served.")
	f.HTTPStatus = statusNotFound
	return f
}

const statusNotFound = 404

// target makes ready where an entry's requests go.
func (s *snapshot) target(entry router.Entry) (Target, *fault.Fault) {
	c := s.client(clientID(entry.Provider, entry.Endpoint))
	if c == nil || c.err != nil || c.stream == nil {
		f := fault.New(fault.VisionAdapterUnavailable, "EndpointInvalid", "the endpoint of %s is not usable", entry.Route).
			With("model", entry.Route.String()).Hint("Ask the platform team to check the endpoint's caBundle.")
		if c != nil {
			f.Cause = c.err
		}
		return Target{}, f
	}
	t := Target{
		Route: entry.Route, Provider: entry.Provider.Name, Transport: entry.Provider.Transport,
		Endpoint: exchange.Endpoint{BaseURL: entry.Endpoint.URL, APIVersion: entry.Endpoint.APIVersion, Client: c.stream}, Client: c.stream,
	}
	if entry.Model != nil {
		t.Model = entry.Model.Name
	}
	return t, nil
}

// Models are those that requests of a dialect may name, in the order in which the
// policy has them. The error is a *fault.Fault.
func (e *Engine) Models(d message.Dialect) ([]Served, error) {
	snap, bad := e.proxied()
	if bad != nil {
		return nil, bad
	}
	var served []Served
	for entry := range snap.catalog.All() {
		if router.Serves(entry.Provider.Transport, d.Transport()) && snap.profile.Allows(entry.Route, entry.Provider.Name) {
			served = append(served, Served{Name: entry.Model.Name, Route: entry.Route, Provider: entry.Provider.Name, Model: entry.Model})
		}
	}
	return served, nil
}

// Passthrough is where a request goes that the proxy does not know, when the
// policy opens its path; nil when it does not. It goes to the provider of the
// model that it names, else to the first that serves the dialect. The error is a
// *fault.Fault.
func (e *Engine) Passthrough(ctx context.Context, method, path string, d message.Dialect, model string) (*Target, error) {
	snap, bad := e.proxied()
	if bad != nil {
		return nil, bad
	}
	if !slices.ContainsFunc(snap.profile.Runtime.Proxy.Passthrough, func(r router.PassthroughRule) bool {
		return strings.EqualFold(r.Method, method) && router.Glob(r.Path, path)
	}) {
		return nil, nil
	}
	entry, bad := e.passedTo(ctx, snap, d, model)
	if bad != nil {
		return nil, bad
	}
	target, bad := snap.target(entry)
	if bad != nil {
		return nil, bad
	}
	return &target, nil
}

// passedTo is the entry whose provider takes what is passed through. Without a
// model, none of the entry's is meant.
func (e *Engine) passedTo(ctx context.Context, snap *snapshot, d message.Dialect, model string) (router.Entry, *fault.Fault) {
	if model != "" {
		return e.entry(ctx, snap, d, model)
	}
	for entry := range snap.catalog.All() {
		if router.Serves(entry.Provider.Transport, d.Transport()) && snap.profile.Allows(entry.Route, entry.Provider.Name) {
			entry.Model = nil
			return entry, nil
		}
	}
	return router.Entry{}, unserved("", "no provider of the policy speaks this dialect")
}
