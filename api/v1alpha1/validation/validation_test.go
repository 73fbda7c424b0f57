// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func ptr[T any](v T) *T { return &v }

func goodProvider() *v1alpha1.VisionProvider {
	return &v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "openai", Namespace: "team"},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "public", URL: "https://api.openai.com/v1"}},
			Credentials: v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "openai", Key: "api-key"}},
			Models:      []v1alpha1.Model{{Name: "gpt-5.2", ImageInput: ptr(true)}},
		},
	}
}

// certificate returns the PEM of a new self-signed certificate.
func certificate(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// found compares a list of problems with "field: part of the problem", in order.
func found(t *testing.T, got field.ErrorList, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d problems, want %d:\n%v", len(got), len(want), got)
	}
	for i, w := range want {
		at, words, _ := strings.Cut(w, ": ")
		if got[i].Field != at || !strings.Contains(got[i].Error(), words) {
			t.Errorf("problem %d is %q; want one of %s with %q", i, got[i].Error(), at, words)
		}
	}
}

func TestProvider(t *testing.T) {
	cert := certificate(t)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("hunter2")}))
	for _, c := range []struct {
		name string
		edit func(*v1alpha1.VisionProvider)
		want []string
	}{
		{"a good one has no problem", func(*v1alpha1.VisionProvider) {}, nil},
		{"an empty one has every problem in one answer", func(p *v1alpha1.VisionProvider) { *p = v1alpha1.VisionProvider{} }, []string{
			"metadata.name: 1 to 63", "spec.transport: supported values", "spec.endpoints: at least one endpoint",
			"spec.credentials: exactly one of secretRef and none", "spec.models: at least one model",
		}},
		{"a bundle of two certificates with comments is accepted", func(p *v1alpha1.VisionProvider) {
			p.Spec.Endpoints[0].CABundle = "# root\n" + cert + "\n# issuing\n" + cert
		}, nil},
		{"a bundle that is not PEM is refused", func(p *v1alpha1.VisionProvider) { p.Spec.Endpoints[0].CABundle = "LS0tLS1CRUdJTg==" },
			[]string{"spec.endpoints[0].caBundle: holds no PEM certificate"}},
		{"a bundle with a broken certificate is refused", func(p *v1alpha1.VisionProvider) {
			p.Spec.Endpoints[0].CABundle = cert + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
		}, []string{"spec.endpoints[0].caBundle: PEM block 2 does not parse as a certificate"}},
		{"a bundle that is cut off is refused", func(p *v1alpha1.VisionProvider) { p.Spec.Endpoints[0].CABundle = cert + cert[:100] },
			[]string{"spec.endpoints[0].caBundle: it may be cut off"}},
		{"a bundle with a private key is refused", func(p *v1alpha1.VisionProvider) { p.Spec.Endpoints[0].CABundle = key + cert },
			[]string{"spec.endpoints[0].caBundle: PEM block 1 is no certificate"}},
		{"an API version is a plain word", func(p *v1alpha1.VisionProvider) {
			p.Spec.Endpoints[0].APIVersion = "2024-10-21"
			p.Spec.Endpoints = append(p.Spec.Endpoints, v1alpha1.Endpoint{Name: "b", URL: "https://b.example.com", APIVersion: "v1&key=x"},
				v1alpha1.Endpoint{Name: "c", URL: "https://c.example.com", APIVersion: strings.Repeat("1", 65)})
		}, []string{"spec.endpoints[1].apiVersion: must be an API version", "spec.endpoints[2].apiVersion: must be an API version"}},
		{"two endpoints and two models of one name are refused", func(p *v1alpha1.VisionProvider) {
			p.Spec.Endpoints = append(p.Spec.Endpoints, p.Spec.Endpoints[0])
			p.Spec.Models = append(p.Spec.Models, p.Spec.Models[0])
		}, []string{"spec.endpoints[1].name: Duplicate", "spec.models[1].name: Duplicate"}},
		{"more output than the window holds is refused", func(p *v1alpha1.VisionProvider) {
			p.Spec.Models[0].ContextWindowTokens, p.Spec.Models[0].MaxOutputTokens = ptr(int64(8192)), ptr(int64(8193))
		}, []string{"spec.models[0].maxOutputTokens: at most contextWindowTokens, 8192"}},
		{"a selector that does not parse is refused", func(p *v1alpha1.VisionProvider) {
			p.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: ptr(v1alpha1.NamespacesFromSelector), Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is", Values: []string{"a"}}}}}
		}, []string{"spec.allowedNamespaces.selector.matchExpressions[0].operator: not a valid selector operator"}},
		{"an IPv6 address that is none is refused", func(p *v1alpha1.VisionProvider) { p.Spec.Endpoints[0].URL = "https://[1::2::3]/v1" },
			[]string{"spec.endpoints[0].url: the host must be"}},
		{"a name of 254 characters is refused", func(p *v1alpha1.VisionProvider) {
			p.Spec.Endpoints[0].URL = "https://" + strings.Repeat("a.", 126) + "aa/v1"
		}, []string{"spec.endpoints[0].url: the host must be"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := goodProvider()
			c.edit(p)
			got := Provider(p)
			found(t, got, c.want)
			if text := got.ToAggregate(); text != nil && (strings.Contains(text.Error(), "hunter2") || strings.Contains(text.Error(), "BEGIN PRIVATE")) {
				t.Errorf("the answer repeats the bundle: %v", text)
			}
		})
	}
}

func TestPolicy(t *testing.T) {
	for _, c := range []struct {
		name string
		spec v1alpha1.VisionPolicySpec
		want []string
	}{
		{"an empty one has no problem", v1alpha1.VisionPolicySpec{}, nil},
		{"selectors that do not parse are refused together", v1alpha1.VisionPolicySpec{
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "not a value"}},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}},
		}, []string{"spec.podSelector.matchLabels: not a value", "spec.namespaceSelector.matchExpressions[0].values: must be specified"}},
		{"an alias that is another's name is refused", v1alpha1.VisionPolicySpec{
			Providers: []v1alpha1.ProviderReference{{Name: "a"}, {Name: "b", Alias: "a"}},
		}, []string{"spec.providers[1].alias: Duplicate"}},
		{"a default of a provider that the policy does not name is refused", v1alpha1.VisionPolicySpec{
			Providers:    []v1alpha1.ProviderReference{{Name: "ocr"}, {Name: "openai", Alias: "gpt"}},
			DefaultModel: ptr("openai/gpt-5.2"),
		}, []string{`spec.defaultModel: the provider "openai" is not in spec.providers`}},
		{"a fallback that is no route is refused, one that cannot serve is not", v1alpha1.VisionPolicySpec{
			Providers:      []v1alpha1.ProviderReference{{Name: "ocr"}},
			AllowedModels:  []string{"ocr@*/*"},
			FallbackModels: []string{"gpt-5.2", "vllm@eu/qwen", "auto"},
		}, []string{"spec.fallbackModels[0]: provider", "spec.fallbackModels[2]: provider"}},
		{"without providers, a route may name any", v1alpha1.VisionPolicySpec{DefaultModel: ptr("openai/gpt-5.2")}, nil},
		{"a default that no glob allows is refused", v1alpha1.VisionPolicySpec{
			DefaultModel: ptr("ocr@local/tesseract"), AllowedModels: []string{"openai@*/*", "ocr@remote/*"},
		}, []string{"spec.defaultModel: no glob of spec.allowedModels matches it"}},
		{"a default that one glob allows is accepted", v1alpha1.VisionPolicySpec{
			DefaultModel: ptr("ocr@local/tesseract"), AllowedModels: []string{"openai@*/*", "ocr@*/*"},
		}, nil},
		{"a default whose endpoint is left out is left to the compiler", v1alpha1.VisionPolicySpec{
			DefaultModel: ptr("ocr/tesseract"), AllowedModels: []string{"ocr@local/*"},
		}, nil},
		{"a baseline's globs are not matched with tenants' names", v1alpha1.VisionPolicySpec{
			NamespaceSelector: &metav1.LabelSelector{}, DefaultModel: ptr("ocr@local/tesseract"), AllowedModels: []string{"models/ocr@*/*"},
		}, nil},
		{"requests above limits are refused", v1alpha1.VisionPolicySpec{Runtime: &v1alpha1.Runtime{Resources: &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("-1")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("512Mi")},
		}}}, []string{"spec.runtime.resources.requests[cpu]: must not be negative", "spec.runtime.resources.requests[memory]: must be at most the limit, 512Mi"}},
		{"what no container has, or the runtime does not use, is refused", v1alpha1.VisionPolicySpec{Runtime: &v1alpha1.Runtime{Resources: &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"pods": resource.MustParse("1"), "ephemeral-storage": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"example.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("1")},
		}}}, []string{"spec.runtime.resources.requests[pods]: cpu, memory and ephemeral-storage, nothing else", "spec.runtime.resources.limits[example.com/gpu]: cpu, memory and ephemeral-storage, nothing else"}},
		{"every limit is judged", v1alpha1.VisionPolicySpec{Limits: &v1alpha1.Limits{
			Image:   &v1alpha1.ImageLimits{MaxBytes: ptr(int64(0)), MaxPixels: ptr(int64(-1))},
			Request: &v1alpha1.RequestLimits{MaxDistinctImages: ptr(int64(1001))},
		}}, []string{"spec.limits.image.maxBytes: must be between 1 and", "spec.limits.image.maxPixels: must be between 1 and", "spec.limits.request.maxDistinctImages: between 1 and 1000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found(t, Policy(&v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team"}, Spec: c.spec}), c.want)
		})
	}
}

func TestTheRuntimeSpeaksEveryTransport(t *testing.T) {
	for _, transport := range transports {
		if !router.Speaks(string(transport)) {
			t.Errorf("%s is accepted and the runtime does not speak it", transport)
		}
	}
}

func TestDurationsAreReadAsWritten(t *testing.T) {
	for text, want := range map[v1alpha1.Duration]int64{"30s": 30_000, "1h30m": 5_400_000, "500ms": 500, "1m1ms": 60_001, "99999h": 359_996_400_000, "0s": 0} {
		if got, ok := milliseconds(text); !ok || got != want {
			t.Errorf("%s is read as %d ms, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []v1alpha1.Duration{"", "1", "1d", "1.5s", "-1s", "100000s", "1h1h1h1h1h", "1 s", "1s\n"} {
		if got, ok := milliseconds(text); ok {
			t.Errorf("%q is read as %d ms", text, got)
		}
	}
}

func TestProviderWarnings(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*v1alpha1.VisionProvider)
		want []string
	}{
		{"a good one has none", func(*v1alpha1.VisionProvider) {}, nil},
		{"plain http outside the cluster", func(p *v1alpha1.VisionProvider) {
			p.Spec.Endpoints[0] = v1alpha1.Endpoint{Name: "a", URL: "http://models.example.com:8000/v1", AllowPlainHTTP: ptr(true), CABundle: "x"}
		}, []string{"spec.endpoints[0].url: images and the key travel", "spec.endpoints[0].caBundle: has no effect"}},
		{"a key over plain http within the cluster", func(p *v1alpha1.VisionProvider) { p.Spec.Endpoints[0].URL = "http://vllm.models.svc:8000/v1" },
			[]string{"spec.endpoints[0].url: images and the key travel in the clear within the cluster"}},
		{"images over plain http within the cluster", func(p *v1alpha1.VisionProvider) {
			p.Spec.Endpoints[0].URL, p.Spec.Credentials = "http://VLLM.models.SVC:8000/v1", v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}}
		}, []string{"spec.endpoints[0].url: images travel in the clear within the cluster"}},
		{"plain http to loopback", func(p *v1alpha1.VisionProvider) { p.Spec.Endpoints[0].URL = "http://[::1]:8973/v1" }, nil},
		{"allowPlainHTTP for https", func(p *v1alpha1.VisionProvider) { p.Spec.Endpoints[0].AllowPlainHTTP = ptr(true) },
			[]string{"spec.endpoints[0].allowPlainHTTP: has no effect"}},
		{"a key in a header", func(p *v1alpha1.VisionProvider) {
			p.Spec.Endpoints[0].Headers = []v1alpha1.HTTPHeader{{Name: "X-Extra", Value: "sk-hunter2"}}
		}, []string{"spec.endpoints[0].headers[0].value: looks like a key"}},
		{"no model that sees", func(p *v1alpha1.VisionProvider) { p.Spec.Models[0].ImageInput = ptr(false) },
			[]string{"spec.models: no model takes images"}},
		{"no declared model that sees, where others may be discovered", func(p *v1alpha1.VisionProvider) {
			p.Spec.Models[0].ImageInput, p.Spec.Discovery = ptr(false), &v1alpha1.Discovery{}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := goodProvider()
			c.edit(p)
			warned(t, ProviderWarnings(p), c.want)
		})
	}
}

func TestPolicyWarnings(t *testing.T) {
	for _, c := range []struct {
		name string
		spec v1alpha1.VisionPolicySpec
		want []string
	}{
		{"an empty one has none", v1alpha1.VisionPolicySpec{}, nil},
		{"globs that match some route", v1alpha1.VisionPolicySpec{AllowedModels: []string{"*", "ocr@*/*", "*/gpt-5*", "openai*/gpt", "ocr?local/x", "o?r/x"}}, nil},
		{"globs that can match no route", v1alpha1.VisionPolicySpec{AllowedModels: []string{"ocr/tesseract", "ocr/*", "gpt-5.2"}},
			[]string{"spec.allowedModels[0]: matches no route", "spec.allowedModels[1]: matches no route", "spec.allowedModels[2]: matches no route"}},
		{"a baseline's globs", v1alpha1.VisionPolicySpec{NamespaceSelector: &metav1.LabelSelector{}, AllowedModels: []string{"models/ocr@*/*", "*/ocr@local/x", "ocr@local/x", "models/ocr/x"}},
			[]string{"spec.allowedModels[2]: matches no route", "spec.allowedModels[3]: matches no route"}},
		{"fallbacks that cannot serve, by what the policy itself says", v1alpha1.VisionPolicySpec{
			Providers:      []v1alpha1.ProviderReference{{Name: "ocr"}, {Name: "openai", Alias: "gpt"}},
			AllowedModels:  []string{"ocr@*/*", "gpt@eu/*"},
			FallbackModels: []string{"gpt@eu/gpt-5.2", "openai/gpt-5.2", "gpt@us/gpt-5.2", "ocr/tesseract"},
		}, []string{`spec.fallbackModels[1]: the provider "openai" is not in spec.providers`, "spec.fallbackModels[2]: no glob of spec.allowedModels matches it"}},
		{"one workspace within another", v1alpha1.VisionPolicySpec{Runtime: &v1alpha1.Runtime{Workspaces: []string{"/a/b", "/a", "/ab"}}},
			[]string{"spec.runtime.workspaces[0]: /a/b already lies in /a"}},
		{"the image limit above the request's", v1alpha1.VisionPolicySpec{Limits: &v1alpha1.Limits{
			Image: &v1alpha1.ImageLimits{MaxBytes: ptr(int64(2))}, Request: &v1alpha1.RequestLimits{MaxTotalImageBytes: ptr(int64(1))}}},
			[]string{"spec.limits.image.maxBytes: exceeds"}},
		{"no say in the model and no default", v1alpha1.VisionPolicySpec{PerCallModel: ptr(v1alpha1.PerCallModelDenied)}, []string{"spec.perCallModel: calls may not name a model"}},
		{"a baseline that takes the say in the model", v1alpha1.VisionPolicySpec{NamespaceSelector: &metav1.LabelSelector{}, PerCallModel: ptr(v1alpha1.PerCallModelDenied)}, nil},
		{"the runtime as root", v1alpha1.VisionPolicySpec{Runtime: &v1alpha1.Runtime{RunAsUser: ptr(int64(0))}}, []string{"spec.runtime.runAsUser: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			warned(t, PolicyWarnings(&v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: c.spec}), c.want)
		})
	}
}

func TestWarningsAreBounded(t *testing.T) {
	globs := make([]string, 64)
	for i := range globs {
		globs[i] = strings.Repeat("a", i+1)
	}
	w := PolicyWarnings(&v1alpha1.VisionPolicy{Spec: v1alpha1.VisionPolicySpec{AllowedModels: globs}})
	if len(w) != 17 || w[16] != "and 48 more warnings" {
		t.Errorf("got %d warnings, the last one %q", len(w), w[len(w)-1])
	}
}

func warned(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) || !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if strings.Contains(strings.Join(got, " "), "hunter2") {
		t.Errorf("a warning repeats a value: %q", got)
	}
}
