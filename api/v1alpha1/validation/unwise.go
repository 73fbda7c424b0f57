// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// sharingWarnings are about who may refer to a provider: whom a key that stays in
// its namespace leaves without a usable model, and a selector that selects all.
func sharingWarnings(p *v1alpha1.VisionProvider) []string {
	var w []string
	a, ref := p.Spec.AllowedNamespaces, p.Spec.Credentials.SecretRef
	if a == nil || a.From == nil || *a.From == v1alpha1.NamespacesFromSame {
		return nil
	}
	if ref != nil && (ref.From == nil || *ref.From == v1alpha1.SecretFromProvider) {
		w = append(w, "spec.allowedNamespaces: the key stays in the provider's own namespace, so its models serve in no other: "+
			"with secretRef.from: Consumer each namespace brings its own key")
	}
	if *a.From == v1alpha1.NamespacesFromSelector && selectsAll(a.Selector) {
		w = append(w, "spec.allowedNamespaces.selector: an empty selector permits every namespace, as from: All does")
	}
	return w
}

// probeWarnings are about a probe that has nothing to ask.
func probeWarnings(p *v1alpha1.VisionProvider) []string {
	if p.Spec.Probe == nil || len(p.Spec.Endpoints) == 0 {
		return nil
	}
	if slices.ContainsFunc(p.Spec.Endpoints, func(e v1alpha1.Endpoint) bool { return !loopback(hostOf(e.URL)) }) {
		return nil
	}
	return []string{"spec.probe: has no effect: every endpoint is on loopback, which is each pod's own and is never probed"}
}

// longLived is how long a pod's own count can be trusted to last: most pods are
// replaced within a day or so, by a rollout, an eviction or a node's upgrade.
const longLived = 24 * hour

// quotaWarnings name what the scope of a quota cannot hold. A pod counts by itself:
// from its start, and for as long as it lives.
func quotaWarnings(at string, q *v1alpha1.Quota) []string {
	if q.Scope != v1alpha1.QuotaScopePod {
		return nil
	}
	var w []string
	if window, ok := milliseconds(q.Window); ok && window > longLived {
		w = append(w, fmt.Sprintf("%s.window: scope Pod cannot hold %s: each pod counts by itself, and anew after every restart and rollout; scope Policy or Namespace outlives pods",
			at, q.Window))
	}
	if q.OnStoreFailure != nil {
		w = append(w, at+".onStoreFailure: has no effect with scope Pod, which needs no store")
	}
	return w
}

// injectionWarnings are about what mode Off leaves without effect.
func injectionWarnings(i *v1alpha1.Injection) []string {
	if i == nil || !is(i.Mode, v1alpha1.InjectionOff) {
		return nil
	}
	if len(i.Tools) == 0 && len(i.ExcludeTools) == 0 && len(i.PathArguments) == 0 && i.WaitFor == nil && i.Keep == nil && i.MarkdownImages == nil && i.Template == nil {
		return nil
	}
	return []string{"spec.injection: with mode: Off no image is shown, so what else is set of how it is shown has no effect"}
}

// proxyWarnings are about what a proxy that the policy itself turns off leaves
// without effect. One that it leaves open, a baseline may turn on: that is for
// the compiler to see.
func proxyWarnings(p *v1alpha1.Proxy) []string {
	if p == nil || !is(p.Enabled, false) {
		return nil
	}
	var w []string
	if is(p.SetBaseURLs, true) {
		w = append(w, "spec.runtime.proxy.setBaseURLs: has no effect while proxy.enabled is false")
	}
	if len(p.Passthrough) > 0 {
		w = append(w, "spec.runtime.proxy.passthrough: has no effect while proxy.enabled is false")
	}
	return w
}

// cacheWarnings are about a cache that cannot grow to its bound before the kubelet
// ends the container, or evicts the pod.
func cacheWarnings(c *v1alpha1.Cache, r *corev1.ResourceRequirements) []string {
	if c == nil || c.MaxBytes == nil || r == nil {
		return nil
	}
	var w []string
	if limit, ok := r.Limits[corev1.ResourceMemory]; ok && limit.Value() > 0 && *c.MaxBytes >= limit.Value() {
		w = append(w, fmt.Sprintf("spec.cache.maxBytes: %d is not below runtime.resources.limits.memory, %s: the container would be killed before the cache is full", *c.MaxBytes, limit.String()))
	}
	if limit, ok := r.Limits[corev1.ResourceEphemeralStorage]; ok && is(c.Persist, true) && limit.Value() > 0 && *c.MaxBytes >= limit.Value() {
		w = append(w, fmt.Sprintf("spec.cache.maxBytes: %d is not below runtime.resources.limits.ephemeral-storage, %s: the pod would be evicted before the cache volume is full", *c.MaxBytes, limit.String()))
	}
	return w
}

// admissionWarnings are about a baseline that may refuse pods of namespaces whose
// owners never said so. For an ordinary policy, Enforce is what its owners chose.
func admissionWarnings(spec *v1alpha1.VisionPolicySpec) []string {
	if spec.NamespaceSelector == nil || spec.Admission == nil || !is(spec.Admission.Mode, v1alpha1.AdmissionEnforce) || !selectsAll(spec.PodSelector) {
		return nil
	}
	whose := "of its namespaces"
	if selectsAll(spec.NamespaceSelector) {
		whose = "of the cluster"
	}
	return []string{"spec.admission.mode: Enforce in a baseline refuses every pod " + whose + " that opts in and cannot be served, unless a policy of its namespace sets another mode"}
}

// selectsAll reports whether a selector says nothing.
func selectsAll(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// hostOf is the host of an endpoint's URL, in lower case, without port; IPv6 is in
// its brackets. What is no such URL is refused.
func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.ToLower(host)
}

// loopback reports whether a host is the pod itself.
func loopback(host string) bool { return inside(host) && !service(host) }
