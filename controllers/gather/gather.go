// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather reads what compile.Compile works on, the same way for the
// controller that publishes a router and for the admission of the pods that it
// will serve.
package gather

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// Scope is what of a cluster the operator looks at.
type Scope struct {
	// OperatorNamespace is where baselines may live. It is always looked at.
	OperatorNamespace string
	// Namespaces are the others that are looked at; none stands for all.
	Namespaces []string
}

// Holds reports whether a namespace is looked at.
func (s Scope) Holds(namespace string) bool {
	return len(s.Namespaces) == 0 || namespace == s.OperatorNamespace || slices.Contains(s.Namespaces, namespace)
}

// Gather reads the objects that a namespace's router depends on, given its
// labels: the policies and providers of the namespace, the baselines that match
// it, and the providers of every namespace that one of these policies refers to.
// A provider outside the scope is as one that does not exist. An error says
// which list could not be read.
//
// What is read from a cache is the cache's own: it must not be changed.
func (s Scope) Gather(ctx context.Context, r client.Reader, namespace string, labels map[string]string) (compile.Input, error) {
	return s.gather(ctx, r, namespace, labels, nil)
}

// GatherWith is Gather as if a policy of the namespace were stored as given.
func (s Scope) GatherWith(ctx context.Context, r client.Reader, p *v1alpha1.VisionPolicy, labels map[string]string) (compile.Input, error) {
	return s.gather(ctx, r, p.Namespace, labels, p)
}

func (s Scope) gather(ctx context.Context, r client.Reader, namespace string, labels map[string]string, as *v1alpha1.VisionPolicy) (compile.Input, error) {
	in := compile.Input{Namespace: namespace, NamespaceLabels: labels, OperatorNamespace: s.OperatorNamespace}
	var policies v1alpha1.VisionPolicyList
	if err := r.List(ctx, &policies, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("listing policies of namespace %s: %w", namespace, err)
	}
	in.Policies = policies.Items
	if as != nil {
		in.Policies = slices.DeleteFunc(in.Policies, func(p v1alpha1.VisionPolicy) bool { return p.Name == as.Name })
		in.Policies = append(in.Policies, *as)
	}
	if s.OperatorNamespace != namespace {
		var baselines v1alpha1.VisionPolicyList
		if err := r.List(ctx, &baselines, client.InNamespace(s.OperatorNamespace), client.UnsafeDisableDeepCopy); err != nil {
			return in, fmt.Errorf("listing baselines of namespace %s: %w", s.OperatorNamespace, err)
		}
		for i := range baselines.Items {
			if compile.Matches(&baselines.Items[i], in) {
				in.Policies = append(in.Policies, baselines.Items[i])
			}
		}
	}
	for _, from := range providerNamespaces(&in) {
		if !s.Holds(from) {
			continue
		}
		var providers v1alpha1.VisionProviderList
		if err := r.List(ctx, &providers, client.InNamespace(from), client.UnsafeDisableDeepCopy); err != nil {
			return in, fmt.Errorf("listing providers of namespace %s: %w", from, err)
		}
		in.Providers = append(in.Providers, providers.Items...)
	}
	return in, nil
}

// providerNamespaces are the namespaces whose providers policies may refer to,
// the pods' own first.
func providerNamespaces(in *compile.Input) []string {
	names := []string{in.Namespace}
	for i := range in.Policies {
		p := &in.Policies[i]
		for _, ref := range p.Spec.Providers {
			if from := ProviderOf(p, ref).Namespace; !slices.Contains(names, from) {
				names = append(names, from)
			}
		}
	}
	return names
}

// ProviderOf is the provider that a reference of a policy names.
func ProviderOf(p *v1alpha1.VisionPolicy, ref v1alpha1.ProviderReference) client.ObjectKey {
	if ref.Namespace != "" {
		return client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	}
	return client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}
}

// Own are the policies of the namespace itself: those whose status tells of its
// router.
func Own(in compile.Input) []v1alpha1.VisionPolicy {
	return slices.DeleteFunc(slices.Clone(in.Policies), func(p v1alpha1.VisionPolicy) bool { return p.Namespace != in.Namespace })
}
