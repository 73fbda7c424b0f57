// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// references holds a policy's routes against the providers that there are. It
// only warns: a provider may come after the policy, in the same file.
type references struct {
	// cached is asked first, and live before anything is said: the provider may
	// have been applied a moment ago.
	cached, live      client.Reader
	operatorNamespace string
}

// warnings are what a policy's author should know of its routes now.
func (r *references) warnings(ctx context.Context, p *v1alpha1.VisionPolicy) []string {
	said, err := r.warningsFrom(ctx, r.cached, p)
	if err != nil || len(said) > 0 {
		said, err = r.warningsFrom(ctx, r.live, p)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "holding a policy against its providers; it is admitted without warnings about its routes", "policy", client.ObjectKeyFromObject(p))
	}
	return said
}

func (r *references) warningsFrom(ctx context.Context, from client.Reader, p *v1alpha1.VisionPolicy) ([]string, error) {
	var providers v1alpha1.VisionProviderList
	if err := from.List(ctx, &providers, client.InNamespace(p.Namespace)); err != nil {
		return nil, err
	}
	verdict := compile.Compile(compile.Input{
		Namespace: p.Namespace, OperatorNamespace: r.operatorNamespace,
		Policies: []v1alpha1.VisionPolicy{*p}, Providers: providers.Items,
	}).Policies[p.Name]
	said := slices.Clone(verdict.Redundant)
	switch verdict.ResolvedRefs.Reason {
	case v1alpha1.ReasonRouteNotFound, v1alpha1.ReasonNoUsableRoute, v1alpha1.ReasonFallbackNotUsable:
		said = append(said, "as the providers are now: "+strings.Map(printable, verdict.ResolvedRefs.Message))
	}
	return said, nil
}
