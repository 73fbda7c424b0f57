// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// publication is what became of a document: the verdict in the terms of the
// condition Programmed, the router that the API server holds, and when to come
// again (0 for never).
type publication struct {
	verdict compile.Verdict
	// digest is that of the bytes that the API server holds; empty when not known.
	digest string
	// profiles are the IDs of the profiles in them.
	profiles map[string]bool
	// written says that they were written just now.
	written bool
	again   time.Duration
}

// holding is the publication of a document that the API server holds.
func holding(verdict compile.Verdict, data []byte, doc *router.Document) publication {
	p := publication{verdict: verdict, digest: router.Digest(data), profiles: make(map[string]bool, len(doc.Profiles))}
	for i := range doc.Profiles {
		p.profiles[doc.Profiles[i].ID] = true
	}
	return p
}

var pending = publication{verdict: compile.Verdict{Reason: v1alpha1.ReasonPending,
	Message: "ConfigMap " + router.ConfigMapName + " has not been published yet; it is tried again"}}

// publish makes the API server hold the document and the variables, or, in a
// namespace that is not served, takes back what it holds. Beside an error the
// publication is pending.
func (r *routerReconciler) publish(ctx context.Context, g *gathered, doc *router.Document) (publication, error) {
	if !g.served {
		return r.retire(ctx, g, doc)
	}
	data, err := router.Marshal(doc)
	switch {
	case router.IsTooLarge(err):
		return tooLarge(g), nil
	case err != nil:
		return pending, err
	}
	for _, held := range g.published() {
		if !isOurs(held) && !r.ledger.owns(held) {
			return publication{again: r.leftover, verdict: compile.Verdict{Reason: v1alpha1.ReasonConflict, Message: fmt.Sprintf(
				"ConfigMap %s exists without the label %s=%s and is not ours to write; remove it", held.Name, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)}}, nil
		}
	}
	return r.putAll(ctx, g, data, doc)
}

// tooLarge is the publication of a document that is not published: the previous
// one stays in force.
func tooLarge(g *gathered) publication {
	verdict := compile.Verdict{Reason: v1alpha1.ReasonRouterTooLarge, Message: fmt.Sprintf(
		"the router document of namespace %s would exceed %d KiB; the previous one stays", g.input.Namespace, router.MaxBytes>>10)}
	if g.router == nil || !isOurs(g.router) {
		return publication{verdict: verdict}
	}
	data := []byte(g.router.Data[router.Key])
	previous, err := router.Parse(data)
	if err != nil { // somebody edited it; what it was is not known
		return publication{verdict: verdict}
	}
	return holding(verdict, data, previous)
}

// putAll writes the variables before the router, so that whoever waits for the
// router finds all.
func (r *routerReconciler) putAll(ctx context.Context, g *gathered, data []byte, doc *router.Document) (publication, error) {
	before := everProgrammed(g.own) || r.ledger.knows(g.input.Namespace)
	document := wanted{namespace: g.input.Namespace, name: router.ConfigMapName,
		data: map[string]string{router.Key: string(data)}, held: g.router, before: before}
	for i, set := range compile.VariableSets() {
		if _, err := r.put(ctx, wanted{namespace: g.input.Namespace, name: set.Name, data: set.Data, held: g.variables[i], before: before}); err != nil {
			return r.terminating(err)
		}
	}
	live, err := r.put(ctx, document)
	if err != nil {
		return r.terminating(err)
	}
	if live[router.Key] != string(data) {
		return pending, fmt.Errorf("publishing ConfigMap %s/%s: the API server holds other bytes than were applied", document.namespace, document.name)
	}
	published := holding(compile.Verdict{OK: true, Reason: v1alpha1.ReasonProgrammed,
		Message: "ConfigMap " + router.ConfigMapName + " carries this generation"}, data, doc)
	published.written = !document.satisfied()
	return published, nil
}

// terminating forgives that nothing can be made in a namespace that is being deleted.
func (r *routerReconciler) terminating(err error) (publication, error) {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return publication{verdict: compile.Verdict{Reason: v1alpha1.ReasonPending, Message: "the namespace is being deleted"}}, nil
	}
	return pending, err
}

// everProgrammed reports whether a policy says that its router was published.
func everProgrammed(policies []v1alpha1.VisionPolicy) bool {
	for i := range policies {
		if policies[i].Status.Router != nil {
			return true
		}
	}
	return false
}

// wanted is one ConfigMap as it shall be.
type wanted struct {
	namespace, name string
	data            map[string]string
	// held is what is there now; nil for nothing.
	held *corev1.ConfigMap
	// before says that it has been published before.
	before bool
}

// satisfied reports whether what is there is what shall be. Keys that others
// added are theirs.
func (w *wanted) satisfied() bool {
	if w.held == nil || w.held.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
		return false
	}
	for key, value := range w.data {
		if live, ok := w.held.Data[key]; !ok || live != value {
			return false
		}
	}
	return true
}

// obstructed reports whether the API server would refuse to have what is there
// become what shall be, on account of what others made of it: it is immutable,
// one of our keys is among its binaryData, or keys of others leave no room.
func (w *wanted) obstructed() bool {
	if w.held == nil {
		return false
	}
	size := 0
	for key, value := range w.held.Data {
		if _, ours := w.data[key]; !ours {
			size += len(value)
		}
	}
	for key, value := range w.held.BinaryData {
		if _, ours := w.data[key]; ours {
			return true
		}
		size += len(value)
	}
	for _, value := range w.data {
		size += len(value)
	}
	return size > corev1.MaxSecretSize || w.held.Immutable != nil && *w.held.Immutable
}

// drift is what others did to a ConfigMap of ours.
type drift struct {
	action string // of the event; events of one action are counted as one
	words  string
}

// drift says what others did to what is there, if it differs from what shall be
// on their account and not because we have something new to say.
func (w *wanted) drift() *drift {
	switch {
	case w.held == nil && w.before:
		return &drift{"RestoreAfterDeletion", "had been deleted"}
	case w.held != nil && w.held.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy:
		return &drift{"RestoreLabel", "had lost its label"}
	case w.held != nil && !ownsData(w.held, w.data):
		return &drift{"RestoreAfterEdit", "had been edited"}
	}
	return nil
}

// put writes a ConfigMap unless it is as it shall be, and returns the data that
// the API server then holds.
func (r *routerReconciler) put(ctx context.Context, w wanted) (map[string]string, error) {
	if w.satisfied() {
		r.ledger.own(w.namespace, w.name, w.held.UID)
		return w.held.Data, nil
	}
	if w.obstructed() {
		if err := r.remove(ctx, w.held); err != nil {
			return nil, err
		}
	}
	object := applycorev1.ConfigMap(w.name, w.namespace).
		WithLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}).
		WithData(w.data)
	if err := r.client.Apply(ctx, object, client.FieldOwner(v1alpha1.ManagedBy), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("publishing ConfigMap %s/%s: %w", w.namespace, w.name, err)
	}
	log.FromContext(ctx).Info("Published", "configMap", w.name)
	if object.UID != nil {
		r.ledger.own(w.namespace, w.name, *object.UID)
	}
	if d := w.drift(); d != nil {
		r.events.Eventf(eventTarget(object), nil, corev1.EventTypeWarning, "Restored", d.action,
			"ConfigMap %s %s and was put back; change a VisionPolicy or a VisionProvider instead", w.name, d.words)
	}
	return object.Data, nil
}

// eventTarget is the object that an event is about.
func eventTarget(applied *applycorev1.ConfigMapApplyConfiguration) *corev1.ConfigMap {
	target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: *applied.Namespace, Name: *applied.Name}}
	if applied.UID != nil {
		target.UID = *applied.UID
	}
	return target
}

// retire takes back a namespace's router: nothing is granted any more while
// injected pods are left, and then the ConfigMaps go.
func (r *routerReconciler) retire(ctx context.Context, g *gathered, doc *router.Document) (publication, error) {
	published := g.published()
	if len(published) == 0 {
		return publication{}, nil
	}
	left, err := r.injectedPodsLeft(ctx, g.input.Namespace)
	if err != nil {
		return publication{}, err
	}
	if left {
		data, err := router.Marshal(doc)
		if err != nil {
			return publication{}, err
		}
		if made, err := r.putAll(ctx, g, data, doc); err != nil {
			return made, err
		}
		return publication{again: r.leftover}, nil
	}
	for _, held := range published {
		if err := r.remove(ctx, held); err != nil {
			return publication{}, err
		}
	}
	return publication{}, nil
}

// remove deletes the very object that was read.
func (r *routerReconciler) remove(ctx context.Context, held *corev1.ConfigMap) error {
	r.ledger.own(held.Namespace, held.Name, "")
	err := r.client.Delete(ctx, held, client.Preconditions{UID: &held.UID, ResourceVersion: &held.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing ConfigMap %s/%s: %w", held.Namespace, held.Name, err)
	}
	return nil
}

// unfinished selects pods that have not ended.
var unfinished = client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")}

// injectedPodsLeft reports whether a pod with the runtime has yet to end. Only
// the metadata of one such pod is read.
func (r *routerReconciler) injectedPodsLeft(ctx context.Context, namespace string) (bool, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := r.live.List(ctx, pods, client.InNamespace(namespace), client.Limit(1),
		client.MatchingLabels{v1alpha1.InjectedLabel: "true"}, unfinished)
	if err != nil {
		return false, fmt.Errorf("looking for injected pods of namespace %s: %w", namespace, err)
	}
	return len(pods.Items) > 0, nil
}
