// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import "iter"

// Speaks reports whether the runtime of this build speaks a transport. The
// control plane tells it in status, the runtime obeys it; a test holds the
// runtime's table of protocols to it.
func Speaks(transport string) bool { return transport == TransportOpenAIChatCompletions }

// Catalog is what a profile's routes name: both planes look routes up, list
// and judge them here, so that status says what the runtime does.
type Catalog struct {
	profile *Profile
	byAlias map[string]*Provider
}

// Entry is one model on one endpoint of one of a profile's providers.
type Entry struct {
	// Route is canonical: its endpoint is never empty.
	Route    Route
	Provider *Provider
	Endpoint *Endpoint
	Model    *Model
}

// NewCatalog makes the catalog of a profile; provider finds a provider by its
// name, "namespace/name", and returns nil for one that is not there.
func NewCatalog(profile *Profile, provider func(name string) *Provider) *Catalog {
	c := &Catalog{profile: profile, byAlias: make(map[string]*Provider, len(profile.Providers))}
	for _, use := range profile.Providers {
		if p := provider(use.Provider); p != nil {
			c.byAlias[use.Alias] = p
		}
	}
	return c
}

// Catalog is the catalog of one of the document's profiles.
func (d *Document) Catalog(profile *Profile) *Catalog {
	byName := make(map[string]*Provider, len(d.Providers))
	for i := range d.Providers {
		byName[d.Providers[i].Name] = &d.Providers[i]
	}
	return NewCatalog(profile, func(name string) *Provider { return byName[name] })
}

// Canonical fills in the endpoint that the short form of a route leaves to the
// provider's first. A route of an unknown provider stays as it is.
func (c *Catalog) Canonical(r Route) Route {
	if p := c.byAlias[r.Provider]; p != nil && r.Endpoint == "" && len(p.Endpoints) > 0 {
		r.Endpoint = p.Endpoints[0].Name
	}
	return r
}

// Find looks a route up, in either form; false when a part of it is not declared.
func (c *Catalog) Find(r Route) (Entry, bool) {
	e := Entry{Route: c.Canonical(r), Provider: c.byAlias[r.Provider]}
	if e.Provider == nil {
		return Entry{}, false
	}
	for i := range e.Provider.Endpoints {
		if e.Provider.Endpoints[i].Name == e.Route.Endpoint {
			e.Endpoint = &e.Provider.Endpoints[i]
		}
	}
	for i := range e.Provider.Models {
		if e.Provider.Models[i].Name == r.Model {
			e.Model = &e.Provider.Models[i]
		}
	}
	return e, e.Endpoint != nil && e.Model != nil
}

// All yields every entry in the order in which an automatic choice tries them:
// the profile's providers, each endpoint of one, each model on that.
func (c *Catalog) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, use := range c.profile.Providers {
			if p := c.byAlias[use.Alias]; p != nil && !yieldProvider(use.Alias, p, yield) {
				return
			}
		}
	}
}

func yieldProvider(alias string, p *Provider, yield func(Entry) bool) bool {
	for e := range p.Endpoints {
		for m := range p.Models {
			route := Route{Provider: alias, Endpoint: p.Endpoints[e].Name, Model: p.Models[m].Name}
			if !yield(Entry{Route: route, Provider: p, Endpoint: &p.Endpoints[e], Model: &p.Models[m]}) {
				return false
			}
		}
	}
	return true
}

// Verdict says whether an entry can serve a look at an image, and why not.
type Verdict string

// The verdicts, in the order in which they are found.
const (
	// VerdictNotAllowed: an allow-list of some layer does not hold the route.
	VerdictNotAllowed Verdict = "NotAllowed"
	// VerdictLacksImageInput: the model is declared with imageInput false.
	VerdictLacksImageInput Verdict = "LacksImageInput"
	// VerdictTransportNotSupported: this build does not speak the provider's transport.
	VerdictTransportNotSupported Verdict = "TransportNotSupported"
	// VerdictUsable: nothing in the document stands against it.
	VerdictUsable Verdict = "Usable"
)

// Judge says whether an entry can serve, as far as the document tells.
func (c *Catalog) Judge(e Entry) Verdict {
	switch {
	case !c.profile.Allows(e.Route, e.Provider.Name):
		return VerdictNotAllowed
	case !e.Model.ImageInput:
		return VerdictLacksImageInput
	case !Speaks(e.Provider.Transport):
		return VerdictTransportNotSupported
	}
	return VerdictUsable
}
