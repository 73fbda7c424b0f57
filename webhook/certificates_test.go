// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/certs"
)

func mutatingConfiguration(t *testing.T) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	suite.Need(t)
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: certs.DefaultConfiguration}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestASecondReplicaAgreesOnTheCAAndWritesNothing(t *testing.T) {
	before := mutatingConfiguration(t)
	second := certificatesOf(t)
	if err := second.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := mutatingConfiguration(t)
	if before.ResourceVersion != after.ResourceVersion {
		t.Error("the second replica wrote the configuration")
	}
	leaf, err := second.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range after.Webhooks {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(w.ClientConfig.CABundle)
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1"}); err != nil {
			t.Errorf("%s does not trust the second replica: %v", w.Name, err)
		}
	}
}

func TestAWipedCABundleHealsByItself(t *testing.T) {
	before := mutatingConfiguration(t)
	wiped := before.DeepCopy()
	for i := range wiped.Webhooks {
		wiped.Webhooks[i].ClientConfig.CABundle = nil
	}
	if err := admin.Update(t.Context(), wiped); err != nil {
		t.Fatal(err)
	}
	err := eventually(func() error {
		for i, w := range mutatingConfiguration(t).Webhooks {
			if !bytes.Equal(w.ClientConfig.CABundle, before.Webhooks[i].ClientConfig.CABundle) {
				return fmt.Errorf("the caBundle of %s is not back", w.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTheCAsSecretHoldsACertificateAndItsKeyAndIsMarkedAsOurs(t *testing.T) {
	suite.Need(t)
	secret := &corev1.Secret{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: certs.DefaultSecret}, secret); err != nil {
		t.Fatal(err)
	}
	if secret.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy || len(secret.Data) != 2 {
		t.Errorf("got labels %v and %d keys", secret.Labels, len(secret.Data))
	}
}

// pointAt changes where the API server looks for the pod webhooks.
func pointAt(t *testing.T, url string) {
	t.Helper()
	conf := mutatingConfiguration(t)
	var patch []map[string]any
	for i := range conf.Webhooks {
		patch = append(patch, map[string]any{"op": "replace", "path": fmt.Sprintf("/webhooks/%d/clientConfig/url", i), "value": url})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Patch(t.Context(), conf, client.RawPatch(types.JSONPatchType, data)); err != nil {
		t.Fatal(err)
	}
}

func TestWhileTheOperatorIsAwayOnlyEnforcedNamespacesRefusePods(t *testing.T) {
	address := *mutatingConfiguration(t).Webhooks[0].ClientConfig.URL
	pointAt(t, "https://127.0.0.1:1/away")
	defer func() {
		pointAt(t, address)
		u := newUser(t)
		u.create(provider(), policy(v1alpha1.AdmissionWarn))
		if err := eventually(func() error { return injectedByDryRun(t, u) }); err != nil {
			t.Error("after the test:", err)
		}
	}()
	free, enforced := newUser(t), newUser(t, v1alpha1.EnforceLabel+"=true")
	err := eventually(func() error {
		pod := agent(optIn)
		pod.Namespace = enforced.namespace
		err := enforced.Create(t.Context(), pod, client.DryRunAll)
		if err == nil {
			return errors.New("an enforced namespace: the pod was created")
		}
		if !strings.Contains(err.Error(), "failed calling webhook") {
			return fmt.Errorf("an enforced namespace: want that the webhook failed, got: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	pod := agent(optIn)
	free.create(pod)
	if runtimeOf(pod) != nil {
		t.Error("the pod was injected by nobody")
	}
}

func injectedByDryRun(t *testing.T, u *user) error {
	pod := agent(optIn)
	pod.Namespace = u.namespace
	if err := u.Create(t.Context(), pod, client.DryRunAll); err != nil {
		return err
	}
	if runtimeOf(pod) == nil {
		return errors.New("the pod is not injected")
	}
	return nil
}
