// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// evictor evicts pods of the reason RuntimeMissing, so that their owners make
// them anew: through pods/eviction, which respects PodDisruptionBudgets; after a
// dry run that shows that the new pod would get the runtime; at most
// evictionsPerMinute; one pod of a template, and others of it that are as old
// only once a pod of it was made with the runtime since. A pod that was made
// since then is left as it is for ever.
type evictor struct {
	live   client.Reader
	client client.Client
	core   rest.Interface // of group core, version v1
	events events.EventRecorder
	log    logr.Logger
	trials trials
}

// evict tries candidates until the minute's number is reached.
func (e *evictor) evict(ctx context.Context, candidates []candidate) {
	e.trials.keep(candidates)
	for _, c := range e.trials.order(candidates, time.Now()) {
		proven, err := e.proven(ctx, c)
		if err != nil {
			e.log.Error(err, "Evicting a pod without the vision runtime", "namespace", c.namespace, "pod", c.name)
			return
		}
		if !proven {
			continue
		}
		if !e.trials.take(c.template, time.Now()) || ctx.Err() != nil {
			return
		}
		outcome, err := e.try(ctx, c)
		evictions.WithLabelValues(outcome).Inc()
		if outcome != outcomeEvicted && outcome != outcomeGone {
			e.trials.later(c.template, time.Now())
		}
		log := e.log.WithValues("namespace", c.namespace, "pod", c.name, "outcome", outcome)
		if err != nil {
			log.Error(err, "A pod without the vision runtime was not evicted")
		} else {
			log.Info("Tried to evict a pod without the vision runtime")
		}
	}
}

// proven reports whether a pod of a template may be evicted after another one
// was: a pod of it was made since, and has the runtime.
func (e *evictor) proven(ctx context.Context, c candidate) (bool, error) {
	since := e.trials.proof(c.template)
	if since.IsZero() {
		return true, nil
	}
	made := &metav1.PartialObjectMetadataList{}
	made.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	labels := client.MatchingLabels{v1alpha1.InjectedLabel: "true"}
	if c.label != "" {
		labels[c.label] = c.template.hash
	}
	if err := e.live.List(ctx, made, client.InNamespace(c.namespace), labels); err != nil {
		return false, fmt.Errorf("listing the pods that were made since: %w", err)
	}
	return slices.ContainsFunc(made.Items, func(pod metav1.PartialObjectMetadata) bool {
		owner := metav1.GetControllerOf(&pod)
		return owner != nil && owner.UID == c.template.owner && !pod.CreationTimestamp.Time.Before(since)
	}), nil
}

// try evicts one pod, if the pod that would be made in its place gets the runtime.
func (e *evictor) try(ctx context.Context, c candidate) (outcome string, err error) {
	pod, err := e.fresh(ctx, c)
	if err != nil {
		return outcomeFailed, err
	}
	if pod == nil {
		return outcomeGone, nil
	}
	made := standIn(pod)
	if err := e.client.Create(ctx, made, client.DryRunAll); err != nil {
		return refusal(err), fmt.Errorf("trying what would be made in its place: %w", err)
	}
	if !slices.ContainsFunc(made.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == inject.ContainerName }) {
		return outcomeNoEffect, nil
	}
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	}
	// A budget that is not up to date yet answers 429 with Retry-After, which a
	// client would obey here, with all other pods waiting behind this one.
	err = e.core.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").Body(eviction).MaxRetries(0).Do(ctx).Error()
	switch {
	case apierrors.IsTooManyRequests(err):
		return outcomeBlocked, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return outcomeGone, nil
	case err != nil:
		return refusal(err), fmt.Errorf("evicting it: %w", err)
	}
	// The time is the API server's own, as that of the pods that it will create.
	e.trials.evicted(c.template, made.CreationTimestamp.Time)
	e.events.Eventf(pod, nil, corev1.EventTypeNormal, "Evicted", "Evicting", "%s",
		"the pod was evicted so that it is made again, with the vision runtime")
	return outcomeEvicted, nil
}

// fresh is a candidate as it is now; nil when it is gone, ends, or has the runtime.
func (e *evictor) fresh(ctx context.Context, c candidate) (*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := e.live.List(ctx, list, client.InNamespace(c.namespace), client.MatchingFields{"metadata.name": c.name}); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.UID == c.uid && watched(pod) && pod.Labels[v1alpha1.InjectedLabel] == "" {
			return pod, nil
		}
	}
	return nil, nil
}

// refusal tells an answer that refuses from none.
func refusal(err error) string {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return outcomeRefused
	}
	return outcomeFailed
}
