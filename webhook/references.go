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
	"github.com/visionoperator/vision-operator/controllers/gather"
)

// references holds a policy's routes against the providers that it will have,
// with the baselines of its namespace laid over it. It only warns: a provider
// may come after the policy, in the same file.
type references struct {
	// cached is asked first, and live before anything is said: the provider may
	// have been applied a moment ago.
	cached, live client.Reader
	scope        gather.Scope
}

// warnings are what a policy's author should know of its routes now. Where the
// operator does not look, it knows nothing.
func (r *references) warnings(ctx context.Context, p *v1alpha1.VisionPolicy) []string {
	if !r.scope.Holds(p.Namespace) {
		return nil
	}
	said, err := r.say(ctx, p)
	if err != nil {
		log.FromContext(ctx).Error(err, "holding a policy against its providers; it is admitted without warnings about its routes", "policy", client.ObjectKeyFromObject(p))
	}
	return said
}

func (r *references) say(ctx context.Context, p *v1alpha1.VisionPolicy) ([]string, error) {
	labels, err := namespaceLabels(ctx, r.live, p.Namespace)
	if err != nil {
		return nil, err
	}
	said, err := r.warningsFrom(ctx, r.cached, p, labels)
	if err != nil || len(said) > 0 {
		return r.warningsFrom(ctx, r.live, p, labels)
	}
	return said, nil
}

func (r *references) warningsFrom(ctx context.Context, from client.Reader, p *v1alpha1.VisionPolicy, labels map[string]string) ([]string, error) {
	in, err := r.scope.GatherWith(ctx, from, p, labels)
	if err != nil {
		return nil, err
	}
	verdict := compile.Compile(in).Policies[p.Name]
	said := slices.Concat(verdict.Redundant, verdict.Unwise)
	if verdict.Accepted.Reason == v1alpha1.ReasonNotBaselineNamespace {
		said = append(said, verdict.Accepted.Message)
	}
	if verdict.Overridden.OK {
		said = append(said, "as the policies are now: "+strings.Map(printable, verdict.Overridden.Message))
	}
	switch verdict.ResolvedRefs.Reason {
	case v1alpha1.ReasonRouteNotFound, v1alpha1.ReasonNoUsableRoute, v1alpha1.ReasonFallbackNotUsable:
		said = append(said, "as the providers are now: "+strings.Map(printable, verdict.ResolvedRefs.Message))
	}
	return said, nil
}
