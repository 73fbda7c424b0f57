// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"iter"
	"slices"
	"strings"
)

// Speaks reports whether the runtime of this build speaks a transport. The
// control plane tells it in status, the runtime obeys it; a test holds the
// runtime's table of protocols to it.
func Speaks(transport string) bool {
	switch transport {
	case TransportOpenAIChatCompletions, TransportOpenAIResponses, TransportAnthropicMessages, TransportGeminiGenerateContent:
		return true
	}
	return false
}

// Catalog is what a profile's routes name: both planes look routes up, list
// and judge them here, so that status says what the runtime does.
type Catalog struct {
	profile    *Profile
	byAlias    map[string]*Provider
	discovered Discovered
}

// Discovered gives the models that were found at a provider's endpoint, in
// order of name. Those that the provider declares count for nothing. It is a
// runtime's own knowledge: no document holds it.
type Discovered func(provider *Provider, endpoint string) []Model

// Entry is one model on one endpoint of one of a profile's providers.
type Entry struct {
	// Route is canonical: its endpoint is never empty.
	Route    Route
	Provider *Provider
	Endpoint *Endpoint
	Model    *Model
	// Discovered says that the endpoint listed the model and the provider does
	// not declare it.
	Discovered bool
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

// WithDiscovered returns the catalog with what was discovered added: each of an
// endpoint's models may be found by its route, and comes behind all that is
// declared in All. What is declared is never replaced.
func (c *Catalog) WithDiscovered(discovered Discovered) *Catalog {
	with := *c
	with.discovered = discovered
	return &with
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
	if e.Model == nil && e.Endpoint != nil {
		models := c.found(e.Provider, e.Endpoint)
		if i := slices.IndexFunc(models, func(m Model) bool { return m.Name == r.Model }); i >= 0 {
			e.Model, e.Discovered = &models[i], true
		}
	}
	return e, e.Endpoint != nil && e.Model != nil
}

// found are the models that were discovered at an endpoint.
func (c *Catalog) found(p *Provider, ep *Endpoint) []Model {
	if c.discovered == nil || !discoverable(p) {
		return nil
	}
	return c.discovered(p, ep.Name)
}

// discoverable reports whether a provider's endpoints are asked for their models.
func discoverable(p *Provider) bool { return p.Discovery != nil && Speaks(p.Transport) }

// Discoverable yields the endpoints that are asked for their models, in the
// order of All: entries without a model, on routes that name none.
func (c *Catalog) Discoverable() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, use := range c.profile.Providers {
			p := c.byAlias[use.Alias]
			if p == nil || !discoverable(p) {
				continue
			}
			for i := range p.Endpoints {
				route := Route{Provider: use.Alias, Endpoint: p.Endpoints[i].Name}
				if !yield(Entry{Route: route, Provider: p, Endpoint: &p.Endpoints[i]}) {
					return
				}
			}
		}
	}
}

// Named is what a request's name of a model leads to.
type Named struct {
	Entry
	// Others counts the other models of that name that would have done as well.
	Others int
}

// Named looks up the model that a request names for a transport: by its route, in
// either form, or by its bare name, which the vendors write as "models/…" too. Of
// those of one bare name the best is found, and of the best the first of All: what
// the profile allows before what it does not, then what has the transport, then
// what serves it. false when there is none; one that is found need not be allowed,
// and need not serve the transport.
func (c *Catalog) Named(name, transport string) (Named, bool) {
	if name == "" {
		return Named{}, false
	}
	if route, err := ParseRoute(name); err == nil {
		if entry, ok := c.Find(route); ok {
			return Named{Entry: entry}, true
		}
	}
	bare := strings.TrimPrefix(name, "models/")
	best, rank := Named{}, -1
	var equal []*Model
	for entry := range c.All() {
		if entry.Model.Name != name && entry.Model.Name != bare {
			continue
		}
		switch fits := c.fits(entry, transport); {
		case fits > rank:
			best, rank, equal = Named{Entry: entry}, fits, append(equal[:0], entry.Model)
		case fits == rank && !slices.Contains(equal, entry.Model):
			best.Others++
			equal = append(equal, entry.Model)
		}
	}
	return best, rank >= 0
}

// fits says how well an entry fits among those of one name.
func (c *Catalog) fits(e Entry, transport string) (fits int) {
	if c.profile.Allows(e.Route, e.Provider.Name) {
		fits += 4
	}
	if e.Provider.Transport == transport {
		fits += 2
	}
	if Serves(e.Provider.Transport, transport) {
		fits++
	}
	return fits
}

// Serves reports whether a provider of one transport serves requests of another
// as they are: those of its own, and with either of OpenAI's those of both.
func Serves(transport, request string) bool {
	return transport == request || ofOpenAI(transport) && ofOpenAI(request)
}

func ofOpenAI(transport string) bool {
	return transport == TransportOpenAIChatCompletions || transport == TransportOpenAIResponses
}

// declares reports whether a provider declares a model of that name.
func (p *Provider) declares(model string) bool {
	return slices.ContainsFunc(p.Models, func(m Model) bool { return m.Name == model })
}

// All yields every entry in the order in which an automatic choice tries them:
// the profile's providers, each endpoint of one, each model on that; then in
// the same order what was discovered.
func (c *Catalog) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		_ = c.each(false, yield) && c.discovered != nil && c.each(true, yield)
	}
}

// each yields what is declared, or what was discovered; false when yield said enough.
func (c *Catalog) each(discovered bool, yield func(Entry) bool) bool {
	for _, use := range c.profile.Providers {
		if p := c.byAlias[use.Alias]; p != nil && !c.eachOf(use.Alias, p, discovered, yield) {
			return false
		}
	}
	return true
}

func (c *Catalog) eachOf(alias string, p *Provider, discovered bool, yield func(Entry) bool) bool {
	for e := range p.Endpoints {
		models := p.Models
		if discovered {
			models = c.found(p, &p.Endpoints[e])
		}
		for m := range models {
			if discovered && p.declares(models[m].Name) {
				continue
			}
			route := Route{Provider: alias, Endpoint: p.Endpoints[e].Name, Model: models[m].Name}
			if !yield(Entry{Route: route, Provider: p, Endpoint: &p.Endpoints[e], Model: &models[m], Discovered: discovered}) {
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
	// VerdictLacksImageInput: the model is declared with imageInput false, or was
	// discovered and its endpoint does not say that it takes images.
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
