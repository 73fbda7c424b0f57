// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

func TestAKeyThatIsMissingIsTreatedAsThePolicySays(t *testing.T) {
	for mode, want := range map[v1alpha1.AdmissionMode]struct {
		denied  bool
		warning string
	}{
		v1alpha1.AdmissionEnforce: {denied: true},
		v1alpha1.AdmissionWarn:    {warning: "SecretKeyEmpty: provider"},
		v1alpha1.AdmissionOff:     {},
	} {
		t.Run(string(mode), func(t *testing.T) {
			u := newUser(t)
			u.create(provider(), policy(mode))
			empty := keySecret("")
			empty.Namespace = u.namespace
			if err := u.Update(t.Context(), empty); err != nil {
				t.Fatal(err)
			}
			pod := agent(optIn)
			pod.Namespace = u.namespace
			err := u.Create(t.Context(), pod)
			if denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "SecretKeyEmpty"); denied != want.denied || !want.denied && err != nil {
				t.Errorf("got error %v, want a refusal: %v", err, want.denied)
			}
			if !want.denied && runtimeOf(pod) == nil {
				t.Error("the pod was not injected")
			}
			if w := u.warned.all(); want.warning == "" && w != "" || !strings.Contains(w, want.warning) {
				t.Errorf("got warnings %q, want %q", w, want.warning)
			}
		})
	}
}

func TestARefusalNamesEveryProblemAtOnce(t *testing.T) {
	u := newUser(t)
	p := policy(v1alpha1.AdmissionEnforce)
	p.Spec.Runtime = &v1alpha1.Runtime{Workspaces: []string{"/elsewhere"}}
	u.create(provider(), p)
	if err := u.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "openai-key", Namespace: u.namespace}}); err != nil {
		t.Fatal(err)
	}
	pod := agent(optIn)
	pod.Namespace, pod.Spec.HostNetwork = u.namespace, true
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: inject.Port}}
	err := u.Create(t.Context(), pod)
	for _, reason := range []string{"HostNetwork", "PortCollision", "NoWorkspace", "SecretNotFound"} {
		if !strings.Contains(err.Error(), reason+": ") {
			t.Errorf("the refusal does not name %s: %v", reason, err)
		}
	}
}

func TestAnEnforcedNamespaceWithoutAPolicyRefusesWhatAskedForTheRuntime(t *testing.T) {
	u := newUser(t, v1alpha1.EnforceLabel+"=true")
	pod := agent(optIn)
	pod.Namespace = u.namespace
	if err := u.Create(t.Context(), pod); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "NoPolicy") {
		t.Errorf("got %v, want a refusal for NoPolicy", err)
	}
}

func TestALimitRangeAndAQuotaLetTheInjectedPodPass(t *testing.T) {
	u := newUser(t)
	u.create(provider(), policy(v1alpha1.AdmissionWarn),
		&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "bounds"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer,
			Min:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")},
			Max:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		}}}},
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceLimitsCPU: resource.MustParse("2"), corev1.ResourceLimitsMemory: resource.MustParse("1Gi"),
		}}})
	pod := agent(optIn)
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}
	pod.Spec.InitContainers[0].Resources.Limits = pod.Spec.Containers[0].Resources.Limits
	if err := eventually(func() error { // the LimitRange reaches the webhook's cache
		again := pod.DeepCopy()
		again.Namespace = u.namespace
		if err := u.Create(t.Context(), again, client.DryRunAll); err != nil {
			return err
		}
		c := runtimeOf(again)
		if c == nil {
			return fmt.Errorf("the pod is not injected: %s", u.warned.all())
		}
		if c.Resources.Limits.Memory().String() != "128Mi" || c.Resources.Requests.Cpu().String() != "20m" {
			return fmt.Errorf("the runtime is not fitted into the LimitRange: %v", c.Resources)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestAGoodKeyIsRememberedForAWhileAndABadOneIsNot(t *testing.T) {
	reads := 0
	secret := keySecret("sk-1")
	secret.Namespace = "agents"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	keys, clock := NewKeys(c), time.Unix(1_700_000_000, 0)
	keys.now = func() time.Time { return clock }
	good := inject.Key{Provider: "agents/openai", Namespace: "agents", Secret: "openai-key", Key: "token"}
	bad := good
	bad.Key = "gone"
	ask := func(wantReads int, key inject.Key, wrong bool) {
		t.Helper()
		reads = 0
		got, err := keys.missing(t.Context(), []inject.Key{key})
		if _, found := got[key]; err != nil || found != wrong || reads != wantReads {
			t.Errorf("%s: got %v (%v) after %d reads, want %d", key.Key, got, err, reads, wantReads)
		}
	}
	ask(1, good, false)
	ask(0, good, false)
	ask(1, bad, true)
	ask(1, bad, true)
	clock = clock.Add(goodFor)
	ask(1, good, false)
}

func TestASecretThatMayNotBeReadIsNotSpokenOf(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(corev1.Resource("secrets"), "openai-key", errors.New("no"))
		},
	}).Build()
	got, err := NewKeys(c).missing(t.Context(), []inject.Key{{Namespace: "agents", Secret: "openai-key", Key: "token"}})
	if err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
