// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// That the roles suffice is shown by every other test, which run under them;
// here is what they must not grant.
func TestTheOperatorsRolesGrantNoMoreThanIsNeeded(t *testing.T) {
	as, err := client.New(operator, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		verb, group, resource, subresource, namespace, name string
		allowed                                             bool
	}{
		{"get", "", "secrets", "", "team", "any", true},
		{"list", "", "secrets", "", "team", "", false},
		{"watch", "", "secrets", "", "", "", false},
		{"create", "", "secrets", "", "team", "", false},
		{"update", "", "secrets", "", "team", "any", false},
		{"delete", "", "secrets", "", operatorNamespace, "vision-operator-ca", false},
		{"update", "", "secrets", "", operatorNamespace, "vision-operator-ca", false}, // the webhooks' account's
		{"update", "", "secrets", "", operatorNamespace, "other", false},
		{"patch", "", "pods", "", "team", "agent", false},
		{"update", "", "pods", "", "team", "agent", false},
		{"patch", "", "pods", "status", "team", "agent", true},
		{"update", "", "pods", "status", "team", "agent", false},
		{"get", "", "pods", "", "team", "agent", false},
		{"list", "", "namespaces", "", "", "", true},
		{"patch", "", "namespaces", "", "", "team", false},
		{"delete", "", "pods", "", "team", "agent", false},
		{"create", "", "pods", "exec", "team", "agent", false},
		{"create", "", "pods", "", "team", "agent", false},         // but with eviction_role.yaml
		{"create", "", "pods", "eviction", "team", "agent", false}, // likewise
		{"patch", "", "configmaps", "", "team", "vision-router", true},
		{"patch", "", "configmaps", "", "team", "other", false},
		{"delete", "", "configmaps", "", "team", "other", false},
		{"get", "", "configmaps", "", "team", "other", false},
		{"patch", "visionoperator.dev", "visionpolicies", "", "team", "any", false},
		{"patch", "visionoperator.dev", "visionpolicies", "status", "team", "any", true},
		{"update", "visionoperator.dev", "visionproviders", "", "team", "any", false},
		{"patch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "", "vision-operator", false}, // likewise
		{"patch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "", "other", false},
		{"update", "coordination.k8s.io", "leases", "", operatorNamespace, "vision-operator", true},
		{"update", "coordination.k8s.io", "leases", "", "kube-system", "vision-operator", false},
		{"patch", "coordination.k8s.io", "leases", "", operatorNamespace, "vision-operator", false},
		{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", true},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings", "", "", "", false},
	}
	for _, test := range tests {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: test.verb, Group: test.group, Resource: test.resource,
				Subresource: test.subresource, Namespace: test.namespace, Name: test.name},
		}}
		if err := as.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != test.allowed {
			t.Errorf("%s %s/%s %s in %q: got %t, want %t", test.verb, test.resource, test.subresource, test.name, test.namespace, review.Status.Allowed, test.allowed)
		}
	}
}
