// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// ProfileID is the ID of the profile that a policy becomes.
func ProfileID(policy string) string { return "policy/" + policy }

// profileDocument is a policy in the document's terms, defaults filled in, with
// the catalog of what its routes name, and what it says without effect (see
// PolicyVerdict.Redundant).
func profileDocument(p *v1alpha1.VisionPolicy, uses []use) (profile *router.Profile, catalog *router.Catalog, redundant []string) {
	from := p.Namespace + "/" + p.Name
	profile = &router.Profile{
		ID:           ProfileID(p.Name),
		From:         from,
		Providers:    make([]router.ProviderUse, 0, len(uses)),
		PerCallModel: string(or(p.Spec.PerCallModel, DefaultPerCallModel)),
		Limits:       limitsDocument(p.Spec.Limits),
		Cache:        cacheDocument(p.Spec.Cache),
		Injection:    injectionDocument(p.Spec.Injection),
		Runtime:      runtimeDocument(p.Spec.Runtime),
	}
	byName := make(map[string]*router.Provider, len(uses))
	for _, u := range uses {
		profile.Providers = append(profile.Providers, router.ProviderUse{Alias: u.alias, Provider: u.Name})
		byName[u.Name] = &u.Provider
	}
	catalog = router.NewCatalog(profile, func(name string) *router.Provider { return byName[name] })
	profile.DefaultModel = canonicalDefault(or(p.Spec.DefaultModel, router.Auto), catalog)
	profile.FallbackModels, redundant = fallbackDocument(profile.DefaultModel, p.Spec.FallbackModels, catalog)
	if len(p.Spec.AllowedModels) > 0 {
		profile.Allow = []router.AllowList{{From: from, Globs: slices.Clone(p.Spec.AllowedModels)}}
	}
	return profile, catalog, redundant
}

func limitsDocument(l *v1alpha1.Limits) router.Limits {
	limits := or(l, v1alpha1.Limits{})
	image, request := or(limits.Image, v1alpha1.ImageLimits{}), or(limits.Request, v1alpha1.RequestLimits{})
	return router.Limits{
		Image: router.ImageLimits{
			MaxBytes:   or(image.MaxBytes, DefaultImageMaxBytes),
			MaxPixels:  or(image.MaxPixels, DefaultImageMaxPixels),
			MediaTypes: slices.Clone(image.MediaTypes),
			OnOversize: string(or(image.OnOversize, DefaultOnOversize)),
		},
		Request: router.RequestLimits{
			MaxDistinctImages:  or(request.MaxDistinctImages, DefaultMaxDistinctImages),
			MaxTotalImageBytes: or(request.MaxTotalImageBytes, DefaultMaxTotalImageBytes),
			MaxProbedPaths:     or(request.MaxProbedPaths, DefaultMaxProbedPaths),
			MaxBodyBytes:       or(request.MaxBodyBytes, DefaultMaxBodyBytes),
			MaxImageTokens:     or(request.MaxImageTokens, 0), // no default: what tokens are worth is the platform team's to say
		},
	}
}

func cacheDocument(c *v1alpha1.Cache) router.Cache {
	cache := or(c, v1alpha1.Cache{})
	ttl, _ := duration(cache.TTL, DefaultCacheTTL) // a bad one is the document's rules' to name
	return router.Cache{TTL: ttl, MaxEntries: or(cache.MaxEntries, DefaultCacheMaxEntries), MaxBytes: or(cache.MaxBytes, DefaultCacheMaxBytes),
		Persist: or(cache.Persist, DefaultCachePersist)}
}

// injectionDocument leaves lists and texts that nobody set to the runtime.
func injectionDocument(i *v1alpha1.Injection) router.Injection {
	injection := or(i, v1alpha1.Injection{})
	template := or(injection.Template, v1alpha1.InjectionTemplate{})
	return router.Injection{
		Mode:              string(or(injection.Mode, DefaultInjectionMode)),
		Tools:             slices.Clone(injection.Tools),
		ExcludeTools:      slices.Clone(injection.ExcludeTools),
		PathArguments:     slices.Clone(injection.PathArguments),
		WaitFor:           string(or(injection.WaitFor, DefaultWaitFor)),
		Keep:              string(or(injection.Keep, DefaultKeep)),
		MarkdownImages:    string(or(injection.MarkdownImages, DefaultMarkdownImages)),
		Template:          router.InjectionTemplate{Heading: template.Heading, Item: template.Item, Unavailable: template.Unavailable},
		ObservationPrompt: injection.ObservationPrompt,
	}
}

func runtimeDocument(r *v1alpha1.Runtime) router.RuntimeOptions {
	runtime := or(r, v1alpha1.Runtime{})
	options := router.RuntimeOptions{MCP: or(runtime.MCP, DefaultMCP)}
	if proxy := or(runtime.Proxy, v1alpha1.Proxy{}); or(proxy.Enabled, DefaultProxy) {
		options.Proxy = &router.Proxy{}
		for _, rule := range proxy.Passthrough {
			options.Proxy.Passthrough = append(options.Proxy.Passthrough, router.PassthroughRule{Method: rule.Method, Path: rule.Path})
		}
	}
	return options
}

// podProfile is what injection needs of a policy.
func podProfile(p *v1alpha1.VisionPolicy, profile *router.Profile) PodProfile {
	runtime := or(p.Spec.Runtime, v1alpha1.Runtime{})
	pods := PodProfile{
		Workspaces: slices.Clone(runtime.Workspaces),
		Resources:  runtime.Resources.DeepCopy(),
		LogLevel:   or(runtime.LogLevel, DefaultLogLevel),
		Admission:  or(or(p.Spec.Admission, v1alpha1.Admission{}).Mode, DefaultAdmission),
		MCP:        profile.Runtime.MCP,
	}
	if profile.Cache.Persist {
		pods.CacheMaxBytes = profile.Cache.MaxBytes
	}
	if runtime.RunAsUser != nil {
		uid := *runtime.RunAsUser
		pods.RunAsUser = &uid
	}
	return pods
}

// canonicalDefault is a defaultModel as the document holds it.
func canonicalDefault(model string, catalog *router.Catalog) string {
	if model == router.Auto {
		return router.Auto
	}
	return canonicalRoute(model, catalog)
}

// fallbackDocument are fallbackModels as the document holds them: canonical, and
// without what adds nothing, which the second result names by its field.
func fallbackDocument(defaultModel string, models []string, catalog *router.Catalog) (routes, redundant []string) {
	fields := map[string]string{defaultModel: "spec.defaultModel"}
	for i, model := range models {
		route, field := canonicalRoute(model, catalog), fmt.Sprintf("spec.fallbackModels[%d]", i)
		if first, seen := fields[route]; seen {
			redundant = append(redundant, fmt.Sprintf("%s: %s is the route of %s already, and is not tried twice", field, route, first))
			continue
		}
		fields[route] = field
		routes = append(routes, route)
	}
	return routes, redundant
}

// canonicalRoute fills in the endpoint that the short form leaves to the
// provider's first. A route that names nothing known stays as it is written,
// so that the runtime's refusal and the status name the same thing.
func canonicalRoute(text string, catalog *router.Catalog) string {
	route, err := router.ParseRoute(text)
	if err != nil {
		return text
	}
	return catalog.Canonical(route).String()
}
