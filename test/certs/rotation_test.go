// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/certs"
)

// world is what the test plays with.
type world struct {
	*testing.T
	admin           client.WithWatch
	balancer        *balancer
	plain, enforced *stream
	// cas and leaves are what each replica has served, by its place.
	cas, leaves [2]map[string]bool
	replicas    [2]*replica
}

func TestEveryPodIsCreatedWithTheRuntimeWhateverBecomesOfTheCertificates(t *testing.T) {
	balancer := startBalancer(t)
	admin, operator := install(t, balancer.listener.Addr().String())
	var patchesTake atomic.Int64
	operator.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowly{next, &patchesTake} })
	w := &world{T: t, admin: admin, balancer: balancer}
	for i := range w.replicas {
		w.start(i, operator)
		w.cas[i], w.leaves[i] = map[string]bool{}, map[string]bool{}
	}
	served(t, admin, "plain", nil)
	served(t, admin, "enforced", map[string]string{v1alpha1.EnforceLabel: "true"})
	var stopPlain, stopEnforced func()
	w.plain, stopPlain = startStream(t, admin, "plain")
	defer stopPlain()
	w.enforced, stopEnforced = startStream(t, admin, "enforced")
	defer stopEnforced()

	patchesTake.Store(int64(time.Second))
	w.phase("a deleted Secret", func() { w.deleteSecret(); w.secretIsBack() })
	w.phase("a garbled Secret", func() {
		w.editSecret(func(s *corev1.Secret) { s.Data["ca.key"] = []byte("garbage") })
		w.secretIsBack()
	})
	w.phase("a restart", func() { w.restart(0) })
	w.phase("a Secret that is deleted during a restart", func() {
		w.deleteSecret()
		w.restart(1)
		w.secretIsBack()
	})
	w.phase("three CAs", func() { w.observeUntilRotated(3) })
	for i, r := range w.replicas {
		t.Logf("replica %d served %d leaves of %d CAs in %d calls", i, len(w.leaves[i]), len(w.cas[i]), r.called())
		if r.called() == 0 || len(w.leaves[i]) < 4 {
			t.Errorf("replica %d saw %d calls and served %d leaves: this test sees too little", i, r.called(), len(w.leaves[i]))
		}
	}
	patchesTake.Store(0)
	w.wipe()
}

// phase does something and fails unless, until two seconds after it, every pod
// was created and injected.
func (w *world) phase(name string, do func()) {
	w.Helper()
	plain, enforced, began := w.plain.now(), w.enforced.now(), time.Now()
	do()
	w.observe(2 * time.Second)
	for namespace, got := range map[string]tally{"plain": w.plain.now().since(plain), "enforced": w.enforced.now().since(enforced)} {
		w.Logf("%s, namespace %s: %d pods in %s, %d refused", name, namespace, got.created, time.Since(began).Round(time.Second), len(got.refusals))
		if len(got.refusals) > 0 {
			w.Errorf("%s, namespace %s: %d pods were refused, such as: %v", name, namespace, len(got.refusals), got.refusals[0])
		}
		if got.injected != got.created || got.created == 0 {
			w.Errorf("%s, namespace %s: %d of %d pods have the runtime", name, namespace, got.injected, got.created)
		}
	}
}

// observe notes what is served for a while.
func (w *world) observe(d time.Duration) {
	w.Helper()
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		for i, r := range w.replicas {
			leaf, err := r.leaf()
			if err != nil {
				w.Fatal(err)
			}
			w.leaves[i][leaf.SerialNumber.String()] = true
			w.cas[i][leaf.Issuer.SerialNumber] = true
		}
	}
}

// observeUntilRotated waits until each replica has served leaves of so many CAs.
func (w *world) observeUntilRotated(cas int) {
	w.Helper()
	for deadline := time.Now().Add(4 * time.Minute); len(w.cas[0]) < cas || len(w.cas[1]) < cas; {
		if time.Now().After(deadline) {
			w.Fatalf("the replicas served leaves of %d and %d CAs, want %d", len(w.cas[0]), len(w.cas[1]), cas)
		}
		w.observe(time.Second)
	}
}

func (w *world) restart(i int) {
	w.Helper()
	config := w.replicas[i].GetConfig()
	w.replicas[i].stop()
	w.start(i, config)
}

// start starts a replica that takes part as soon as it is ready.
func (w *world) start(i int, operator *rest.Config) {
	w.Helper()
	r := startReplica(w.T, operator)
	w.replicas[i] = r
	w.balancer.add(r)
}

func (w *world) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, w.admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: certs.DefaultSecret}, secret)
}

func (w *world) deleteSecret() {
	w.Helper()
	secret, err := w.secret(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if err := w.admin.Delete(w.Context(), secret); err != nil {
		w.Fatal(err)
	}
}

func (w *world) editSecret(how func(*corev1.Secret)) {
	w.Helper()
	secret, err := w.secret(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	how(secret)
	if err := w.admin.Update(w.Context(), secret); err != nil {
		w.Fatal(err)
	}
}

// secretIsBack waits until the Secret holds a key and what the caBundles hold.
func (w *world) secretIsBack() {
	w.Helper()
	eventually(w.T, "waiting for the Secret to be back", 30*time.Second, func(ctx context.Context) error {
		secret, err := w.secret(ctx)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(secret.Data["ca.key"], []byte("-----BEGIN")) {
			return errors.New("it holds no key")
		}
		return w.bundlesAre(ctx, secret.Data["ca.crt"])
	})
}

func (w *world) bundlesAre(ctx context.Context, want []byte) error {
	conf := &admissionv1.MutatingWebhookConfiguration{}
	if err := w.admin.Get(ctx, client.ObjectKey{Name: certs.DefaultConfiguration}, conf); err != nil {
		return err
	}
	for _, hook := range conf.Webhooks {
		if !bytes.Equal(hook.ClientConfig.CABundle, want) {
			return fmt.Errorf("the caBundle of %s is not what the Secret holds", hook.Name)
		}
	}
	return nil
}

// wipe empties every caBundle of pods several times. The API server cannot call
// then: a plain namespace's pods are created bare for a moment, an enforced one's
// are refused, and neither for longer than until the operator puts it back.
func (w *world) wipe() {
	w.Helper()
	plain, enforced := w.plain.now(), w.enforced.now()
	for range 5 {
		conf := &admissionv1.MutatingWebhookConfiguration{}
		if err := w.admin.Get(w.Context(), client.ObjectKey{Name: certs.DefaultConfiguration}, conf); err != nil {
			w.Fatal(err)
		}
		for i := range conf.Webhooks {
			conf.Webhooks[i].ClientConfig.CABundle = nil
		}
		if err := w.admin.Update(w.Context(), conf); err != nil {
			w.Fatal(err)
		}
		wiped := time.Now()
		eventually(w.T, "waiting for the caBundles to be back", 30*time.Second, func(ctx context.Context) error {
			secret, err := w.secret(ctx)
			if err != nil {
				return err
			}
			return w.bundlesAre(ctx, secret.Data["ca.crt"])
		})
		w.observe(1500 * time.Millisecond)
		gap := func(s *stream) time.Duration { return max(0, s.now().lastLapse.Sub(wiped)).Round(time.Millisecond) }
		w.Logf("a wiped caBundle: the last pod without the runtime after %s, the last refused one after %s", gap(w.plain), gap(w.enforced))
	}
	plain, enforced = w.plain.now().since(plain), w.enforced.now().since(enforced)
	w.Logf("plain: %d of %d pods have the runtime; enforced: %d of %d pods were refused",
		plain.injected, plain.created, len(enforced.refusals), enforced.created+len(enforced.refusals))
	if len(plain.refusals) > 0 {
		w.Errorf("a pod of a plain namespace was refused: %v", plain.refusals[0])
	}
	if enforced.injected != enforced.created {
		w.Errorf("enforced: %d of %d pods have the runtime", enforced.injected, enforced.created)
	}
	for _, err := range enforced.refusals {
		if !strings.Contains(err.Error(), "failed calling webhook") || !strings.Contains(err.Error(), "x509: ") {
			w.Errorf("a pod was refused for another reason: %v", err)
		}
	}
	w.phase("after the caBundle was wiped", func() { w.observe(time.Second) })
}
