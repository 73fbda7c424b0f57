// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Policy returns everything that is wrong with a VisionPolicy, in the order of
// its fields. Whether references resolve is for the compiler to say.
func Policy(p *v1alpha1.VisionPolicy) field.ErrorList {
	c := &checks{}
	spec, at := &p.Spec, field.NewPath("spec")
	options := metavalidation.LabelSelectorValidationOptions{}
	c.errs = append(c.errs, metavalidation.ValidateLabelSelector(spec.PodSelector, options, at.Child("podSelector"))...)
	c.errs = append(c.errs, metavalidation.ValidateLabelSelector(spec.NamespaceSelector, options, at.Child("namespaceSelector"))...)
	c.providers(at.Child("providers"), spec.Providers)
	c.routes(at, spec)
	c.allowedModels(at.Child("allowedModels"), spec)
	c.limits(at.Child("limits"), spec.Limits)
	for i := range spec.Quotas {
		c.quota(at.Child("quotas").Index(i), &spec.Quotas[i])
	}
	if i := spec.Injection; i != nil {
		at := at.Child("injection")
		c.notEmptied(at.Child("tools"), i.Tools, "an empty list would match no tool: name at least one, or set mode: Off")
		c.notEmptied(at.Child("pathArguments"), i.PathArguments, "an empty list would find no path: name at least one argument, or leave the field out")
	}
	if cache := spec.Cache; cache != nil {
		at := at.Child("cache")
		c.duration(at.Child("ttl"), cache.TTL, boundTTL)
		c.number(at.Child("maxEntries"), cache.MaxEntries, boundCacheEntries)
		c.number(at.Child("maxBytes"), cache.MaxBytes, boundCacheBytes)
	}
	c.runtime(at.Child("runtime"), spec.Runtime)
	return c.errs
}

// alias is the name under which routes know a provider.
func alias(r *v1alpha1.ProviderReference) string {
	if r.Alias != "" {
		return r.Alias
	}
	return r.Name
}

func (c *checks) providers(at *field.Path, refs []v1alpha1.ProviderReference) {
	if refs != nil && len(refs) == 0 {
		c.invalid(at, []string{}, "an empty list would allow no provider: name at least one, or leave the field out for every provider of the namespace")
	}
	seen := make(map[string]bool, len(refs))
	for i := range refs {
		r, at := &refs[i], at.Index(i)
		c.label(at.Child("name"), r.Name, dnsLabel, "the name of a VisionProvider")
		if r.Namespace != "" {
			c.label(at.Child("namespace"), r.Namespace, dnsLabel, "a namespace")
		}
		if r.Alias != "" {
			c.label(at.Child("alias"), r.Alias, routeLabel, "an alias is part of a route: it")
		}
		name, shown := alias(r), at.Child("name")
		if r.Alias != "" {
			shown = at.Child("alias")
		}
		if seen[name] {
			c.errs = append(c.errs, field.Duplicate(shown, name))
		}
		seen[name] = true
	}
}

// routes judges the form of the default and the fallbacks, and that the default
// is within what the policy itself names and allows. A fallback that is not
// leaves the policy good, since it is only passed over: see fallbackWarnings.
func (c *checks) routes(at *field.Path, spec *v1alpha1.VisionPolicySpec) {
	if spec.DefaultModel != nil && *spec.DefaultModel != router.Auto {
		for _, problem := range routeProblems(*spec.DefaultModel, spec) {
			c.invalid(at.Child("defaultModel"), *spec.DefaultModel, problem)
		}
	}
	at = at.Child("fallbackModels")
	for i, text := range spec.FallbackModels {
		if _, err := router.ParseRoute(text); err != nil {
			c.invalid(at.Index(i), text, err.Error())
		}
	}
	c.unique(at, spec.FallbackModels)
}

// routeProblems are the reasons, in the policy itself, why a route cannot serve.
func routeProblems(text string, spec *v1alpha1.VisionPolicySpec) []string {
	route, err := router.ParseRoute(text)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	if len(spec.Providers) > 0 && !names(spec.Providers, route.Provider) {
		problems = append(problems, fmt.Sprintf("the provider %q is not in spec.providers, by alias or name", route.Provider))
	}
	// A baseline's globs begin with a namespace, which a route does not tell.
	if route.Endpoint != "" && len(spec.AllowedModels) > 0 && spec.NamespaceSelector == nil && !allows(spec.AllowedModels, route.String()) {
		problems = append(problems, "no glob of spec.allowedModels matches it, so it could never serve")
	}
	return problems
}

func names(refs []v1alpha1.ProviderReference, provider string) bool {
	for i := range refs {
		if alias(&refs[i]) == provider {
			return true
		}
	}
	return false
}

func allows(globs []string, route string) bool {
	for _, g := range globs {
		if router.Glob(g, route) {
			return true
		}
	}
	return false
}

var globForm = regexp.MustCompile(`^[^\x00-\x20\x7f]{1,512}$`)

func (c *checks) allowedModels(at *field.Path, spec *v1alpha1.VisionPolicySpec) {
	c.notEmptied(at, spec.AllowedModels, "an empty allow-list would allow no model at all: name at least one glob, or leave the field out for no restriction")
	for i, g := range spec.AllowedModels {
		if !globForm.MatchString(g) {
			c.invalid(at.Index(i), g, "a glob is 1 to 512 characters without white space or control characters: no route has any")
		}
	}
	c.unique(at, spec.AllowedModels)
}

func (c *checks) limits(at *field.Path, l *v1alpha1.Limits) {
	if l == nil {
		return
	}
	if i := l.Image; i != nil {
		at := at.Child("image")
		c.number(at.Child("maxBytes"), i.MaxBytes, boundFileBytes)
		c.number(at.Child("maxPixels"), i.MaxPixels, boundPixels)
		c.mediaTypes(at.Child("mediaTypes"), i.MediaTypes)
	}
	if r := l.Request; r != nil {
		at := at.Child("request")
		c.number(at.Child("maxDistinctImages"), r.MaxDistinctImages, boundRequestImages)
		c.number(at.Child("maxTotalImageBytes"), r.MaxTotalImageBytes, boundFileBytes)
		c.number(at.Child("maxProbedPaths"), r.MaxProbedPaths, boundRequestImages)
		c.number(at.Child("maxImageTokens"), r.MaxImageTokens, boundTokens)
		c.number(at.Child("maxBodyBytes"), r.MaxBodyBytes, boundFileBytes)
	}
}

func (c *checks) quota(at *field.Path, q *v1alpha1.Quota) {
	if q.Observations == nil && q.ImageTokens == nil && q.Cost == "" {
		c.errs = append(c.errs, field.Required(at, "a quota must bound at least one of observations, imageTokens and cost"))
	}
	c.duration(at.Child("window"), &q.Window, boundWindow)
	c.number(at.Child("observations"), q.Observations, boundObservations)
	c.number(at.Child("imageTokens"), q.ImageTokens, boundQuotaTokens)
	c.decimal(at.Child("cost"), q.Cost)
	if q.Cost != "" && !aboveZero.MatchString(q.Cost) {
		c.invalid(at.Child("cost"), q.Cost, "must be above 0")
	}
}

var (
	workspaceForm     = regexp.MustCompile(`^/$|^(?:/[^/,:\x00-\x1f\x7f]+)+$`)
	workspaceDots     = regexp.MustCompile(`/[.]{1,2}(?:/|$)`)
	workspaceReserved = regexp.MustCompile(`^/(?:(?:proc|sys|dev|run|var/run)(?:/.*)?|var)?$`)
)

func (c *checks) runtime(at *field.Path, r *v1alpha1.Runtime) {
	if r == nil {
		return
	}
	c.notEmptied(at.Child("workspaces"), r.Workspaces, "an empty list would let no path be read: name at least one, or leave the field out for the agent's own writable volumes")
	for i, w := range r.Workspaces {
		switch at := at.Child("workspaces").Index(i); {
		case len(w) > 1024 || !workspaceForm.MatchString(w) || workspaceDots.MatchString(w):
			c.invalid(at, w, "a workspace must be an absolute path in its shortest form, such as /workspace: no trailing slash, no . or .., no commas or colons")
		case workspaceReserved.MatchString(w):
			c.invalid(at, w, "a workspace must not be /, nor be, hold or lie in /proc, /sys, /dev, /run or /var/run, where the system and secrets are")
		}
	}
	c.unique(at.Child("workspaces"), r.Workspaces)
	c.number(at.Child("runAsUser"), r.RunAsUser, boundUser)
	c.resources(at.Child("resources"), r.Resources)
}

// resources refuses what would make the API server refuse every pod that gets
// the container.
func (c *checks) resources(at *field.Path, r *corev1.ResourceRequirements) {
	if r == nil {
		return
	}
	if len(r.Claims) > 0 {
		c.errs = append(c.errs, field.Forbidden(at.Child("claims"), "the runtime's container takes no resource claims"))
	}
	c.containerResources(at.Child("requests"), r.Requests)
	c.containerResources(at.Child("limits"), r.Limits)
	for _, name := range sortedNames(r.Requests) {
		request, at := r.Requests[name], at.Child("requests").Key(string(name))
		if request.Sign() < 0 {
			c.invalid(at, request.String(), "must not be negative")
		}
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			c.invalid(at, request.String(), fmt.Sprintf("must be at most the limit, %s", limit.String()))
		}
	}
	for _, name := range sortedNames(r.Limits) {
		if limit := r.Limits[name]; limit.Sign() < 0 {
			c.invalid(at.Child("limits").Key(string(name)), limit.String(), "must not be negative")
		}
	}
}

// containerResources refuses what the API server refuses in a container (pods, a
// name without a domain) and what the runtime has no use for (devices, huge pages).
func (c *checks) containerResources(at *field.Path, list corev1.ResourceList) {
	for _, name := range sortedNames(list) {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		default:
			c.errs = append(c.errs, field.Forbidden(at.Key(string(name)), "the runtime's container takes cpu, memory and ephemeral-storage, nothing else"))
		}
	}
}
