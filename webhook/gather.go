// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// namespaceLabels reads a namespace's labels from the API server itself: the
// operator may get namespaces and not list them, and one GET for each pod that
// asks for the runtime buys that a label counts as soon as it is set.
func namespaceLabels(ctx context.Context, live client.Reader, name string) (map[string]string, error) {
	var ns corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: name}, &ns); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return ns.Labels, nil
}

// gather reads the objects that a namespace's router depends on.
func gather(ctx context.Context, r client.Reader, namespace, operatorNamespace string) (compile.Input, error) {
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

// ofNamespace are the policies that may serve a namespace's pods by themselves.
func ofNamespace(policies []v1alpha1.VisionPolicy, namespace string) []v1alpha1.VisionPolicy {
	return slices.DeleteFunc(slices.Clone(policies), func(p v1alpha1.VisionPolicy) bool { return p.Namespace != namespace })
}
