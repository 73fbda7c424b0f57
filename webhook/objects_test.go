// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// marshalAll makes one manifest of objects in a namespace.
func marshalAll(t *testing.T, namespace string, objects ...client.Object) string {
	t.Helper()
	var out []string
	for _, o := range objects {
		gvk, err := admin.GroupVersionKindFor(o)
		if err != nil {
			t.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(gvk)
		o.SetNamespace(namespace)
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(data))
	}
	return strings.Join(out, "---\n")
}

func TestACABundleThatDoesNotParseIsRefusedByField(t *testing.T) {
	u := newUser(t)
	p := provider()
	p.Namespace = u.namespace
	p.Spec.Endpoints[0].CABundle = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n"
	err := u.Create(t.Context(), p)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.endpoints[0].caBundle") {
		t.Errorf("got error %v, want Invalid at spec.endpoints[0].caBundle", err)
	}
	if err != nil && !strings.Contains(err.Error(), "visionproviders.visionoperator.dev") {
		t.Errorf("got error %v, want the webhook's refusal", err)
	}
}

func TestATokenFamilyThatIsNotKnownIsRefusedWithThoseNearIt(t *testing.T) {
	u := newUser(t)
	p := provider()
	p.Namespace = u.namespace
	p.Spec.Models[0].Family = "antropic"
	err := u.Create(t.Context(), p)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.models[0].family") || !strings.Contains(err.Error(), "near it: anthropic") {
		t.Errorf("got error %v, want Invalid at spec.models[0].family that names anthropic", err)
	}
}

func TestAContradictingFamilyAndALimitAboveTheVendorsAreWarnedOf(t *testing.T) {
	u := newUser(t)
	p := provider()
	p.Spec.Models = []v1alpha1.Model{{Name: "gpt-4o", ImageInput: new(true), Family: "openai-patch", Limits: &v1alpha1.ModelLimits{MaxImages: new(int64(1501))}}}
	u.create(p)
	for _, want := range []string{
		"299 spec.models[0].family: openai-patch is not the family that the model's name tells, gpt-4o",
		"299 spec.models[0].limits.maxImages: 1501 is above what openai accepts, 1500 images",
	} {
		if w := u.warned.all(); !strings.Contains(w, want) {
			t.Errorf("got warnings %q, want one with %q", w, want)
		}
	}
	if w := u.warned.all(); strings.Contains(w, "does not act on it yet") {
		t.Errorf("got warnings %q, want none about fields that are obeyed", w)
	}
}

func TestAnUpdateIsJudgedLikeACreation(t *testing.T) {
	u := newUser(t)
	p := provider()
	u.create(p)
	p.Spec.Endpoints[0].CABundle = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n"
	if err := u.Update(t.Context(), p); !apierrors.IsInvalid(err) {
		t.Errorf("got error %v, want Invalid", err)
	}
}

func TestFieldsWithoutBehaviourReachTheClientAsWarnings(t *testing.T) {
	u := newUser(t)
	p := policy(v1alpha1.AdmissionWarn)
	p.Spec.Quotas = []v1alpha1.Quota{{Scope: v1alpha1.QuotaScopePod, Window: "1h", Observations: new(int64(10))}}
	u.create(p)
	if w := u.warned.all(); !strings.Contains(w, "299 spec.quotas") {
		t.Errorf("got warnings %q, want one for spec.quotas", w)
	}
}

func TestALabelOfAnObjectThatWarnsIsChangedWithoutWarnings(t *testing.T) {
	u := newUser(t)
	p := policy(v1alpha1.AdmissionWarn)
	p.Spec.Quotas = []v1alpha1.Quota{{Scope: v1alpha1.QuotaScopePod, Window: "1h", Observations: new(int64(10))}}
	u.create(p)
	before := u.warned.all()
	p.Labels = map[string]string{"team": "a"}
	if err := u.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if after := u.warned.all(); after != before {
		t.Errorf("got warnings %q after %q", after, before)
	}
}

func TestAFallbackThatAddsNothingOrCannotServeIsWarnedOf(t *testing.T) {
	u := newUser(t)
	u.create(provider())
	model := provider().Spec.Models[0].Name
	p := policy(v1alpha1.AdmissionWarn)
	p.Spec.DefaultModel = new(provider().Name + "/" + model)
	p.Spec.FallbackModels = []string{provider().Name + "@" + provider().Spec.Endpoints[0].Name + "/" + model, provider().Name + "/gone"}
	u.create(p)
	for _, want := range []string{
		"spec.fallbackModels[0]: ", "already, and is not tried twice",
		"as the providers are now: ", "gone\" names an endpoint or model that no provider of the policy declares",
	} {
		if w := u.warned.all(); !strings.Contains(strings.ReplaceAll(w, `\"`, `"`), want) {
			t.Errorf("got warnings %q, want one with %q", w, want)
		}
	}
}

func TestAPolicyBeforeItsProviderIsNotWarnedOf(t *testing.T) {
	u := newUser(t)
	p := policy(v1alpha1.AdmissionWarn)
	p.Spec.DefaultModel = new("later/model")
	u.create(p)
	if w := u.warned.all(); w != "" {
		t.Errorf("got warnings %q, want none", w)
	}
}

func TestARouteOfAProviderThatDiscoversItsModelsIsNotWarnedOf(t *testing.T) {
	u := newUser(t)
	discovering := provider()
	discovering.Spec.Discovery = &v1alpha1.Discovery{}
	u.create(discovering)
	p := policy(v1alpha1.AdmissionWarn)
	p.Spec.DefaultModel = new(provider().Name + "/undeclared")
	u.create(p)
	if w := u.warned.all(); w != "" {
		t.Errorf("got warnings %q, want none", w)
	}
}
