// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// unprogrammedProviders are a provider of all that this build does not do yet,
// and one of all that it does.
func unprogrammedProviders() (all, obeyed *v1alpha1.VisionProvider) {
	all = goodProvider()
	all.Spec.Models = append(all.Spec.Models, v1alpha1.Model{Name: "m",
		Price: &v1alpha1.ModelPrice{InputPerMillionTokens: "1"}})

	obeyed = goodProvider()
	obeyed.Spec.Transport = v1alpha1.TransportGeminiGenerateContent
	obeyed.Spec.Endpoints[0] = v1alpha1.Endpoint{Name: "a", URL: "http://a.b.svc", APIVersion: "v1", CABundle: "x", Timeout: ptr(v1alpha1.Duration("1m")),
		Headers: []v1alpha1.HTTPHeader{{Name: "A", Value: "b"}}, AllowPlainHTTP: ptr(true)}
	obeyed.Spec.Credentials.SecretRef.From = ptr(v1alpha1.SecretFromConsumer)
	obeyed.Spec.Models[0] = v1alpha1.Model{Name: "m", ImageInput: ptr(true), Family: "openai-tile", ContextWindowTokens: ptr(int64(2)), MaxOutputTokens: ptr(int64(1)),
		ToolImages: ptr(v1alpha1.ToolImagesUserMessage),
		Limits:     &v1alpha1.ModelLimits{MaxImages: ptr(int64(1)), MaxImageBytes: ptr(int64(1)), MaxImageSide: ptr(int64(1)), MaxRequestBytes: ptr(int64(1)), MediaTypes: []string{"image/png"}}}
	obeyed.Spec.Discovery = &v1alpha1.Discovery{Interval: ptr(v1alpha1.Duration("1m"))}
	obeyed.Spec.Probe = &v1alpha1.EndpointProbe{Interval: ptr(v1alpha1.Duration("1m"))}
	obeyed.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: ptr(v1alpha1.NamespacesFromSelector), Selector: &metav1.LabelSelector{}}
	return all, obeyed
}

func TestUnprogrammedProvider(t *testing.T) {
	all, obeyed := unprogrammedProviders()
	for _, c := range []struct {
		name     string
		provider *v1alpha1.VisionProvider
		want     []string
	}{
		{"what this build does is not named", obeyed, nil},
		{"what it does not do yet is named field by field", all, []string{
			"spec.models[1].price",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := UnprogrammedProvider(c.provider); !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

// unprogrammedPolicies are the same for policies.
func unprogrammedPolicies() (all, obeyed v1alpha1.VisionPolicySpec) {
	one := ptr(int64(1))
	obeyed = v1alpha1.VisionPolicySpec{
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
		NamespaceSelector: &metav1.LabelSelector{},
		Providers:         []v1alpha1.ProviderReference{{Name: "a"}, {Name: "b", Namespace: "models", Alias: "c"}},
		DefaultModel:      ptr("auto"),
		FallbackModels:    []string{"a/b"},
		AllowedModels:     []string{"*"},
		PerCallModel:      ptr(v1alpha1.PerCallModelDenied),
		Limits: &v1alpha1.Limits{
			Image:   &v1alpha1.ImageLimits{MaxBytes: one, MaxPixels: one, MediaTypes: []string{"image/png"}, OnOversize: ptr(v1alpha1.OnOversizeDownscale)},
			Request: &v1alpha1.RequestLimits{MaxDistinctImages: one, MaxTotalImageBytes: one, MaxProbedPaths: one, MaxImageTokens: one, MaxBodyBytes: one},
		},
		Injection: &v1alpha1.Injection{Mode: ptr(v1alpha1.InjectionAuto), Tools: []string{"t"}, ExcludeTools: []string{"t"}, PathArguments: []string{"p"},
			WaitFor: ptr(v1alpha1.WaitForVisionToolCalls), Keep: ptr(v1alpha1.KeepCurrentTurn), MarkdownImages: ptr(v1alpha1.MarkdownImagesAttach),
			Template: &v1alpha1.InjectionTemplate{Heading: "h", Item: "i", Unavailable: "u"}, ObservationPrompt: "x"},
		Cache: &v1alpha1.Cache{TTL: ptr(v1alpha1.Duration("1h")), MaxEntries: one, MaxBytes: one, Persist: ptr(true)},
		Runtime: &v1alpha1.Runtime{Workspaces: []string{"/w"}, MCP: ptr(false), Resources: &corev1.ResourceRequirements{}, RunAsUser: one,
			LogLevel: ptr(v1alpha1.LogLevelDebug), Proxy: &v1alpha1.Proxy{Enabled: ptr(true), SetBaseURLs: ptr(true), Passthrough: []v1alpha1.ProxyPassthroughRule{{Method: "GET", Path: "/openai/v1/files"}}}},
		Admission: &v1alpha1.Admission{Mode: ptr(v1alpha1.AdmissionEnforce)},
	}
	all = v1alpha1.VisionPolicySpec{
		Quotas: []v1alpha1.Quota{{}},
	}
	return all, obeyed
}

func TestUnprogrammedPolicy(t *testing.T) {
	all, obeyed := unprogrammedPolicies()
	for _, c := range []struct {
		name string
		spec v1alpha1.VisionPolicySpec
		want []string
	}{
		{"an empty policy asks for nothing", v1alpha1.VisionPolicySpec{}, nil},
		{"what this build does, and what equals it, is not named", obeyed, nil},
		{"what it does not do yet is named field by field", all, []string{
			"spec.quotas",
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

// A field that is added to a kind must be obeyed or named: whoever adds one puts
// it into one of the objects above.
func TestEveryFieldIsEitherObeyedOrNamed(t *testing.T) {
	noKey := goodProvider()
	noKey.Spec.Credentials = v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}}
	allProvider, obeyedProvider := unprogrammedProviders()
	allPolicy, obeyedPolicy := unprogrammedPolicies()
	for _, c := range []struct {
		kind   reflect.Type
		obeyed []any
		named  []string
	}{
		{reflect.TypeFor[v1alpha1.VisionProviderSpec](), []any{obeyedProvider.Spec, noKey.Spec}, UnprogrammedProvider(allProvider)},
		{reflect.TypeFor[v1alpha1.VisionPolicySpec](), []any{obeyedPolicy}, UnprogrammedPolicy(&v1alpha1.VisionPolicy{Spec: allPolicy})},
	} {
		known := map[string]bool{}
		for _, spec := range c.obeyed {
			setFields("spec", reflect.ValueOf(spec), known)
		}
		for _, path := range c.named {
			known[index.ReplaceAllString(path, "")] = true
		}
		for _, path := range leaves("spec", c.kind) {
			for at := path; !known[at]; at = at[:strings.LastIndexByte(at, '.')] {
				if !strings.Contains(at, ".") {
					t.Errorf("%s is neither set in an object of what is obeyed nor named as unprogrammed", path)
					break
				}
			}
		}
	}
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// leaves are the paths of a type's fields that are no structs of this API's own.
func leaves(at string, kind reflect.Type) []string {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct || kind.PkgPath() != reflect.TypeFor[v1alpha1.Model]().PkgPath() || kind.NumField() == 0 {
		return []string{at}
	}
	var paths []string
	for i := range kind.NumField() {
		paths = append(paths, leaves(at+"."+jsonName(kind.Field(i)), kind.Field(i).Type)...)
	}
	return paths
}

// setFields adds the paths of the leaves that a value sets.
func setFields(at string, v reflect.Value, set map[string]bool) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			setFields(at, v.Index(i), set)
		}
	case slices.Equal(leaves(at, v.Type()), []string{at}):
		if v.Kind() == reflect.Struct || !v.IsZero() || v.Kind() == reflect.Bool || v.Kind() == reflect.Int64 {
			set[at] = true
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			setFields(at+"."+jsonName(v.Type().Field(i)), v.Field(i), set)
		}
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
