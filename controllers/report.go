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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// soon is the wait after somebody, often we ourselves a moment ago, changed an
// object that the cache still shows as it was.
const soon = 100 * time.Millisecond

// report writes the status of every policy whose status is not what it should
// be. Some may be stale: they have changed since they were read.
func (r *routerReconciler) report(ctx context.Context, policies []v1alpha1.VisionPolicy, verdicts map[string]compile.PolicyVerdict, published publication) (stale bool, err error) {
	now := metav1.Now()
	var errs []error
	for i := range policies {
		p := &policies[i]
		status := policyStatus(p, verdicts[p.Name], published, now)
		if equality.Semantic.DeepEqual(p.Status, status) {
			continue
		}
		changed := p.DeepCopy()
		changed.Status = status
		old, err := patchStatus(ctx, r.client, p, changed)
		stale, errs = stale || old, append(errs, err)
	}
	return stale, errors.Join(errs...)
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
func policyStatus(p *v1alpha1.VisionPolicy, v compile.PolicyVerdict, published publication, now metav1.Time) v1alpha1.VisionPolicyStatus {
	accepted := verdictCondition(v1alpha1.ConditionAccepted, v.Accepted)
	refs := verdictCondition(v1alpha1.ConditionResolvedRefs, v.ResolvedRefs)
	if !v.Accepted.OK {
		refs = unknown(v1alpha1.ConditionResolvedRefs, v.ResolvedRefs.Reason, v.ResolvedRefs.Message)
	}
	programmed := programmedCondition(v, published)
	conditions := []metav1.Condition{accepted, refs, programmed, ready(readyMessage(v), accepted, refs, programmed)}
	if v.Overridden.OK {
		conditions = append(conditions, verdictCondition(v1alpha1.ConditionOverridden, v.Overridden))
	}
	return v1alpha1.VisionPolicyStatus{
		Conditions:   stamp(p.Status.Conditions, p.Generation, now, conditions...),
		DefaultRoute: v.DefaultRoute,
		Candidates:   v.Candidates,
		Router:       routerStatus(p.Status.Router, v, published),
		Pods:         p.Status.Pods,
	}
}

// programmedCondition says whether the published router carries a policy.
func programmedCondition(v compile.PolicyVerdict, published publication) metav1.Condition {
	verdict := published.verdict
	switch {
	case !v.Accepted.OK:
		verdict = compile.Verdict{Reason: v1alpha1.ReasonNotAccepted, Message: "the policy is not accepted, so no router carries it"}
	case v.Profile == "":
		verdict = compile.Verdict{Reason: v1alpha1.ReasonPartiallyProgrammed, Message: "no router carries the policy: " + notObeyed(v.Unprogrammed)}
	case verdict.OK && len(v.Unprogrammed) > 0:
		verdict.Reason = v1alpha1.ReasonPartiallyProgrammed
		verdict.Message += "; " + notObeyed(v.Unprogrammed)
	}
	return verdictCondition(v1alpha1.ConditionProgrammed, verdict)
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
