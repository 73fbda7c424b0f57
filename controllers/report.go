// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// soon is the wait after somebody, often we ourselves a moment ago, changed an
// object that the cache still shows as it was.
const soon = 100 * time.Millisecond

// findings are what a policy's status tells.
type findings struct {
	verdict   compile.PolicyVerdict
	published publication
	// census is of a baseline alone.
	census *census
	// key is why the key of the default route's provider cannot be used; empty
	// when it can, or when that is not known.
	key string
	// pods is nil when they have not been counted yet.
	pods *v1alpha1.PodCounts
}

// report writes the status of every policy whose status is not what it should
// be, tells its transitions as Events, and says when there may be more to tell.
func (r *routerReconciler) report(ctx context.Context, g *gathered, out compile.Output, published publication) (again time.Duration, err error) {
	now := metav1.Now()
	var errs []error
	for i := range g.own {
		p := &g.own[i]
		f := findings{verdict: out.Policies[p.Name], published: published}
		wait, err := r.find(ctx, g, p, out.Document, &f, now.Time)
		again, errs = earliest(again, wait), append(errs, err)
		if err != nil {
			continue
		}
		status := policyStatus(p, f, now)
		if equality.Semantic.DeepEqual(p.Status, status) {
			continue
		}
		changed := p.DeepCopy()
		changed.Status = status
		stale, err := patchStatus(ctx, r.client, p, changed)
		errs = append(errs, err)
		switch {
		case stale:
			again = earliest(again, soon)
		case err == nil && !g.terminating: // there no event can be made
			announce(r.events, changed, policyActions, p.Status.Conditions, status.Conditions)
		}
	}
	return again, errors.Join(errs...)
}

// find adds what only others know of a policy: the namespaces that a baseline
// serves, its pods, its default provider's key.
func (r *routerReconciler) find(ctx context.Context, g *gathered, p *v1alpha1.VisionPolicy, doc *router.Document, f *findings, now time.Time) (wait time.Duration, err error) {
	if f.verdict.Baseline {
		if f.verdict.Accepted.OK {
			c, err := r.census(ctx, p)
			if err != nil {
				return 0, err
			}
			f.census = &c
		}
		if p.Namespace != r.scope.OperatorNamespace {
			return 0, nil // it is no baseline there, and another may have its name
		}
		sum, known, wait := r.tally.total(compile.ProfileOf(p), now)
		if known {
			f.pods = &sum
		}
		return wait, nil
	}
	counts, wait := r.tally.of(p.Namespace, now)
	if counts != nil {
		c := counts[compile.ProfileOf(p)]
		f.pods = &c
	}
	f.key, err = r.keyTrouble(ctx, g, f.verdict.DefaultProvider, doc)
	return wait, err
}

// keyTrouble says why a provider's key cannot be used in a namespace: what the
// provider's status says of its own key, or that the consumer's Secret is missing.
func (r *routerReconciler) keyTrouble(ctx context.Context, g *gathered, provider string, doc *router.Document) (string, error) {
	for i := range g.input.Providers {
		p := &g.input.Providers[i]
		if p.Namespace+"/"+p.Name != provider {
			continue
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionCredentialsResolved); c != nil && c.Status == metav1.ConditionFalse {
			return fmt.Sprintf("the key of VisionProvider %s, which the default route needs, cannot be used: %s", provider, c.Message), nil
		}
		if ref := p.Spec.Credentials.SecretRef; ref == nil || ref.From == nil || *ref.From != v1alpha1.SecretFromConsumer {
			return "", nil
		}
		secret := client.ObjectKey{Namespace: doc.Namespace, Name: p.Spec.Credentials.SecretRef.Name}
		v, err := r.secrets.of(ctx, secret)
		if err != nil || !v.missing() {
			return "", err
		}
		return fmt.Sprintf("VisionProvider %s, which the default route needs, takes its key from Secret %q of namespace %q, which does not exist",
			provider, secret.Name, secret.Namespace), nil
	}
	return "", nil
}

// patchStatus writes one status, unless the object has changed since it was
// read (then it is stale, which is no error) or is gone.
func patchStatus(ctx context.Context, c client.Client, old, changed client.Object) (stale bool, err error) {
	patch := client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})
	err = c.Status().Patch(ctx, changed, patch, client.FieldOwner(v1alpha1.ManagedBy))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		return true, nil
	}
	return false, fmt.Errorf("reporting on %s/%s: %w", old.GetNamespace(), old.GetName(), err)
}

// policyStatus is what a policy's status should say.
func policyStatus(p *v1alpha1.VisionPolicy, f findings, now metav1.Time) v1alpha1.VisionPolicyStatus {
	v := f.verdict
	accepted := verdictCondition(v1alpha1.ConditionAccepted, v.Accepted)
	refs := verdictCondition(v1alpha1.ConditionResolvedRefs, v.ResolvedRefs)
	if !v.Accepted.OK {
		refs = unknown(v1alpha1.ConditionResolvedRefs, v.ResolvedRefs.Reason, v.ResolvedRefs.Message)
	}
	carried := verdictCondition(v1alpha1.ConditionProgrammed, programmed(v, f.published))
	status := v1alpha1.VisionPolicyStatus{
		DefaultRoute: v.DefaultRoute,
		Candidates:   v.Candidates,
		Router:       routerStatus(p.Status.Router, v, f.published),
		Pods:         podsStatus(p.Status.Pods, f.pods),
	}
	if f.census != nil {
		refs, carried = baselineConditions(p, v, *f.census)
		if status.DefaultRoute = f.census.route; f.census.unheard > 0 {
			status.DefaultRoute = p.Status.DefaultRoute
		}
	}
	sum := ready(readyMessage(v), accepted, refs, carried)
	if sum.Status == metav1.ConditionTrue && f.key != "" {
		sum.Status, sum.Reason, sum.Message = metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved, f.key
	}
	conditions := []metav1.Condition{accepted, refs, carried, sum}
	if v.Overridden.OK {
		conditions = append(conditions, verdictCondition(v1alpha1.ConditionOverridden, v.Overridden))
	}
	status.Conditions = stamp(p.Status.Conditions, p.Generation, now, conditions...)
	return status
}

// podsStatus leaves out the count of a policy that never had a pod.
func podsStatus(old, counted *v1alpha1.PodCounts) *v1alpha1.PodCounts {
	if counted == nil || old == nil && *counted == (v1alpha1.PodCounts{}) {
		return old
	}
	return counted
}

// programmed is the verdict on whether the published router carries a policy.
func programmed(v compile.PolicyVerdict, published publication) compile.Verdict {
	switch {
	case v.Restrains:
		return compile.Verdict{Reason: v1alpha1.ReasonNotAccepted, Message: "the baseline is not accepted, so routers carry of it only what it restricts"}
	case !v.Accepted.OK:
		return compile.Verdict{Reason: v1alpha1.ReasonNotAccepted, Message: "the policy is not accepted, so no router carries it"}
	case published.verdict.OK:
		return partly(published.verdict, v)
	}
	return published.verdict
}

// partly adds to a verdict that is OK what this build does not obey.
func partly(verdict compile.Verdict, v compile.PolicyVerdict) compile.Verdict {
	if len(v.Unprogrammed) > 0 {
		verdict.Reason = v1alpha1.ReasonPartiallyProgrammed
		verdict.Message += "; " + notObeyed(v.Unprogrammed)
	}
	return verdict
}

func readyMessage(v compile.PolicyVerdict) string {
	message := "the policy is in force"
	if v.Overridden.OK {
		message = "the policy can serve pods; " + v.Overridden.Message
	}
	if len(v.Unprogrammed) > 0 {
		message += "; " + notObeyed(v.Unprogrammed)
	}
	return message
}

func notObeyed(fields []string) string {
	return "this build does not obey " + strings.Join(fields, ", ")
}

// routerStatus names the router that the API server holds, if it carries the
// policy: that may be an older one than this generation's, while Programmed is False.
func routerStatus(old *v1alpha1.RouterStatus, v compile.PolicyVerdict, published publication) *v1alpha1.RouterStatus {
	switch {
	case published.profiles[v.Profile]:
		return &v1alpha1.RouterStatus{ConfigMap: router.ConfigMapName, Digest: published.digest}
	case v.Profile != "" && published.verdict.Reason == v1alpha1.ReasonPending:
		return old // not known to have changed
	}
	return nil
}
