// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// mapping finds the namespaces whose routers depend on an object. What an
// object said before an edit is mapped as well, by the handler.
type mapping struct {
	reader client.Reader // cached
	scope  gather.Scope
}

// ofPolicy wakes a policy's own namespace and those that it matches as a baseline.
func (m mapping) ofPolicy(ctx context.Context, object client.Object) []reconcile.Request {
	woken := map[string]bool{object.GetNamespace(): true}
	if p, ok := object.(*v1alpha1.VisionPolicy); ok {
		m.addMatched(ctx, p, woken)
	}
	return m.requests(woken)
}

// ofProvider wakes a provider's own namespace, whose policies may use every
// provider there, and those in which a policy or a baseline refers to it.
func (m mapping) ofProvider(ctx context.Context, object client.Object) []reconcile.Request {
	woken := map[string]bool{object.GetNamespace(): true}
	var policies v1alpha1.VisionPolicyList
	key := client.ObjectKeyFromObject(object).String()
	if err := m.reader.List(ctx, &policies, client.MatchingFields{providersIndex: key}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "finding the policies that refer to a provider", "provider", key)
	}
	for i := range policies.Items {
		p := &policies.Items[i]
		woken[p.Namespace] = true
		m.addMatched(ctx, p, woken)
	}
	return m.requests(woken)
}

// ofNamespace wakes the namespace.
func (m mapping) ofNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return m.requests(map[string]bool{object.GetName(): true})
}

// ofNamespaced wakes the namespace of an object.
func (m mapping) ofNamespaced(_ context.Context, object client.Object) []reconcile.Request {
	return m.requests(map[string]bool{object.GetNamespace(): true})
}

// addMatched adds the namespaces that a policy matches as a baseline; none if
// it is not one.
func (m mapping) addMatched(ctx context.Context, p *v1alpha1.VisionPolicy, to map[string]bool) {
	if p.Spec.NamespaceSelector == nil || p.Namespace != m.scope.OperatorNamespace {
		return
	}
	namespaces, err := listNamespaces(ctx, m.reader)
	if err != nil {
		log.FromContext(ctx).Error(err, "finding the namespaces that a baseline matches", "baseline", p.Name)
	}
	for i := range namespaces {
		ns := &namespaces[i]
		if compile.Matches(p, compile.Input{Namespace: ns.Name, NamespaceLabels: ns.Labels, OperatorNamespace: m.scope.OperatorNamespace}) {
			to[ns.Name] = true
		}
	}
}

// requests are one for each namespace that is looked at, by name.
func (m mapping) requests(namespaces map[string]bool) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(namespaces))
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		if m.scope.Holds(name) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return requests
}

// listNamespaces lists the metadata of all namespaces, which are the cache's own.
func listNamespaces(ctx context.Context, r client.Reader) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	return list.Items, nil
}

// providersIndex finds the policies that refer to a provider, by its "namespace/name".
const providersIndex = "spec.providers"

// indexProviders is the index: the providers that a policy names.
func indexProviders(object client.Object) []string {
	p, ok := object.(*v1alpha1.VisionPolicy)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(p.Spec.Providers))
	for _, ref := range p.Spec.Providers {
		names = append(names, gather.ProviderOf(p, ref).String())
	}
	return names
}

// providerNews passes what routers and policies' status depend on of a
// provider: its spec, and whether its key is there.
func providerNews() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, isOld := e.ObjectOld.(*v1alpha1.VisionProvider)
			new, isNew := e.ObjectNew.(*v1alpha1.VisionProvider)
			return isOld && isNew && keyState(old) != keyState(new)
		},
	})
}

// keyState is what a policy's status says of a provider's key.
func keyState(p *v1alpha1.VisionProvider) [3]string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionCredentialsResolved)
	if c == nil {
		return [3]string{}
	}
	return [3]string{string(c.Status), c.Reason, c.Message}
}

// namespaceNews passes what routers depend on of a namespace: its labels, and
// whether it is being deleted.
func namespaceNews() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// publishedNews passes events on the ConfigMaps that we publish, those that our
// own writes cause included: a reconcile that came before its predecessor's write
// had come back judged by what was there before, and may have left alone what it
// should not have. A change of metadata alone passes only where others wrote last.
func publishedNews() predicate.Predicate {
	return predicate.And[client.Object](predicate.NewPredicateFuncs(isPublished), predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, isOld := e.ObjectOld.(*corev1.ConfigMap)
			new, isNew := e.ObjectNew.(*corev1.ConfigMap)
			return isOld && isNew && (!maps.Equal(old.Data, new.Data) || !writtenByUs(new))
		},
	})
}

// statusNews passes the status of either kind that has changed: by us, which a
// reconcile may not have known of when it left the status alone, or by others.
func statusNews() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(statusOf(e.ObjectOld), statusOf(e.ObjectNew))
		},
	}
}

func statusOf(object client.Object) any {
	switch o := object.(type) {
	case *v1alpha1.VisionPolicy:
		return o.Status
	case *v1alpha1.VisionProvider:
		return o.Status
	}
	return nil
}

// itself wakes an object.
func itself(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}

// isPublished reports whether an object has the name of one that we publish.
func isPublished(object client.Object) bool {
	switch object.GetName() {
	case router.ConfigMapName, compile.EnvConfigMapName, compile.BaseURLsConfigMapName:
		return true
	}
	return false
}
