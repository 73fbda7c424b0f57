// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestUnprogrammedProvider(t *testing.T) {
	all := goodProvider()
	all.Spec.Transport = v1alpha1.TransportGeminiGenerateContent
	all.Spec.Models = append(all.Spec.Models, v1alpha1.Model{Name: "m", Family: "openai-tile", ContextWindowTokens: ptr(int64(2)),
		ToolImages: ptr(v1alpha1.ToolImagesUserMessage), Price: &v1alpha1.ModelPrice{InputPerMillionTokens: "1"}})
	all.Spec.Discovery, all.Spec.Probe = &v1alpha1.Discovery{}, &v1alpha1.EndpointProbe{}
	all.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: ptr(v1alpha1.NamespacesFromAll)}

	obeyed := goodProvider()
	obeyed.Spec.Endpoints[0] = v1alpha1.Endpoint{Name: "a", URL: "http://a.b.svc", CABundle: "x", Timeout: ptr(v1alpha1.Duration("1m")),
		Headers: []v1alpha1.HTTPHeader{{Name: "A", Value: "b"}}, AllowPlainHTTP: ptr(true)}
	obeyed.Spec.Credentials.SecretRef.From = ptr(v1alpha1.SecretFromConsumer)
	obeyed.Spec.Models[0] = v1alpha1.Model{Name: "m", ImageInput: ptr(true), MaxOutputTokens: ptr(int64(1)),
		Limits: &v1alpha1.ModelLimits{MaxImages: ptr(int64(1)), MaxImageBytes: ptr(int64(1)), MaxImageSide: ptr(int64(1)), MaxRequestBytes: ptr(int64(1)), MediaTypes: []string{"image/png"}}}
	obeyed.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: ptr(v1alpha1.NamespacesFromSame)}

	for _, c := range []struct {
		name     string
		provider *v1alpha1.VisionProvider
		want     []string
	}{
		{"what this build does is not named", obeyed, nil},
		{"what it does not do yet is named field by field", all, []string{
			"spec.transport", "spec.models[1].family", "spec.models[1].contextWindowTokens", "spec.models[1].toolImages", "spec.models[1].price",
			"spec.discovery", "spec.probe", "spec.allowedNamespaces",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := UnprogrammedProvider(c.provider); !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestUnprogrammedPolicy(t *testing.T) {
	one := ptr(int64(1))
	obeyed := v1alpha1.VisionPolicySpec{
		PodSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
		Providers:     []v1alpha1.ProviderReference{{Name: "a"}, {Name: "b", Namespace: "team", Alias: "c"}},
		DefaultModel:  ptr("auto"),
		AllowedModels: []string{"*"},
		PerCallModel:  ptr(v1alpha1.PerCallModelDenied),
		Limits: &v1alpha1.Limits{
			Image:   &v1alpha1.ImageLimits{MaxBytes: one, MaxPixels: one, MediaTypes: []string{"image/png"}, OnOversize: ptr(v1alpha1.OnOversizeRefuse)},
			Request: &v1alpha1.RequestLimits{MaxDistinctImages: one, MaxTotalImageBytes: one, MaxProbedPaths: one, MaxBodyBytes: one},
		},
		Injection: &v1alpha1.Injection{Mode: ptr(v1alpha1.InjectionOff), MarkdownImages: ptr(v1alpha1.MarkdownImagesOff)},
		Cache:     &v1alpha1.Cache{TTL: ptr(v1alpha1.Duration("1h")), MaxEntries: one, MaxBytes: one, Persist: ptr(false)},
		Runtime: &v1alpha1.Runtime{Workspaces: []string{"/w"}, MCP: ptr(false), Resources: &corev1.ResourceRequirements{}, RunAsUser: one,
			LogLevel: ptr(v1alpha1.LogLevelDebug), Proxy: &v1alpha1.Proxy{Enabled: ptr(false), SetBaseURLs: ptr(false)}},
		Admission: &v1alpha1.Admission{Mode: ptr(v1alpha1.AdmissionEnforce)},
	}
	all := v1alpha1.VisionPolicySpec{
		NamespaceSelector: &metav1.LabelSelector{},
		Providers:         []v1alpha1.ProviderReference{{Name: "a"}, {Name: "b", Namespace: "models"}},
		FallbackModels:    []string{"a/b"},
		Limits: &v1alpha1.Limits{Image: &v1alpha1.ImageLimits{OnOversize: ptr(v1alpha1.OnOversizeDownscale)},
			Request: &v1alpha1.RequestLimits{MaxImageTokens: one}},
		Quotas: []v1alpha1.Quota{{}},
		Injection: &v1alpha1.Injection{Mode: ptr(v1alpha1.InjectionAuto), Tools: []string{"t"}, ExcludeTools: []string{"t"}, PathArguments: []string{"p"},
			WaitFor: ptr(v1alpha1.WaitForAllToolCalls), Keep: ptr(v1alpha1.KeepThread), MarkdownImages: ptr(v1alpha1.MarkdownImagesAttach),
			Template: &v1alpha1.InjectionTemplate{}, ObservationPrompt: "x"},
		Cache:   &v1alpha1.Cache{Persist: ptr(true)},
		Runtime: &v1alpha1.Runtime{Proxy: &v1alpha1.Proxy{Enabled: ptr(true), SetBaseURLs: ptr(true), Passthrough: []v1alpha1.ProxyPassthroughRule{{}}}},
	}
	for _, c := range []struct {
		name string
		spec v1alpha1.VisionPolicySpec
		want []string
	}{
		{"an empty policy asks for nothing", v1alpha1.VisionPolicySpec{}, nil},
		{"what this build does, and what equals it, is not named", obeyed, nil},
		{"what it does not do yet is named field by field", all, []string{
			"spec.namespaceSelector", "spec.providers[1].namespace", "spec.fallbackModels",
			"spec.limits.image.onOversize", "spec.limits.request.maxImageTokens", "spec.quotas",
			"spec.injection.mode", "spec.injection.tools", "spec.injection.excludeTools", "spec.injection.pathArguments", "spec.injection.waitFor",
			"spec.injection.keep", "spec.injection.markdownImages", "spec.injection.template", "spec.injection.observationPrompt",
			"spec.cache.persist", "spec.runtime.proxy.enabled", "spec.runtime.proxy.setBaseURLs", "spec.runtime.proxy.passthrough",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := UnprogrammedPolicy(&v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: c.spec})
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}
