// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestWarningsOfWhoMayUseAProvider(t *testing.T) {
	shared := func(from v1alpha1.NamespacesFrom, selector *metav1.LabelSelector) *v1alpha1.AllowedNamespaces {
		return &v1alpha1.AllowedNamespaces{From: &from, Selector: selector}
	}
	keyless := v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}}
	consumer := v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "a", Key: "b", From: ptr(v1alpha1.SecretFromConsumer)}}
	own := v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "a", Key: "b"}}
	team := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	for name, c := range map[string]struct {
		allowed     *v1alpha1.AllowedNamespaces
		credentials v1alpha1.Credentials
		want        []string
	}{
		"nobody is told of nothing":              {nil, own, nil},
		"its own namespace with a key":           {shared(v1alpha1.NamespacesFromSame, nil), own, nil},
		"all without a key":                      {shared(v1alpha1.NamespacesFromAll, nil), keyless, nil},
		"all, each with its key":                 {shared(v1alpha1.NamespacesFromAll, nil), consumer, nil},
		"all, with a key that stays":             {shared(v1alpha1.NamespacesFromAll, nil), own, []string{"spec.allowedNamespaces: the key stays"}},
		"some, with a key that stays":            {shared(v1alpha1.NamespacesFromSelector, team), own, []string{"spec.allowedNamespaces: the key stays"}},
		"some by a selector that says nothing":   {shared(v1alpha1.NamespacesFromSelector, &metav1.LabelSelector{}), keyless, []string{"spec.allowedNamespaces.selector: an empty selector"}},
		"some by a selector that says something": {shared(v1alpha1.NamespacesFromSelector, team), keyless, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := goodProvider()
			p.Spec.AllowedNamespaces, p.Spec.Credentials = c.allowed, c.credentials
			warned(t, ProviderWarnings(p), c.want)
		})
	}
}

func TestWarningsOfProbes(t *testing.T) {
	for url, want := range map[string][]string{
		"http://127.0.0.1:8973/v1":     {"spec.probe: has no effect"},
		"http://[::1]:8973/v1":         {"spec.probe: has no effect"},
		"https://LOCALHOST":            {"spec.probe: has no effect"},
		"https://api.example.com/v1":   nil,
		"https://vllm.team.svc:443/v1": nil,
	} {
		t.Run(url, func(t *testing.T) {
			p := goodProvider()
			p.Spec.Endpoints[0].URL, p.Spec.Probe = url, &v1alpha1.EndpointProbe{}
			warned(t, ProviderWarnings(p), want)
			p.Spec.Endpoints = append(p.Spec.Endpoints, v1alpha1.Endpoint{Name: "b", URL: "https://b.example.com"})
			warned(t, ProviderWarnings(p), nil)
		})
	}
}

func TestWarningsOfQuotas(t *testing.T) {
	const notYet = "spec.quotas is accepted"
	quota := func(scope v1alpha1.QuotaScope, window v1alpha1.Duration, failure *v1alpha1.OnStoreFailure) v1alpha1.VisionPolicySpec {
		return v1alpha1.VisionPolicySpec{Quotas: []v1alpha1.Quota{{Scope: scope, Window: window, Observations: ptr(int64(1)), OnStoreFailure: failure}}}
	}
	for name, c := range map[string]struct {
		spec v1alpha1.VisionPolicySpec
		want []string
	}{
		"a pod's quota of a day":              {quota(v1alpha1.QuotaScopePod, "24h", nil), nil},
		"a pod's quota of more than a day":    {quota(v1alpha1.QuotaScopePod, "24h1m", nil), []string{"spec.quotas[0].window: scope Pod cannot hold 24h1m"}},
		"a shared quota of a month":           {quota(v1alpha1.QuotaScopeNamespace, "744h", ptr(v1alpha1.OnStoreFailureDeny)), nil},
		"a pod's quota with a store to fail":  {quota(v1alpha1.QuotaScopePod, "1h", ptr(v1alpha1.OnStoreFailureDeny)), []string{"spec.quotas[0].onStoreFailure: has no effect"}},
		"a window that is refused is skipped": {quota(v1alpha1.QuotaScopePod, "a month", nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			warned(t, PolicyWarnings(&v1alpha1.VisionPolicy{Spec: c.spec}), append([]string{notYet}, c.want...))
		})
	}
}

func TestWarningsOfWhatHasNoEffect(t *testing.T) {
	proxy := func(p v1alpha1.Proxy) v1alpha1.VisionPolicySpec {
		return v1alpha1.VisionPolicySpec{Runtime: &v1alpha1.Runtime{Proxy: &p}}
	}
	rules := []v1alpha1.ProxyPassthroughRule{{Method: "GET", Path: "/x"}}
	for name, c := range map[string]struct {
		spec v1alpha1.VisionPolicySpec
		want []string
	}{
		"what a proxy that is off would do": {proxy(v1alpha1.Proxy{Enabled: ptr(false), SetBaseURLs: ptr(true), Passthrough: rules}),
			[]string{"spec.runtime.proxy.setBaseURLs: has no effect", "spec.runtime.proxy.passthrough: has no effect"}},
		"a proxy that a baseline may turn on": {proxy(v1alpha1.Proxy{SetBaseURLs: ptr(true), Passthrough: rules}), nil},
		"a proxy that is on":                  {proxy(v1alpha1.Proxy{Enabled: ptr(true), SetBaseURLs: ptr(true), Passthrough: rules}), nil},
		"a proxy that is off":                 {proxy(v1alpha1.Proxy{Enabled: ptr(false), SetBaseURLs: ptr(false)}), nil},
		"how to show what is not shown":       {v1alpha1.VisionPolicySpec{Injection: &v1alpha1.Injection{Mode: ptr(v1alpha1.InjectionOff), Keep: ptr(v1alpha1.KeepThread)}}, []string{"spec.injection: with mode: Off"}},
		"a prompt for what is only observed":  {v1alpha1.VisionPolicySpec{Injection: &v1alpha1.Injection{Mode: ptr(v1alpha1.InjectionOff), ObservationPrompt: "x"}}, nil},
		"how to show what is shown":           {v1alpha1.VisionPolicySpec{Injection: &v1alpha1.Injection{Keep: ptr(v1alpha1.KeepThread)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			warned(t, PolicyWarnings(&v1alpha1.VisionPolicy{Spec: c.spec}), c.want)
		})
	}
}

func TestWarningsOfCachesThatDoNotFit(t *testing.T) {
	spec := func(bytes int64, persist bool, name corev1.ResourceName, limit string) v1alpha1.VisionPolicySpec {
		return v1alpha1.VisionPolicySpec{Cache: &v1alpha1.Cache{MaxBytes: &bytes, Persist: &persist},
			Runtime: &v1alpha1.Runtime{Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{name: resource.MustParse(limit)}}}}
	}
	for name, c := range map[string]struct {
		spec v1alpha1.VisionPolicySpec
		want []string
	}{
		"as large as the memory":               {spec(1<<20, false, corev1.ResourceMemory, "1Mi"), []string{"spec.cache.maxBytes: 1048576 is not below runtime.resources.limits.memory, 1Mi"}},
		"smaller than the memory":              {spec(1<<20, false, corev1.ResourceMemory, "2Mi"), nil},
		"as large as the disk, and kept there": {spec(1<<20, true, corev1.ResourceEphemeralStorage, "1Mi"), []string{"spec.cache.maxBytes: 1048576 is not below runtime.resources.limits.ephemeral-storage"}},
		"as large as the disk, but in memory":  {spec(1<<20, false, corev1.ResourceEphemeralStorage, "1Mi"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			warned(t, PolicyWarnings(&v1alpha1.VisionPolicy{Spec: c.spec}), c.want)
		})
	}
}

func TestWarningsOfWhomEnforceRefuses(t *testing.T) {
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	enforce := &v1alpha1.Admission{Mode: ptr(v1alpha1.AdmissionEnforce)}
	for name, c := range map[string]struct {
		spec v1alpha1.VisionPolicySpec
		want []string
	}{
		"all pods of a namespace":           {v1alpha1.VisionPolicySpec{Admission: enforce, PodSelector: &metav1.LabelSelector{}}, nil},
		"some pods":                         {v1alpha1.VisionPolicySpec{Admission: enforce, PodSelector: some}, nil},
		"all pods, with a warning":          {v1alpha1.VisionPolicySpec{Admission: &v1alpha1.Admission{Mode: ptr(v1alpha1.AdmissionWarn)}}, nil},
		"all pods of the cluster":           {v1alpha1.VisionPolicySpec{Admission: enforce, NamespaceSelector: &metav1.LabelSelector{}}, []string{"spec.admission.mode: Enforce in a baseline refuses every pod of the cluster"}},
		"all pods of namespaces by a label": {v1alpha1.VisionPolicySpec{Admission: enforce, NamespaceSelector: some}, []string{"spec.admission.mode: Enforce in a baseline refuses every pod of its namespaces"}},
	} {
		t.Run(name, func(t *testing.T) {
			warned(t, PolicyWarnings(&v1alpha1.VisionPolicy{Spec: c.spec}), c.want)
		})
	}
}
