// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"

	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// advise says what of an effective policy is legal and yet unwise or without
// effect, in the order of the fields. Only what the policy's own author can change
// is told. Unless its references are resolved, nothing is said of its routes:
// what they lack comes first.
func (m *merge) advise(e *effective, c *choice, resolved bool) []string {
	var said []string
	if resolved {
		said = append(said, m.withoutFallback(e, c)...)
		said = append(said, m.idleGlobs(e)...)
	}
	said = append(said, m.imageAboveRequest(e)...)
	return append(said, m.baseURLsWithoutProxy(e)...)
}

// withoutFallback is about a policy whose calls depend on one endpoint although
// another could serve. A policy that can use one endpoint alone is not spoken of,
// nor one of which any layer names fallbacks.
func (m *merge) withoutFallback(e *effective, c *choice) []string {
	for _, l := range m.layers {
		if l.FallbackModels != nil {
			return nil
		}
	}
	taken, err := router.ParseRoute(c.defaultRoute)
	if err != nil { // no route can serve
		return nil
	}
	for entry := range e.judge.catalog.All() {
		elsewhere := entry.Provider.Name != c.provider || entry.Route.Endpoint != taken.Endpoint
		if elsewhere && e.judge.entry(entry) == CandidateUsable {
			return []string{fmt.Sprintf("spec.fallbackModels: none is named, so calls fail while %s cannot be reached, although %s could serve; an empty list says that this is meant", c.defaultRoute, entry.Route)}
		}
	}
	return nil
}

// idleGlobs are the object's own globs that match no declared route, unless their
// form tells that already. Where models are discovered, what there is to match is
// not known; a baseline's globs are for many namespaces.
func (m *merge) idleGlobs(e *effective) []string {
	own := m.layers[0]
	if own.baseline || len(own.AllowedModels) == 0 {
		return nil
	}
	var idle []int
	for i, glob := range own.AllowedModels {
		if validation.GlobProblem(glob, false) == "" {
			idle = append(idle, i)
		}
	}
	for entry := range e.judge.catalog.All() {
		route := entry.Route.String()
		idle = slices.DeleteFunc(idle, func(i int) bool { return router.Glob(own.AllowedModels[i], route) })
		if len(idle) == 0 || entry.Provider.Discovery != nil {
			return nil
		}
	}
	said := make([]string, len(idle))
	for n, i := range idle {
		said[n] = fmt.Sprintf("spec.allowedModels[%d]: %s matches none of the models that the policy's providers declare", i, own.AllowedModels[i])
	}
	return said
}

// imageAboveRequest is about an image that may be larger than all images of a
// request together, where the lower limit is not the object's own.
func (m *merge) imageAboveRequest(e *effective) []string {
	own := m.layers[0]
	total := e.profile.Limits.Request.MaxTotalImageBytes
	if own.image.MaxBytes == nil || *own.image.MaxBytes <= total || own.request.MaxTotalImageBytes != nil && *own.request.MaxTotalImageBytes == total {
		return nil
	}
	if least := e.profile.Limits.Image.MaxBytes; least <= total {
		return nil // another layer's limit of an image refuses first
	}
	return []string{fmt.Sprintf("spec.limits.image.maxBytes: exceeds limits.request.maxTotalImageBytes, %d by %s, which is what will refuse", total, m.origin("spec.limits.request.maxTotalImageBytes"))}
}

// baseURLsWithoutProxy is about addresses of a proxy that is off, unless the object
// itself turns it off.
func (m *merge) baseURLsWithoutProxy(e *effective) []string {
	own := m.layers[0]
	if !or(own.proxy.SetBaseURLs, false) || e.profile.Runtime.Proxy != nil || !or(own.proxy.Enabled, true) {
		return nil
	}
	return []string{fmt.Sprintf("spec.runtime.proxy.setBaseURLs: has no effect while the proxy is off, by %s: see proxy.enabled", m.origin("spec.runtime.proxy.enabled"))}
}

// origin is where a field of the effective policy comes from, in words.
func (m *merge) origin(field string) string {
	for _, o := range m.origins {
		if o.Field == field && o.From != FromDefault {
			return o.From
		}
	}
	return "default"
}
