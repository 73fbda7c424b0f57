// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// authoring is all that an author of providers may do with them.
var authoring = verbs(v1alpha1.GroupVersion.Group, "visionproviders", "*")

// reading is leave to get one Secret.
func reading(secret string) rbacv1.PolicyRule {
	rule := verbs("", "secrets", "get")
	rule.ResourceNames = []string{secret}
	return rule
}

func TestAProvidersAuthorMustBeAllowedToReadItsSecret(t *testing.T) {
	consumer := func(p *v1alpha1.VisionProvider) {
		p.Spec.Credentials.SecretRef.From = new(v1alpha1.SecretFromConsumer)
	}
	provider := func(p *v1alpha1.VisionProvider) {
		p.Spec.Credentials.SecretRef.From = new(v1alpha1.SecretFromProvider)
	}
	tests := map[string]struct {
		rules  []rbacv1.PolicyRule
		secret string
		change func(*v1alpha1.VisionProvider)
		denied bool
	}{
		"no leave at all":                        {nil, "mine", nil, true},
		"no leave, and the provider is named":    {nil, "mine", provider, true},
		"no leave, and the consumer's is named":  {nil, "mine", consumer, true},
		"no leave, and no Secret is named":       {nil, "", nil, false},
		"leave for this Secret":                  {[]rbacv1.PolicyRule{reading("mine")}, "mine", nil, false},
		"leave for this Secret of the consumer":  {[]rbacv1.PolicyRule{reading("mine")}, "mine", consumer, false},
		"leave for another Secret":               {[]rbacv1.PolicyRule{reading("other")}, "mine", nil, true},
		"leave for all Secrets":                  {[]rbacv1.PolicyRule{verbs("", "secrets", "get")}, "mine", nil, false},
		"leave to list Secrets is not to get it": {[]rbacv1.PolicyRule{verbs("", "secrets", "create", "update")}, "mine", nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			author, namespace := tenant(t, append(test.rules, authoring)...)
			p := keyed(namespace, "p", test.secret)
			if test.change != nil {
				test.change(p)
			}
			err := author.Create(t.Context(), p)
			if !test.denied {
				if err != nil {
					t.Errorf("got %v, want it to be let pass", err)
				}
				return
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `Secret "mine" in namespace "`+namespace+`"`) {
				t.Errorf("got %v, want a refusal that names the Secret and the namespace", err)
			}
		})
	}
}

func TestLeaveInAnotherNamespaceDoesNotCount(t *testing.T) {
	author, namespace := tenant(t, authoring)
	_, other := tenant(t)
	who := "tenant-of-" + namespace
	if _, err := user(who, other, verbs("", "secrets", "get")); err != nil {
		t.Fatal(err)
	}
	if err := author.Create(t.Context(), keyed(namespace, "p", "mine")); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// A provider that somebody else made with a Secret may be changed by an author
// who cannot read the Secret, except in what says where its key goes.
func TestAnAuthorWithoutTheSecretMayNotMoveItsKey(t *testing.T) {
	const secretRef = `{"none":null,"secretRef":{"name":"mine","key":"api-key"}}`
	tests := map[string]struct {
		secret string // of the provider as it stands
		patch  string
		denied bool
	}{
		"another address":                  {"mine", `{"spec":{"endpoints":[{"name":"main","url":"https://elsewhere.example.com/v1"}]}}`, true},
		"a further endpoint":               {"mine", `{"spec":{"endpoints":[{"name":"main","url":"https://models.example.com/v1"},{"name":"two","url":"https://elsewhere.example.com"}]}}`, true},
		"another Secret":                   {"mine", `{"spec":{"credentials":{"secretRef":{"name":"other"}}}}`, true},
		"another key of the same Secret":   {"mine", `{"spec":{"credentials":{"secretRef":{"key":"admin"}}}}`, true},
		"the consumer's in place of its":   {"mine", `{"spec":{"credentials":{"secretRef":{"from":"Consumer"}}}}`, true},
		"a Secret where there was none":    {"", `{"spec":{"credentials":` + secretRef + `}}`, true},
		"no Secret any more":               {"mine", `{"spec":{"credentials":{"none":{},"secretRef":null}}}`, false},
		"other models":                     {"mine", `{"spec":{"models":[{"name":"other","imageInput":true}]}}`, false},
		"a label":                          {"mine", `{"metadata":{"labels":{"a":"b"}}}`, false},
		"another address without a Secret": {"", `{"spec":{"endpoints":[{"name":"main","url":"https://elsewhere.example.com/v1"}]}}`, false},
		"the same endpoints once more":     {"mine", `{"spec":{"endpoints":[{"name":"main","url":"https://models.example.com/v1"}]}}`, false},
		"what the status says":             {"mine", `{"status":{"observedGeneration":1}}`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			author, namespace := tenant(t, authoring)
			create(t, keyed(namespace, "p", test.secret))
			patch := client.RawPatch(types.MergePatchType, []byte(test.patch))
			err := author.Patch(t.Context(), keyed(namespace, "p", ""), patch)
			if !test.denied {
				if err != nil {
					t.Errorf("got %v, want it to be let pass", err)
				}
				return
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not get Secret") {
				t.Errorf("got %v, want a refusal", err)
			}
			if err := admin.Patch(t.Context(), keyed(namespace, "p", ""), patch); err != nil {
				t.Errorf("as the administrator, who may read it: %v", err)
			}
		})
	}
}

func TestTheOperatorReportsOnAProviderWhoseSecretItMayNotRead(t *testing.T) {
	_, namespace := tenant(t)
	create(t, keyed(namespace, "p", "mine"))
	if err := admin.Delete(t.Context(), secretsBinding()); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	operator := serviceAccount(t, operatorNamespace, v1alpha1.ManagedBy)
	p := keyed(namespace, "p", "")
	err := operator.Status().Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(
		`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)))
	if err != nil || len(p.Status.Conditions) != 1 {
		t.Errorf("got %v and the conditions %v, want the patched one", err, p.Status.Conditions)
	}
}

// secretsBinding is what lets the operator read Secrets.
func secretsBinding() *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{}
	b.Name = "vision-operator-secrets"
	return b
}
