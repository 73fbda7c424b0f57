// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// everything is all that a tenant may do with ConfigMaps under RBAC.
var everything = verbs("", "configmaps", "*")

// deed is something that somebody tries with ConfigMaps of a namespace in which
// ours is "vision-router" and the tenant's own is "own".
type deed func(t *testing.T, c client.Client, namespace string) error

func creating(name string, ours bool) deed {
	return func(t *testing.T, c client.Client, namespace string) error {
		return c.Create(t.Context(), configMap(namespace, name, ours))
	}
}

func patching(name string, kind types.PatchType, patch string) deed {
	return func(t *testing.T, c client.Client, namespace string) error {
		return c.Patch(t.Context(), configMap(namespace, name, false), client.RawPatch(kind, []byte(patch)))
	}
}

func deleting(name string) deed {
	return func(t *testing.T, c client.Client, namespace string) error {
		return c.Delete(t.Context(), configMap(namespace, name, false))
	}
}

func deletingAll(t *testing.T, c client.Client, namespace string) error {
	return c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(namespace))
}

func applying(name string) deed {
	return func(t *testing.T, c client.Client, namespace string) error {
		return c.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
			client.RawPatch(types.ApplyYAMLPatchType, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"key":"mine"}}`, name)),
			client.FieldOwner("tenant"), client.ForceOwnership)
	}
}

const (
	takesTheLabelOff = `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`
	putsTheLabelOn   = `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"vision-operator"}}}`
)

func TestATenantMayNotTouchWhatTheOperatorWrites(t *testing.T) {
	tests := map[string]struct {
		deed   deed
		denied bool
	}{
		"creates the variables before the operator does":  {creating(compile.EnvConfigMapName, false), true},
		"creates them with our label":                     {creating(compile.EnvConfigMapName, true), true},
		"applies them":                                    {applying(compile.EnvConfigMapName), true},
		"creates another with our label":                  {creating("another", true), true},
		"creates another":                                 {creating("another", false), false},
		"edits the router":                                {patching(router.ConfigMapName, types.MergePatchType, `{"data":{"router.json":"{}"}}`), true},
		"applies the router by force":                     {applying(router.ConfigMapName), true},
		"annotates the router":                            {patching(router.ConfigMapName, types.MergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`), true},
		"gives the router a finalizer":                    {patching(router.ConfigMapName, types.MergePatchType, `{"metadata":{"finalizers":["example.com/mine"]}}`), true},
		"takes the label off the router":                  {patching(router.ConfigMapName, types.MergePatchType, takesTheLabelOff), true},
		"takes the label off another object of ours":      {patching("ours", types.MergePatchType, takesTheLabelOff), true},
		"edits another object of ours":                    {patching("ours", types.StrategicMergePatchType, `{"data":{"key":"mine"}}`), true},
		"puts the label on an own one":                    {patching("own", types.MergePatchType, putsTheLabelOn), true},
		"edits an own one":                                {patching("own", types.MergePatchType, `{"data":{"key":"mine"}}`), false},
		"labels an own one as managed by somebody else":   {patching("own", types.MergePatchType, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"}}}`), false},
		"deletes the router":                              {deleting(router.ConfigMapName), true},
		"deletes another object of ours":                  {deleting("ours"), true},
		"deletes an own one":                              {deleting("own"), false},
		"deletes all ConfigMaps with one request":         {deletingAll, true},
		"pre-creates the router by another name's prefix": {creating(router.ConfigMapName+"-2", false), false},
	}
	operator := serviceAccount(t, operatorNamespace, v1alpha1.ManagedBy)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, namespace := tenant(t, everything)
			for _, object := range []*corev1.ConfigMap{configMap(namespace, router.ConfigMapName, true), configMap(namespace, "ours", true)} {
				if err := operator.Create(t.Context(), object); err != nil {
					t.Fatalf("the operator creates %s: %v", object.Name, err)
				}
			}
			create(t, configMap(namespace, "own", false))
			err := test.deed(t, c, namespace)
			if !test.denied {
				if err != nil {
					t.Errorf("got %v, want it to be let pass", err)
				}
				return
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "change a VisionPolicy or a VisionProvider instead") {
				t.Errorf("got %v, want a refusal that says what to change instead", err)
			}
			if err := test.deed(t, admin, namespace); !apierrors.IsForbidden(err) {
				t.Errorf("a cluster administrator: got %v, want the same refusal", err)
			}
			kept := &corev1.ConfigMap{}
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: router.ConfigMapName}, kept); err != nil || kept.Data["key"] != "value" {
				t.Errorf("the router is %v (%v), want it as the operator wrote it", kept.Data, err)
			}
		})
	}
}

func TestTheRefusalNamesTheConfigMapAndItsNamespace(t *testing.T) {
	c, namespace := tenant(t, everything)
	err := creating(router.ConfigMapName, false)(t, c, namespace)
	for _, want := range []string{"ConfigMap vision-router of namespace " + namespace, "vision-operator-router-guard"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestAServiceAccountOfTheOperatorsNameElsewhereIsNotTheOperator(t *testing.T) {
	_, namespace := tenant(t)
	for _, name := range []string{v1alpha1.ManagedBy, "namespace-controller"} {
		if _, err := user("system:serviceaccount:"+namespace+":"+name, namespace, everything); err != nil {
			t.Fatal(err)
		}
		if err := creating(router.ConfigMapName, true)(t, serviceAccount(t, namespace, name), namespace); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}

func TestTheOperatorKeepsAndRemovesItsConfigMaps(t *testing.T) {
	_, namespace := tenant(t)
	operator := serviceAccount(t, operatorNamespace, v1alpha1.ManagedBy)
	apply := func(t *testing.T, c client.Client, namespace string) error {
		return c.Patch(t.Context(), configMap(namespace, router.ConfigMapName, false), client.RawPatch(types.ApplyYAMLPatchType,
			[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"vision-router","labels":{"app.kubernetes.io/managed-by":"vision-operator"}}}`)),
			client.FieldOwner(v1alpha1.ManagedBy), client.ForceOwnership)
	}
	edit := patching(router.ConfigMapName, types.MergePatchType, `{"data":{"router.json":"{}"}}`)
	for i, step := range []deed{apply, edit, deleting(router.ConfigMapName)} {
		if err := step(t, operator, namespace); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

// One of our names that stood there before the policies must not stay for ever:
// the operator does not adopt it and asks for its removal.
func TestAForeignConfigMapOfOurNameMayBeRemovedButNotEdited(t *testing.T) {
	c, err := user("early-tenant", foreignNamespace, everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []deed{
		patching(router.ConfigMapName, types.MergePatchType, `{"data":{"router.json":"{}"}}`),
		patching(router.ConfigMapName, types.MergePatchType, putsTheLabelOn),
	} {
		if err := d(t, c, foreignNamespace); !apierrors.IsForbidden(err) {
			t.Errorf("editing: got %v, want a refusal", err)
		}
	}
	if err := c.Delete(t.Context(), configMap(foreignNamespace, router.ConfigMapName, false), client.DryRunAll); err != nil {
		t.Errorf("deleting: %v", err)
	}
}

func TestANamespaceThatIsDeletedTakesTheRouterWithIt(t *testing.T) {
	for name, empty := range map[string]deed{
		"by a collection": deletingAll,
		"one by one":      deleting(router.ConfigMapName),
	} {
		t.Run(name, func(t *testing.T) {
			_, namespace := tenant(t)
			operator := serviceAccount(t, operatorNamespace, v1alpha1.ManagedBy)
			if err := operator.Create(t.Context(), configMap(namespace, router.ConfigMapName, true)); err != nil {
				t.Fatal(err)
			}
			if err := admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
				t.Fatal(err)
			}
			if err := empty(t, serviceAccount(t, metav1.NamespaceSystem, "namespace-controller"), namespace); err != nil {
				t.Fatalf("the namespace controller: %v", err)
			}
			finalize(t, namespace)
			if err := admin.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
				t.Errorf("the namespace is still there (%v)", err)
			}
		})
	}
}

// finalize ends a namespace that is empty, as the namespace controller does last.
func finalize(t *testing.T, name string) {
	t.Helper()
	var ns corev1.Namespace
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, &ns); err != nil {
		t.Fatal(err)
	}
	ns.Spec.Finalizers = nil
	if _, err := kubernetes.NewForConfigOrDie(cluster.Config).CoreV1().Namespaces().Finalize(t.Context(), &ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestTheGarbageCollectorMayRemoveTheRouter(t *testing.T) {
	_, namespace := tenant(t)
	operator := serviceAccount(t, operatorNamespace, v1alpha1.ManagedBy)
	if err := operator.Create(t.Context(), configMap(namespace, router.ConfigMapName, true)); err != nil {
		t.Fatal(err)
	}
	if err := deleting(router.ConfigMapName)(t, serviceAccount(t, metav1.NamespaceSystem, "generic-garbage-collector"), namespace); err != nil {
		t.Error(err)
	}
}
