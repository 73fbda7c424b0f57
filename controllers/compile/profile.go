// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Kinds of profiles: the first part of their IDs.
const (
	policyKind   = "policy/"
	baselineKind = "baseline/"
)

// ProfileID is the ID of the profile that a policy becomes in its own namespace.
func ProfileID(policy string) string { return policyKind + policy }

// BaselineProfileID is the ID of the profile that a baseline becomes in a
// namespace where it serves by itself.
func BaselineProfileID(baseline string) string { return baselineKind + baseline }

// ProfileOf is the ID of the profile that a policy of Servers becomes.
func ProfileOf(p *v1alpha1.VisionPolicy) string {
	if isBaseline(p) {
		return BaselineProfileID(p.Name)
	}
	return ProfileID(p.Name)
}

// NoMediaType stands alone in limits.image.mediaTypes of a profile whose layers
// have no type in common: no image is of that type, so that every runtime
// refuses all. An empty list would mean the default types.
const NoMediaType = "none"

// effective is a policy with its baselines laid over it.
type effective struct {
	profile *router.Profile
	pods    PodProfile
	// uses are the providers that it names, those among them that cannot serve here.
	uses []use
	// judge knows the routes of all of them.
	judge *judge
	// problems are what is wrong with its references.
	problems []problem
	// redundant is PolicyVerdict.Redundant.
	redundant []string
}

// effective merges the layers, field by field in the order of the API, and puts
// the result into the document's terms.
func (m *merge) effective(id string, providers *providerSet) *effective {
	e := &effective{profile: &router.Profile{ID: id, From: m.layers[0].from}}
	var named *layer
	named, e.uses, e.problems = m.providers(providers)
	e.profile.Providers = make([]router.ProviderUse, 0, len(e.uses))
	for _, u := range e.uses {
		if !u.unshared {
			e.profile.Providers = append(e.profile.Providers, router.ProviderUse{Alias: u.alias, Provider: u.Name})
		}
	}
	e.judge = newJudge(e.uses)
	e.routes(m, named)
	e.profile.Allow = m.allow()
	e.judge.profile.Allow = e.profile.Allow
	e.profile.PerCallModel = string(denied(m, "spec.perCallModel", v1alpha1.PerCallModelDenied, DefaultPerCallModel,
		func(l *layer) *v1alpha1.PerCallModel { return l.PerCallModel }))
	e.profile.Limits = m.limits()
	e.profile.Injection = m.injection()
	e.profile.Cache = m.cache()
	e.runtime(m)
	e.pods.Admission = first(m, "spec.admission.mode", DefaultAdmission, func(l *layer) *v1alpha1.AdmissionMode { return l.admission.Mode })
	return e
}

// allow are the allow-lists of all layers: a route must match each.
func (m *merge) allow() []router.AllowList {
	const field = "spec.allowedModels"
	var lists []router.AllowList
	for _, l := range m.layers {
		if len(l.AllowedModels) > 0 {
			lists = append(lists, router.AllowList{From: l.from, Globs: slices.Clone(l.AllowedModels), Canonical: l.baseline})
			m.note(field, l.from, l.AllowedModels)
		}
	}
	if lists == nil {
		m.note(field, FromDefault, "")
	}
	return lists
}

func (m *merge) limits() router.Limits {
	return router.Limits{Image: m.imageLimits(), Request: router.RequestLimits{
		MaxDistinctImages:  lowest(m, "spec.limits.request.maxDistinctImages", DefaultMaxDistinctImages, func(l *layer) *int64 { return l.request.MaxDistinctImages }),
		MaxTotalImageBytes: lowest(m, "spec.limits.request.maxTotalImageBytes", DefaultMaxTotalImageBytes, func(l *layer) *int64 { return l.request.MaxTotalImageBytes }),
		MaxProbedPaths:     lowest(m, "spec.limits.request.maxProbedPaths", DefaultMaxProbedPaths, func(l *layer) *int64 { return l.request.MaxProbedPaths }),
		// No default: what tokens are worth is the platform team's to say.
		MaxImageTokens: lowest(m, "spec.limits.request.maxImageTokens", 0, func(l *layer) *int64 { return l.request.MaxImageTokens }),
		MaxBodyBytes:   lowest(m, "spec.limits.request.maxBodyBytes", DefaultMaxBodyBytes, func(l *layer) *int64 { return l.request.MaxBodyBytes }),
	}}
}

func (m *merge) imageLimits() router.ImageLimits {
	limits := router.ImageLimits{
		MaxBytes:   lowest(m, "spec.limits.image.maxBytes", DefaultImageMaxBytes, func(l *layer) *int64 { return l.image.MaxBytes }),
		MaxPixels:  lowest(m, "spec.limits.image.maxPixels", DefaultImageMaxPixels, func(l *layer) *int64 { return l.image.MaxPixels }),
		MediaTypes: common(m, "spec.limits.image.mediaTypes", func(l *layer) []string { return l.image.MediaTypes }),
		OnOversize: string(denied(m, "spec.limits.image.onOversize", v1alpha1.OnOversizeRefuse, DefaultOnOversize,
			func(l *layer) *v1alpha1.OnOversize { return l.image.OnOversize })),
	}
	if limits.MediaTypes != nil && len(limits.MediaTypes) == 0 {
		limits.MediaTypes = []string{NoMediaType}
	}
	return limits
}

// injection leaves lists and texts that nobody set to the runtime.
func (m *merge) injection() router.Injection {
	return router.Injection{
		Mode:           string(first(m, "spec.injection.mode", DefaultInjectionMode, func(l *layer) *v1alpha1.InjectionMode { return l.injection.Mode })),
		Tools:          firstList(m, "spec.injection.tools", func(l *layer) []string { return l.injection.Tools }),
		ExcludeTools:   firstList(m, "spec.injection.excludeTools", func(l *layer) []string { return l.injection.ExcludeTools }),
		PathArguments:  firstList(m, "spec.injection.pathArguments", func(l *layer) []string { return l.injection.PathArguments }),
		WaitFor:        string(first(m, "spec.injection.waitFor", DefaultWaitFor, func(l *layer) *v1alpha1.WaitFor { return l.injection.WaitFor })),
		Keep:           string(first(m, "spec.injection.keep", DefaultKeep, func(l *layer) *v1alpha1.Keep { return l.injection.Keep })),
		MarkdownImages: string(first(m, "spec.injection.markdownImages", DefaultMarkdownImages, func(l *layer) *v1alpha1.MarkdownImages { return l.injection.MarkdownImages })),
		Template: router.InjectionTemplate{
			Heading:     firstText(m, "spec.injection.template.heading", func(l *layer) string { return l.template.Heading }),
			Item:        firstText(m, "spec.injection.template.item", func(l *layer) string { return l.template.Item }),
			Unavailable: firstText(m, "spec.injection.template.unavailable", func(l *layer) string { return l.template.Unavailable }),
		},
		ObservationPrompt: firstText(m, "spec.injection.observationPrompt", func(l *layer) string { return l.injection.ObservationPrompt }),
	}
}

func (m *merge) cache() router.Cache {
	text := first(m, "spec.cache.ttl", DefaultCacheTTL, func(l *layer) *v1alpha1.Duration { return l.cache.TTL })
	ttl, _ := duration(&text, DefaultCacheTTL) // a bad one is the document's rules' to name
	return router.Cache{
		TTL:        ttl,
		MaxEntries: first(m, "spec.cache.maxEntries", DefaultCacheMaxEntries, func(l *layer) *int64 { return l.cache.MaxEntries }),
		MaxBytes:   first(m, "spec.cache.maxBytes", DefaultCacheMaxBytes, func(l *layer) *int64 { return l.cache.MaxBytes }),
		Persist:    first(m, "spec.cache.persist", DefaultCachePersist, func(l *layer) *bool { return l.cache.Persist }),
	}
}

// runtime fills what the runtime obeys, and what shapes its container.
func (e *effective) runtime(m *merge) {
	e.pods.Workspaces = firstList(m, "spec.runtime.workspaces", func(l *layer) []string { return l.runtime.Workspaces })
	proxy := denied(m, "spec.runtime.proxy.enabled", false, DefaultProxy, func(l *layer) *bool { return l.proxy.Enabled })
	e.pods.SetBaseURLs = denied(m, "spec.runtime.proxy.setBaseURLs", false, DefaultSetBaseURLs, func(l *layer) *bool { return l.proxy.SetBaseURLs }) && proxy
	passthrough := firstList(m, "spec.runtime.proxy.passthrough", func(l *layer) []v1alpha1.ProxyPassthroughRule { return l.proxy.Passthrough })
	if proxy {
		e.profile.Runtime.Proxy = &router.Proxy{}
		for _, rule := range passthrough {
			e.profile.Runtime.Proxy.Passthrough = append(e.profile.Runtime.Proxy.Passthrough, router.PassthroughRule{Method: rule.Method, Path: rule.Path})
		}
	}
	e.profile.Runtime.MCP = denied(m, "spec.runtime.mcp", false, DefaultMCP, func(l *layer) *bool { return l.runtime.MCP })
	e.pods.MCP = e.profile.Runtime.MCP
	e.pods.Resources = pick(m, "spec.runtime.resources", func(l *layer) *corev1.ResourceRequirements { return l.runtime.Resources }).DeepCopy()
	if uid := pick(m, "spec.runtime.runAsUser", func(l *layer) *int64 { return l.runtime.RunAsUser }); uid != nil {
		own := *uid
		e.pods.RunAsUser = &own
	}
	e.pods.LogLevel = first(m, "spec.runtime.logLevel", DefaultLogLevel, func(l *layer) *v1alpha1.LogLevel { return l.runtime.LogLevel })
	if e.profile.Cache.Persist {
		e.pods.CacheMaxBytes = e.profile.Cache.MaxBytes
	}
}
