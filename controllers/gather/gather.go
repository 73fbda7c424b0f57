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

// Gather reads the objects that a namespace's router depends on: the policies
// and providers of the namespace, the baselines of the operator's namespace, and
// the providers of every namespace that one of these policies refers to. An
// error says which list could not be read.
func Gather(ctx context.Context, r client.Reader, namespace, operatorNamespace string) (compile.Input, error) {
	in := compile.Input{Namespace: namespace, OperatorNamespace: operatorNamespace}
	var policies v1alpha1.VisionPolicyList
	if err := r.List(ctx, &policies, client.InNamespace(namespace)); err != nil {
		return in, fmt.Errorf("listing policies of namespace %s: %w", namespace, err)
	}
	in.Policies = policies.Items
	if operatorNamespace != namespace {
		var baselines v1alpha1.VisionPolicyList
		if err := r.List(ctx, &baselines, client.InNamespace(operatorNamespace)); err != nil {
			return in, fmt.Errorf("listing baselines of namespace %s: %w", operatorNamespace, err)
		}
		for _, p := range baselines.Items {
			if p.Spec.NamespaceSelector != nil {
				in.Policies = append(in.Policies, p)
			}
		}
	}
	for _, from := range providerNamespaces(&in) {
		var providers v1alpha1.VisionProviderList
		if err := r.List(ctx, &providers, client.InNamespace(from)); err != nil {
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
			from := ref.Namespace
			if from == "" {
				from = p.Namespace
			}
			if !slices.Contains(names, from) {
				names = append(names, from)
			}
		}
	}
	return names
}

// Own are the policies of the namespace itself: those that may serve its pods,
// and whose status tells of its router.
func Own(in compile.Input) []v1alpha1.VisionPolicy {
	return slices.DeleteFunc(slices.Clone(in.Policies), func(p v1alpha1.VisionPolicy) bool { return p.Namespace != in.Namespace })
}
