// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// Decider decides on pods as the pod webhook does, also for who has a pod and no
// admission request. It writes nothing, so that a dry run is a run. A Decider must
// not be copied.
type Decider struct {
	// Cached is asked first, and Live where what is cached does not serve the pod:
	// its policy may have been applied a moment ago, in the same file.
	Cached, Live client.Reader
	Scope        gather.Scope
	Settings     inject.Settings
	// Keys look at the keys that a pod would mount; nil looks at none.
	Keys *Keys

	memo memo
}

// Decide is what is to be done with a pod that is created in a namespace now. An
// error says what could not be read.
func (d *Decider) Decide(ctx context.Context, pod *corev1.Pod, namespace string) (inject.Plan, error) {
	in := inject.Input{Pod: pod, Namespace: namespace, Settings: d.Settings}
	plan, err := d.decideFrom(ctx, d.Cached, &in)
	if stale(err) || err == nil && (plan.Incomplete || contradicts(plan)) {
		plan, err = d.decideFrom(ctx, d.Live, &in)
	}
	if err != nil || d.Keys == nil || len(plan.Keys) == 0 {
		return plan, err
	}
	if in.MissingKeys, err = d.Keys.missing(ctx, plan.Keys); err != nil || len(in.MissingKeys) == 0 {
		return plan, err
	}
	return inject.Decide(in), nil
}

// stale reports whether a cache could not answer, or knows less than the API
// server, which asks about a pod in a namespace that must be there.
func stale(err error) bool {
	_, notStarted := errors.AsType[*cache.ErrCacheNotStarted](err)
	return notStarted || apierrors.IsNotFound(err)
}

// contradicts reports whether a plan says that nobody asked for the runtime: the
// API server, which asks only about pods that did, knows a label of the namespace
// that the cache does not know yet.
func contradicts(plan inject.Plan) bool {
	last := len(plan.Steps) - 1
	return last >= 0 && plan.Steps[last].Outcome == inject.Ended && plan.Steps[last].Notes[0].Reason == inject.ReasonNotOptedIn
}

// decideFrom reads all that the decision depends on, and decides.
func (d *Decider) decideFrom(ctx context.Context, r client.Reader, in *inject.Input) (inject.Plan, error) {
	labels, err := namespaceLabels(ctx, r, in.Namespace)
	if err != nil {
		return inject.Plan{}, err
	}
	objects, err := d.Scope.Gather(ctx, r, in.Namespace, labels)
	if err != nil {
		return inject.Plan{}, err
	}
	var ranges corev1.LimitRangeList
	if err := r.List(ctx, &ranges, client.InNamespace(in.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return inject.Plan{}, fmt.Errorf("listing LimitRanges of namespace %s: %w", in.Namespace, err)
	}
	in.NamespaceLabels, in.LimitRanges = labels, ranges.Items
	made := d.memo.compile(objects)
	in.Policies, in.Compiled = made.servers, made.output
	return inject.Decide(*in), nil
}

// informers are what the cache must hold before a decision is asked for.
func informers() map[string]client.Object {
	return map[string]client.Object{
		"namespaces": namespaceMetadata(), "limitranges": &corev1.LimitRange{},
		"visionpolicies": &v1alpha1.VisionPolicy{}, "visionproviders": &v1alpha1.VisionProvider{},
	}
}
