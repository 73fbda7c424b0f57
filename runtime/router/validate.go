// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Validate reports every reason why the runtime could not obey a document: nil,
// or the Problems joined. It guards the seam between the planes; what users may
// write is judged earlier, by the API's own rules.
func Validate(doc *Document) error {
	var errs []error
	for _, p := range Problems(doc) {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// Problems are the reasons why the runtime could not obey a document, in the
// document's order.
func Problems(doc *Document) []*FieldError {
	v := &validator{providers: make(map[string]*Provider, len(doc.Providers))}
	v.check(doc.Version == Version, "version", "is %q; want %q", doc.Version, Version)
	v.check(doc.Namespace != "", "namespace", "is empty")
	for i := range doc.Providers {
		v.provider(fmt.Sprintf("providers[%d]", i), &doc.Providers[i])
	}
	ids := make(map[string]bool, len(doc.Profiles))
	for i := range doc.Profiles {
		p := &doc.Profiles[i]
		at := fmt.Sprintf("profiles[%d]", i)
		v.check(!ids[p.ID], at+".id", "%q is there twice", p.ID)
		ids[p.ID] = true
		v.profile(at, p)
	}
	return v.problems
}

// FieldError is one thing wrong with a document.
type FieldError struct {
	Field   string
	Problem string
}

// Error is "field problem".
func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

type validator struct {
	problems  []*FieldError
	providers map[string]*Provider
}

func (v *validator) check(ok bool, field, problem string, args ...any) {
	if !ok {
		v.problems = append(v.problems, &FieldError{Field: field, Problem: fmt.Sprintf(problem, args...)})
	}
}

func (v *validator) provider(at string, p *Provider) {
	v.check(v.providers[p.Name] == nil, at+".name", "%q is there twice", p.Name)
	v.check(strings.Count(p.Name, "/") == 1, at+".name", "is %q; want namespace/name", p.Name)
	v.providers[p.Name] = p
	v.check(p.Transport != "", at+".transport", "is empty") // an unknown one is of a later build: see VerdictTransportNotSupported
	v.check(len(p.Endpoints) > 0, at+".endpoints", "is empty")
	for i := range p.Endpoints {
		v.endpoint(fmt.Sprintf("%s.endpoints[%d]", at, i), &p.Endpoints[i])
	}
	if c := p.Credential; c != nil {
		v.check(c.File != "" && path.IsAbs("/"+c.File) && path.Clean("/"+c.File) == "/"+c.File, at+".credential.file", "is %q; want a clean relative path", c.File)
		v.check(c.Secret != "" && c.Key != "", at+".credential", "names no secret or no key")
	}
	if p.Discovery != nil {
		v.duration(at+".discovery.interval", p.Discovery.Interval)
	}
	for i := range p.Models {
		model := fmt.Sprintf("%s.models[%d]", at, i)
		v.check(p.Models[i].Name != "", model+".name", "is empty")
		v.word(model+".toolImages", p.Models[i].ToolImages, ToolImagesInToolResult, ToolImagesUserMessage, ToolImagesAssistantThenUser)
	}
}

func (v *validator) endpoint(at string, e *Endpoint) {
	v.check(isRouteLabel(e.Name), at+".name", "is %q; want %s", e.Name, labelGrammar)
	u, err := url.Parse(e.URL)
	switch {
	case err != nil:
		v.check(false, at+".url", "does not parse") // the parser's error may repeat userinfo
	case u.User != nil:
		v.check(false, at+".url", "holds userinfo")
	default:
		v.check((u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == "",
			at+".url", "is %q; want an http or https URL without query and fragment", e.URL)
		v.check(u.Scheme != "http" || e.AllowPlainHTTP || InsideHost(u.Hostname()),
			at+".url", "is %q; plain http is only for loopback and Services of the cluster, unless allowPlainHTTP is set", e.URL)
	}
	v.duration(at+".timeout", e.Timeout)
}

// InsideHost reports whether a URL's host (IPv6 without brackets) is loopback or
// the name of a Service of the cluster: the hosts that plain http may go to.
func InsideHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback()
	}
	name := strings.ToLower(host)
	return name == "localhost" || strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, ".svc.cluster.local")
}

func (v *validator) profile(at string, p *Profile) {
	kind, name, ok := strings.Cut(p.ID, "/")
	v.check(ok && name != "" && (kind == "policy" || kind == "baseline"), at+".id", "is %q; want policy/<name> or baseline/<name>", p.ID)
	v.check(p.PerCallModel == PerCallAllowed || p.PerCallModel == PerCallDenied, at+".perCallModel", "is %q", p.PerCallModel)
	if p.DefaultModel != Auto {
		v.route(at+".defaultModel", p.DefaultModel)
	}
	for i, r := range p.FallbackModels {
		v.route(fmt.Sprintf("%s.fallbackModels[%d]", at, i), r)
	}
	aliases := make(map[string]bool, len(p.Providers))
	for i, use := range p.Providers {
		field := fmt.Sprintf("%s.providers[%d]", at, i)
		v.check(!aliases[use.Alias], field+".alias", "%q is there twice", use.Alias)
		v.check(isRouteLabel(use.Alias), field+".alias", "is %q; want %s", use.Alias, labelGrammar)
		v.check(v.providers[use.Provider] != nil, field+".provider", "%q is not among the document's providers", use.Provider)
		aliases[use.Alias] = true
	}
	for i, layer := range p.Allow {
		v.check(len(layer.Globs) > 0, fmt.Sprintf("%s.allow[%d].globs", at, i), "is empty")
	}
	v.limits(at+".limits", &p.Limits)
	v.injection(at+".injection", &p.Injection)
	v.duration(at+".cache.ttl", p.Cache.TTL)
	v.positive(at+".cache.maxEntries", p.Cache.MaxEntries)
	v.positive(at+".cache.maxBytes", p.Cache.MaxBytes)
}

func (v *validator) injection(at string, i *Injection) {
	v.word(at+".mode", i.Mode, InjectionAuto, InjectionImage, InjectionObservation, InjectionOff)
	v.word(at+".waitFor", i.WaitFor, WaitForAllToolCalls, WaitForVisionToolCalls)
	v.word(at+".keep", i.Keep, KeepThread, KeepCurrentTurn)
	v.word(at+".markdownImages", i.MarkdownImages, MarkdownOff, MarkdownAttach)
}

// word checks a value that may be left out.
func (v *validator) word(at, value string, of ...string) {
	v.check(value == "" || slices.Contains(of, value), at, "is %q; want one of %s", value, strings.Join(of, ", "))
}

func (v *validator) limits(at string, l *Limits) {
	v.positive(at+".image.maxBytes", l.Image.MaxBytes)
	v.positive(at+".image.maxPixels", l.Image.MaxPixels)
	v.word(at+".image.onOversize", l.Image.OnOversize, OversizeRefuse, OversizeDownscale)
	v.positive(at+".request.maxDistinctImages", l.Request.MaxDistinctImages)
	v.positive(at+".request.maxTotalImageBytes", l.Request.MaxTotalImageBytes)
	v.positive(at+".request.maxProbedPaths", l.Request.MaxProbedPaths)
	v.positive(at+".request.maxBodyBytes", l.Request.MaxBodyBytes)
	v.check(l.Request.MaxImageTokens >= 0, at+".request.maxImageTokens", "is %d; want 0 or more", l.Request.MaxImageTokens)
}

func (v *validator) route(field, route string) {
	if _, err := ParseRoute(route); err != nil {
		v.check(false, field, "%v", err)
	}
}

func (v *validator) positive(field string, n int64) {
	v.check(n > 0, field, "is %d; want more than 0", n)
}

func (v *validator) duration(field, s string) {
	d, err := time.ParseDuration(s)
	v.check(err == nil && d > 0, field, "is %q; want a duration above 0 such as \"30s\"", s)
}
