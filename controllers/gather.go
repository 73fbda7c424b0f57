// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// gathered is all that one reconcile of a namespace's router reads.
type gathered struct {
	input compile.Input
	// own are the policies of the namespace itself, whose status is written.
	own []v1alpha1.VisionPolicy
	// served says that the namespace has a router: see compile.Served.
	served bool
	// terminating says that the namespace is being deleted.
	terminating bool
	// router is what the API server holds under its name, and variables what it
	// holds under those of compile.VariableSets, in their order; nil for nothing.
	router    *corev1.ConfigMap
	variables []*corev1.ConfigMap
}

// gather reads what a namespace's router depends on; nil when the cache knows no
// such namespace: it is gone, or it is new and will be told of.
func (r *routerReconciler) gather(ctx context.Context, namespace string) (*gathered, error) {
	ns, err := namespaceOf(ctx, r.client, namespace)
	if err != nil || ns == nil {
		return nil, err
	}
	input, err := r.scope.Gather(ctx, r.client, namespace, ns.Labels)
	if err != nil {
		return nil, err
	}
	g := &gathered{input: input, own: gather.Own(input), served: compile.Served(input), terminating: ns.DeletionTimestamp != nil}
	if g.router, err = r.held(ctx, namespace, router.ConfigMapName, g.served); err != nil {
		return nil, err
	}
	for _, set := range compile.VariableSets() {
		held, err := r.held(ctx, namespace, set.Name, g.served)
		if err != nil {
			return nil, err
		}
		g.variables = append(g.variables, held)
	}
	return g, nil
}

// published are all the ConfigMaps under our names that are there.
func (g *gathered) published() []*corev1.ConfigMap {
	return slices.DeleteFunc(append([]*corev1.ConfigMap{g.router}, g.variables...), func(c *corev1.ConfigMap) bool { return c == nil })
}

// namespaceOf is a namespace's metadata; nil when there is none.
func namespaceOf(ctx context.Context, r client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return ns, nil
}

// held returns the ConfigMap of a name, or nil. The cache knows those with our
// label; where it has none and one is wanted, the API server is asked, since
// one without our label may stand in its place.
func (r *routerReconciler) held(ctx context.Context, namespace, name string, wanted bool) (*corev1.ConfigMap, error) {
	readers := []client.Reader{r.client}
	if wanted {
		readers = append(readers, r.live)
	}
	for _, reader := range readers {
		var found corev1.ConfigMap
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)
		switch {
		case err == nil:
			return &found, nil
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
		}
	}
	return nil, nil
}

// isOurs reports whether a ConfigMap is one that we published: it carries our
// label, or we once applied it and somebody took the label off.
func isOurs(c *corev1.ConfigMap) bool {
	if c.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
		return true
	}
	return appliedFields(c) != nil
}

// ownsData reports whether what the keys hold was written by us last: whoever
// else writes a field takes it from its owner.
func ownsData(c *corev1.ConfigMap, data map[string]string) bool {
	owned := appliedFields(c)
	for key := range data {
		if _, ok := owned["f:"+key]; !ok {
			return false
		}
	}
	return true
}

// writtenByUs reports whether all that we write into a ConfigMap was written by
// us last.
func writtenByUs(c *corev1.ConfigMap) bool {
	data := compile.Env()
	if c.Name == router.ConfigMapName {
		data = map[string]string{router.Key: ""}
	}
	return c.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy && ownsData(c, data)
}

// appliedFields are the fields of data that we own, "f:" before each; nil when
// we never applied the object.
func appliedFields(c *corev1.ConfigMap) map[string]any {
	for _, entry := range c.ManagedFields {
		if entry.Manager != v1alpha1.ManagedBy || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Data map[string]any `json:"f:data"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return map[string]any{} // applied by us, in a form that we do not read
		}
		if fields.Data == nil {
			return map[string]any{}
		}
		return fields.Data
	}
	return nil
}
