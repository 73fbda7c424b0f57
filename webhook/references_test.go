// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// keyless is the suite's provider under a name, with no need of a key.
func keyless(name string) *v1alpha1.VisionProvider {
	p := provider()
	p.Name = name
	p.Spec.Credentials = v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}}
	return p
}

// platform applies objects to the operator's namespace until the test ends.
func platform(t *testing.T, u *user, provider *v1alpha1.VisionProvider, baseline *v1alpha1.VisionPolicy) {
	t.Helper()
	provider.Namespace, baseline.Namespace = operatorNamespace, operatorNamespace
	if err := u.Create(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Delete(context.Background(), provider) })
	if err := u.Create(t.Context(), baseline); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Delete(context.Background(), baseline) })
}

func TestARouteOfABaselinesProviderIsNotWarnedOfAndOneThatTheBaselineRefusesIs(t *testing.T) {
	u := newUser(t, restricted, "tier=references")
	baseline := policy(v1alpha1.AdmissionWarn)
	baseline.Name = "references"
	baseline.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "references"}}
	baseline.Spec.Providers = []v1alpha1.ProviderReference{{Name: "handed-out"}}
	platform(t, u, keyless("handed-out"), baseline)
	u.create(keyless("another"))
	model := provider().Spec.Models[0].Name

	p := policy(v1alpha1.AdmissionWarn)
	p.Spec.DefaultModel = new("handed-out/" + model)
	u.create(p)
	if w := u.warned.all(); w != "" {
		t.Errorf("got warnings %q of a route that the baseline's provider has", w)
	}
	baseline.Spec.AllowedModels = []string{"*/another@*/*"}
	if err := u.Update(t.Context(), baseline); err != nil {
		t.Fatal(err)
	}
	refused := "NotAllowed by " + operatorNamespace + "/references"
	for i := 0; !strings.Contains(u.warned.all(), refused); i++ { // the cache follows the baseline
		if i == 100 {
			t.Fatalf("got warnings %q, want one that names the baseline", u.warned.all())
		}
		time.Sleep(100 * time.Millisecond)
		p.Spec.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"turn": strconv.Itoa(i)}}
		if err := u.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARouteOfAProviderThatAnotherNamespaceSharesIsNotWarnedOf(t *testing.T) {
	u := newUser(t)
	elsewhere := newUser(t)
	shared := keyless("shared")
	shared.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromAll)}
	elsewhere.create(shared)
	model := provider().Spec.Models[0].Name

	p := policy(v1alpha1.AdmissionWarn)
	p.Spec.Providers = []v1alpha1.ProviderReference{{Name: "shared", Namespace: elsewhere.namespace, Alias: "theirs"}}
	p.Spec.DefaultModel = new("theirs/" + model)
	p.Spec.FallbackModels = []string{"theirs/gone"}
	u.create(p)
	if w := strings.ReplaceAll(u.warned.all(), `\"`, `"`); !strings.Contains(w, `gone" names an endpoint or model`) || strings.Contains(w, `"theirs@`+provider().Spec.Endpoints[0].Name+`/`+model) {
		t.Errorf("got warnings %q, want one of the fallback alone", w)
	}
}

func TestWhatIsUnwiseAsTheObjectsAreIsWarnedOf(t *testing.T) {
	u := newUser(t)
	u.create(keyless("first"), keyless("second"))
	model := provider().Spec.Models[0].Name
	p := policy(v1alpha1.AdmissionWarn)
	p.Name = "one"
	p.Spec.DefaultModel = new("first/" + model)
	p.Spec.AllowedModels = []string{"*", "first@*/misspelt"}
	p.Spec.Runtime = &v1alpha1.Runtime{Proxy: &v1alpha1.Proxy{SetBaseURLs: new(true)}, Workspaces: []string{"/work", "/etc/agent"}}
	u.create(p)
	endpoint := provider().Spec.Endpoints[0].Name
	for _, want := range []string{
		"spec.fallbackModels: none is named, so calls fail while first@" + endpoint + "/" + model + " cannot be reached, although second@" + endpoint + "/" + model + " could serve",
		"spec.allowedModels[1]: first@*/misspelt matches none of the models",
		"spec.runtime.proxy.setBaseURLs: has no effect while the proxy is off, by default",
		"spec.runtime.workspaces[1]: the runtime's own container needs /etc/agent",
	} {
		if w := u.warned.all(); !strings.Contains(w, want) {
			t.Errorf("got warnings %q, want one with %q", w, want)
		}
	}
	second := policy(v1alpha1.AdmissionWarn)
	second.Name = "two"
	time.Sleep(time.Second) // the age of policies is in whole seconds
	u.create(second)
	if w := strings.ReplaceAll(u.warned.all(), `\"`, `"`); !strings.Contains(w, `as the policies are now: VisionPolicy "one" has an equal podSelector`) {
		t.Errorf("got warnings %q, want one that the second policy is overridden", w)
	}
}

func TestABaselineWhereNoneCanBeIsWarnedOf(t *testing.T) {
	u := newUser(t)
	p := policy(v1alpha1.AdmissionWarn)
	p.Spec.NamespaceSelector = &metav1.LabelSelector{}
	u.create(p)
	if w := u.warned.all(); !strings.Contains(w, "spec.namespaceSelector: a baseline is accepted only in the operator's own namespace") {
		t.Errorf("got warnings %q, want one of the namespace", w)
	}
}
