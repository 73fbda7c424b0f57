// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// maxWarnings bounds an answer: the API server cuts what exceeds a few KiB.
const maxWarnings = 16

// ProviderWarnings returns what is legal in a VisionProvider and yet unwise or
// without effect, one sentence each, beginning with the field. No value of a
// header and no URL is repeated.
func ProviderWarnings(p *v1alpha1.VisionProvider) []string {
	w := notYet(UnprogrammedProvider(p))
	for i := range p.Spec.Endpoints {
		w = append(w, endpointWarnings(fmt.Sprintf("spec.endpoints[%d]", i), &p.Spec.Endpoints[i], p.Spec.Credentials.SecretRef != nil)...)
	}
	for i := range p.Spec.Models {
		w = append(w, modelWarnings(fmt.Sprintf("spec.models[%d]", i), p, &p.Spec.Models[i])...)
	}
	w = append(w, sharingWarnings(p)...)
	w = append(w, probeWarnings(p)...)
	if p.Spec.Discovery == nil && !slices.ContainsFunc(p.Spec.Models, func(m v1alpha1.Model) bool { return is(m.ImageInput, true) }) {
		w = append(w, "spec.models: no model takes images, so the provider can serve no route")
	}
	return bounded(w)
}

// keyLike is how vendors' keys begin.
var keyLike = regexp.MustCompile(`(?i)^(?:bearer |basic |sk-|sk_|xai-|gsk_|hf_|AIza|nvapi-)`)

func endpointWarnings(at string, e *v1alpha1.Endpoint, key bool) []string {
	var w []string
	plain := strings.HasPrefix(e.URL, "http://")
	host := hostOf(e.URL)
	switch {
	case plain && !inside(host) && key:
		w = append(w, at+".url: images and the key travel in the clear")
	case plain && !inside(host):
		w = append(w, at+".url: images travel in the clear")
	case plain && service(host) && key:
		w = append(w, at+".url: images and the key travel in the clear within the cluster")
	case plain && service(host):
		w = append(w, at+".url: images travel in the clear within the cluster")
	}
	if is(e.AllowPlainHTTP, true) && !plain {
		w = append(w, at+".allowPlainHTTP: has no effect on an https URL")
	}
	if plain && e.CABundle != "" {
		w = append(w, at+".caBundle: has no effect on an http URL")
	}
	for i, h := range e.Headers {
		if keyLike.MatchString(h.Value) {
			w = append(w, fmt.Sprintf("%s.headers[%d].value: looks like a key; everybody who may read the provider can read it: name it in spec.credentials", at, i))
		}
	}
	return w
}

// PolicyWarnings does the same for a VisionPolicy.
func PolicyWarnings(p *v1alpha1.VisionPolicy) []string {
	spec := &p.Spec
	w := append(notYet(UnprogrammedPolicy(p)), fallbackWarnings(spec)...)
	for i, g := range spec.AllowedModels {
		if problem := GlobProblem(g, spec.NamespaceSelector != nil); problem != "" {
			w = append(w, fmt.Sprintf("spec.allowedModels[%d]: %s", i, problem))
		}
	}
	// A baseline may leave the default to the policies that it is laid over.
	if is(spec.PerCallModel, v1alpha1.PerCallModelDenied) && spec.DefaultModel == nil && spec.NamespaceSelector == nil {
		w = append(w, "spec.perCallModel: calls may not name a model and no defaultModel is set, so which model looks follows from the order of providers and models")
	}
	if l := spec.Limits; l != nil && l.Image != nil && l.Request != nil && l.Image.MaxBytes != nil && l.Request.MaxTotalImageBytes != nil &&
		*l.Image.MaxBytes > *l.Request.MaxTotalImageBytes {
		w = append(w, "spec.limits.image.maxBytes: exceeds limits.request.maxTotalImageBytes, which is what will refuse")
	}
	for i := range spec.Quotas {
		w = append(w, quotaWarnings(fmt.Sprintf("spec.quotas[%d]", i), &spec.Quotas[i])...)
	}
	w = append(w, injectionWarnings(spec.Injection)...)
	if r := spec.Runtime; r != nil {
		w = append(w, runtimeWarnings(r)...)
		w = append(w, proxyWarnings(r.Proxy)...)
		w = append(w, cacheWarnings(spec.Cache, r.Resources)...)
	}
	return bounded(append(w, admissionWarnings(spec)...))
}

// fallbackWarnings name the fallbacks that cannot serve, or that add nothing, by
// what the policy alone says. What needs the providers is for the compiler.
func fallbackWarnings(spec *v1alpha1.VisionPolicySpec) []string {
	var w []string
	for i, text := range spec.FallbackModels {
		if _, err := router.ParseRoute(text); err != nil {
			continue // refused
		}
		for _, problem := range routeProblems(text, spec) {
			w = append(w, fmt.Sprintf("spec.fallbackModels[%d]: %s", i, problem))
		}
	}
	return w
}

// GlobProblem says why a glob of allowedModels can match no route, whatever
// providers there are; empty where it may. Only what stands before a wildcard is certain.
func GlobProblem(glob string, baseline bool) string {
	literal := glob
	if i := strings.IndexAny(glob, "*?"); i >= 0 {
		literal = glob[:i]
	}
	head, rest, slash := strings.Cut(literal, "/")
	form := "provider@endpoint/model"
	if baseline {
		form = "namespace/provider@endpoint/model"
		if slash && strings.Contains(head, "@") {
			return "matches no route: a baseline's globs match " + form
		}
		head, _, slash = strings.Cut(rest, "/")
	}
	switch {
	case slash && !strings.Contains(head, "@"):
		return "matches no route: the whole of " + form + " is matched, endpoint included; put @* after the provider to mean each of them"
	case literal == glob && !slash:
		return "matches no route: the whole of " + form + " is matched"
	}
	return ""
}

func runtimeWarnings(r *v1alpha1.Runtime) []string {
	var w []string
	for i, inner := range r.Workspaces {
		for _, outer := range r.Workspaces {
			if strings.HasPrefix(inner, outer+"/") {
				w = append(w, fmt.Sprintf("spec.runtime.workspaces[%d]: %s already lies in %s", i, inner, outer))
			}
		}
	}
	if is(r.RunAsUser, 0) {
		w = append(w, "spec.runtime.runAsUser: namespaces with restricted pod security refuse user 0")
	}
	return w
}

// notYet are the warnings about fields that this build does not obey.
func notYet(paths []string) []string {
	var w []string
	for _, path := range paths {
		w = append(w, path+" is accepted, but this version of Vision Operator does not act on it yet")
	}
	return w
}

func bounded(w []string) []string {
	if len(w) > maxWarnings {
		return append(w[:maxWarnings:maxWarnings], fmt.Sprintf("and %d more warnings", len(w)-maxWarnings))
	}
	return w
}

// sortedNames are the names in a list of resources, in order.
func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	out := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
