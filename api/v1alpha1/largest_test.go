// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
)

// padded is a text of n bytes that no other number gives.
func padded(i, n int) string {
	head := fmt.Sprintf("n%d-", i)
	return head + strings.Repeat("a", n-len(head))
}

// TestTheLargestObjectsStayWithinTheCostBudgetOfRules fills every list and
// every text to its bound: an object must not be refused for what its rules cost.
func TestTheLargestObjectsStayWithinTheCostBudgetOfRules(t *testing.T) {
	provider := largestProvider()
	if err := api.Create(t.Context(), provider.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("provider: %v", err)
	}
	if problems := validation.Provider(provider); len(problems) > 0 {
		t.Errorf("provider: %v", problems)
	}
	policy := largestPolicy()
	if err := api.Create(t.Context(), policy.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("policy: %v", err)
	}
	if problems := validation.Policy(policy); len(problems) > 0 {
		t.Errorf("policy: %v", problems)
	}
}

func largestProvider() *v1alpha1.VisionProvider {
	yes, timeout := true, v1alpha1.Duration("00000h00000h00000h00001s")
	p := &v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Name: padded(0, 63), Namespace: "default"}}
	p.Spec.Transport = v1alpha1.TransportOpenAIChatCompletions
	p.Spec.Credentials.SecretRef = &v1alpha1.SecretKeyReference{Name: padded(0, 253), Key: padded(0, 253)}
	for i := range 8 {
		e := v1alpha1.Endpoint{Name: padded(i, 63), APIVersion: padded(i, 64), Timeout: &timeout, AllowPlainHTTP: &yes}
		host := "http://" + strings.Repeat("a.", 120) + "svc:65535/"
		e.URL = host + strings.Repeat("%41", (2048-len(host))/3)
		for j := range 16 {
			e.Headers = append(e.Headers, v1alpha1.HTTPHeader{Name: padded(j, 64), Value: strings.Repeat("v", 1024)})
		}
		p.Spec.Endpoints = append(p.Spec.Endpoints, e)
	}
	for i := range 64 {
		m := v1alpha1.Model{Name: padded(i, 253), ImageInput: &yes, Family: "gpt-" + padded(i, 60), Limits: &v1alpha1.ModelLimits{},
			Price: &v1alpha1.ModelPrice{InputPerMillionTokens: "999999999.999999999", OutputPerMillionTokens: "999999999.999999999"}}
		for j := range 16 {
			m.Limits.MediaTypes = append(m.Limits.MediaTypes, "image/"+padded(j, 58))
		}
		p.Spec.Models = append(p.Spec.Models, m)
	}
	return p
}

func largestPolicy() *v1alpha1.VisionPolicy {
	p := &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: padded(0, 253), Namespace: "default"}}
	route := func(i int) string { return padded(0, 63) + "@" + padded(i, 63) + "/" + padded(i, 253) }
	first := route(0)
	p.Spec.DefaultModel = &first
	for i := range 32 {
		p.Spec.Providers = append(p.Spec.Providers, v1alpha1.ProviderReference{Name: padded(i, 63), Namespace: padded(i, 63), Alias: padded(i, 63)})
	}
	for i := range 8 {
		p.Spec.FallbackModels = append(p.Spec.FallbackModels, route(i))
		p.Spec.Quotas = append(p.Spec.Quotas, v1alpha1.Quota{Scope: v1alpha1.QuotaScopePod, Window: "00001h00001h00001h00001h", Cost: "999999999.999999999"})
	}
	for i := range 63 {
		p.Spec.AllowedModels = append(p.Spec.AllowedModels, padded(i, 512))
	}
	p.Spec.AllowedModels = append(p.Spec.AllowedModels, "*"+strings.Repeat("*", 511))
	text := strings.Repeat("t", 4096)
	p.Spec.Injection = &v1alpha1.Injection{ObservationPrompt: text, Template: &v1alpha1.InjectionTemplate{Heading: text, Item: text, Unavailable: text}}
	for i := range 32 {
		p.Spec.Injection.Tools = append(p.Spec.Injection.Tools, padded(i, 128))
		p.Spec.Injection.ExcludeTools = append(p.Spec.Injection.ExcludeTools, padded(i, 128))
	}
	p.Spec.Runtime = &v1alpha1.Runtime{Proxy: &v1alpha1.Proxy{}, Resources: &corev1.ResourceRequirements{}}
	for i := range 16 {
		p.Spec.Injection.PathArguments = append(p.Spec.Injection.PathArguments, padded(i, 128))
		p.Spec.Runtime.Workspaces = append(p.Spec.Runtime.Workspaces, "/"+padded(i, 16)+strings.Repeat("/a", 503))
	}
	for i := range 32 {
		p.Spec.Runtime.Proxy.Passthrough = append(p.Spec.Runtime.Proxy.Passthrough, v1alpha1.ProxyPassthroughRule{Method: "GET", Path: "/" + padded(i, 1023)})
	}
	return p
}
