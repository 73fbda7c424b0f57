// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

const (
	namespaces = 200
	// label marks the namespaces that the baseline matches.
	label = "example.com/fleet"
	// shared is the provider, and baseline the policy, of the operator's namespace
	// that all namespaces have in common.
	shared, baseline = "shared", "floor"
)

// slots are the objects that a namespace gets one after the other: true stands
// for a policy. Ten of them make 2,000 objects: 6 policies and 4 providers each.
var slots = [...]bool{true, false, true, false, true, false, true, false, true, true}

// fleet is what the API server holds. It only ever grows.
type fleet struct {
	size     int // of objects in the namespaces
	policies []client.ObjectKey
}

var grown fleet

func namespaceName(i int) string { return fmt.Sprintf("team-%03d", i) }

// grow adds objects until there are as many as wanted, evenly over the namespaces.
func (f *fleet) grow(tb testing.TB, size int) {
	tb.Helper()
	if f.size == 0 {
		inParallel(tb, namespaces, func(ctx context.Context, i int) error {
			name := namespaceName(i)
			if err := suite.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}}}); err != nil {
				return err
			}
			return suite.admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "keys"}, Data: map[string][]byte{"api-key": []byte("k")}})
		})
		inParallel(tb, 1, func(ctx context.Context, _ int) error {
			if err := suite.admin.Create(ctx, sharedProvider()); err != nil {
				return err
			}
			return suite.admin.Create(ctx, baselinePolicy())
		})
	}
	from := f.size
	inParallel(tb, max(0, size-from), func(ctx context.Context, i int) error {
		return suite.admin.Create(ctx, objectAt(from+i))
	})
	for ; f.size < size; f.size++ {
		if o, ok := objectAt(f.size).(*v1alpha1.VisionPolicy); ok {
			f.policies = append(f.policies, client.ObjectKeyFromObject(o))
		}
	}
}

// objectAt is the k-th object of a fleet.
func objectAt(k int) client.Object {
	namespace, slot := namespaceName(k%namespaces), k/namespaces
	before := 0 // objects of its kind
	for _, policy := range slots[:slot] {
		if policy == slots[slot] {
			before++
		}
	}
	if slots[slot] {
		return fleetPolicy(namespace, before)
	}
	return fleetProvider(namespace, before)
}

// fleetPolicy is the n-th policy of a namespace. It serves pods of its own, by
// the providers that came before it and the shared one.
func fleetPolicy(namespace string, n int) *v1alpha1.VisionPolicy {
	p := &v1alpha1.VisionPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("agents-%d", n)},
		Spec: v1alpha1.VisionPolicySpec{
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("agent-%d", n)}},
			Injection:   &v1alpha1.Injection{ObservationPrompt: "Describe what matters for the task."},
		},
	}
	for i := range min(n, 4) {
		p.Spec.Providers = append(p.Spec.Providers, v1alpha1.ProviderReference{Name: providerName(i)})
	}
	p.Spec.Providers = append(p.Spec.Providers, v1alpha1.ProviderReference{Name: shared, Namespace: operatorNamespace})
	return p
}

func providerName(n int) string { return fmt.Sprintf("models-%d", n) }

// fleetProvider is the n-th provider of a namespace; every other one has a key.
func fleetProvider(namespace string, n int) *v1alpha1.VisionProvider {
	p := &v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: providerName(n)},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://models.example.com/v1"}},
			Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
			Models:      []v1alpha1.Model{{Name: "vision", ImageInput: new(true)}, {Name: "text", ImageInput: new(false)}},
		},
	}
	if n%2 == 0 {
		p.Spec.Credentials = v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "keys", Key: "api-key"}}
	}
	return p
}

func sharedProvider() *v1alpha1.VisionProvider {
	p := fleetProvider(operatorNamespace, 1)
	from := v1alpha1.NamespacesFromAll
	p.Name, p.Spec.AllowedNamespaces = shared, &v1alpha1.AllowedNamespaces{From: &from}
	return p
}

func baselinePolicy() *v1alpha1.VisionPolicy {
	return &v1alpha1.VisionPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: baseline},
		Spec: v1alpha1.VisionPolicySpec{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}},
			Providers:         []v1alpha1.ProviderReference{{Name: shared}},
		},
	}
}

// ask gives a policy another observation prompt, and a provider another
// endpoint: both show in the routers.
func ask(ctx context.Context, policy client.ObjectKey, prompt string) error {
	return edit(ctx, &v1alpha1.VisionPolicy{}, policy, fmt.Appendf(nil, `{"spec":{"injection":{"observationPrompt":%q}}}`, prompt))
}

func move(ctx context.Context, provider client.ObjectKey, url string) error {
	return edit(ctx, &v1alpha1.VisionProvider{}, provider, fmt.Appendf(nil, `{"spec":{"endpoints":[{"name":"main","url":%q}]}}`, url))
}

func edit(ctx context.Context, o client.Object, key client.ObjectKey, patch []byte) error {
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return suite.admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}

// expected are the routers that namespaces should have: one compile each of the
// objects that the API server lists.
func (f *fleet) expected(tb testing.TB) map[string]string {
	tb.Helper()
	var policies v1alpha1.VisionPolicyList
	var providers v1alpha1.VisionProviderList
	for _, list := range []client.ObjectList{&policies, &providers} {
		if err := suite.admin.List(tb.Context(), list); err != nil {
			tb.Fatal(err)
		}
	}
	routers := make(map[string]string, namespaces)
	for i := range namespaces {
		in := compile.Input{Namespace: namespaceName(i), OperatorNamespace: operatorNamespace,
			NamespaceLabels: map[string]string{label: "true", corev1.LabelMetadataName: namespaceName(i)}}
		for _, p := range policies.Items {
			if p.Namespace == in.Namespace || p.Namespace == operatorNamespace {
				in.Policies = append(in.Policies, p)
			}
		}
		for _, p := range providers.Items {
			if p.Namespace == in.Namespace || p.Namespace == operatorNamespace {
				in.Providers = append(in.Providers, p)
			}
		}
		data, err := router.Marshal(compile.Compile(in).Document)
		if err != nil {
			tb.Fatal(err)
		}
		routers[in.Namespace] = string(data)
	}
	return routers
}

// unpublish takes all that the operator wrote away, as the operator: nobody else may.
func (f *fleet) unpublish(tb testing.TB) {
	tb.Helper()
	inParallel(tb, namespaces, func(ctx context.Context, i int) error {
		for _, name := range []string{router.ConfigMapName, compile.EnvConfigMapName, compile.BaseURLsConfigMapName} {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName(i), Name: name}}
			if err := suite.operator.Delete(ctx, o); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
	inParallel(tb, f.size, func(ctx context.Context, k int) error {
		return suite.operator.Status().Patch(ctx, objectAt(k), client.RawPatch(types.MergePatchType, []byte(`{"status":null}`)))
	})
}

// spoil makes every router wrong, as the operator.
func spoil(tb testing.TB) {
	tb.Helper()
	inParallel(tb, namespaces, func(ctx context.Context, i int) error {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName(i), Name: router.ConfigMapName}}
		return suite.operator.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"data":{"router.json":"{}"}}`)))
	})
}

// inParallel does n things, eight at a time.
func inParallel(tb testing.TB, n int, do func(ctx context.Context, i int) error) {
	tb.Helper()
	var group sync.WaitGroup
	turns, errs := make(chan int), make(chan error, n)
	for range 8 {
		group.Go(func() {
			for i := range turns {
				if err := do(tb.Context(), i); err != nil {
					errs <- err
				}
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	group.Wait()
	close(errs)
	for err := range errs {
		tb.Fatal(err)
	}
}
