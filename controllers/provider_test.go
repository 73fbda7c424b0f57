// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestAKeyThatComesLateIsFoundAndOneThatGoesIsMissed(t *testing.T) {
	w := newWorld(t, quick)
	w.create(keyedProvider("cloud", "late"), goodPolicy("agents"))
	w.providerCondition("cloud", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)
	// The router does not wait for the key: the pod mounts it when it is there.
	w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonProgrammed)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string][]byte{"other": []byte("x")}}
	w.create(secret)
	w.providerCondition("cloud", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretKeyNotFound)
	for _, step := range []struct {
		value  string
		reason string
	}{
		{"", v1alpha1.ReasonSecretKeyEmpty},
		{"sk-secret-value\n", v1alpha1.ReasonSecretKeyMalformed},
		{"sk-secret-value", v1alpha1.ReasonResolved},
		{`"sk-secret-value"`, v1alpha1.ReasonSecretKeyMalformed},
	} {
		secret.Data = map[string][]byte{"api-key": []byte(step.value)}
		if err := admin.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		status := metav1.ConditionFalse
		if step.reason == v1alpha1.ReasonResolved {
			status = metav1.ConditionTrue
		}
		p := w.providerCondition("cloud", v1alpha1.ConditionCredentialsResolved, status, step.reason)
		if p.Status.CredentialsResourceVersion == "" {
			t.Errorf("with %q the status has no resourceVersion", step.value)
		}
	}
	if err := admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p := w.providerCondition("cloud", v1alpha1.ConditionCredentialsResolved, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)
	if p.Status.CredentialsResourceVersion != "" {
		t.Errorf("the status has the resourceVersion %q of a Secret that is gone", p.Status.CredentialsResourceVersion)
	}
}

func TestAProviderThatNeedsNoKeyOrReadsItElsewhereIsReady(t *testing.T) {
	w := newWorld(t, Intervals{})
	consumer := keyedProvider("shared", "per-team")
	consumer.Spec.Credentials.SecretRef.From = new(v1alpha1.SecretFromConsumer)
	w.create(goodProvider("open"), consumer)
	w.providerCondition("open", v1alpha1.ConditionCredentialsResolved, metav1.ConditionTrue, v1alpha1.ReasonNoCredentials)
	w.providerCondition("shared", v1alpha1.ConditionCredentialsResolved, metav1.ConditionTrue, v1alpha1.ReasonConsumerSecret)
	w.providerCondition("shared", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestTheKeyOfAProviderThatIsNotAcceptedIsNotLookedFor(t *testing.T) {
	w := newWorld(t, Intervals{})
	p := keyedProvider("broken", "missing")
	p.Spec.Endpoints[0].CABundle = "no certificate"
	w.create(p)
	w.providerCondition("broken", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	w.providerCondition("broken", v1alpha1.ConditionCredentialsResolved, metav1.ConditionUnknown, v1alpha1.ReasonNotAccepted)
}

func TestAProviderOfEachTransportIsReady(t *testing.T) {
	w := newWorld(t, Intervals{})
	for name, transport := range map[string]v1alpha1.Transport{
		"chat": v1alpha1.TransportOpenAIChatCompletions, "responses": v1alpha1.TransportOpenAIResponses,
		"claude": v1alpha1.TransportAnthropicMessages, "gemini": v1alpha1.TransportGeminiGenerateContent,
	} {
		p := goodProvider(name)
		p.Spec.Transport = transport
		w.create(p)
		w.providerCondition(name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	}
}

func TestWithoutAccessToSecretsTheConditionIsUnknown(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "vision-operator-secrets"}, binding); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		binding.ResourceVersion, binding.UID = "", ""
		if err := admin.Create(context.Background(), binding); err != nil {
			t.Error(err)
		}
	})
	w := newWorld(t, quick)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}},
		keyedProvider("cloud", "key"), goodPolicy("agents"))
	w.providerCondition("cloud", v1alpha1.ConditionCredentialsResolved, metav1.ConditionUnknown, v1alpha1.ReasonSecretAccessDenied)
	w.providerCondition("cloud", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonSecretAccessDenied)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// A key's value must be nowhere but in its Secret, whatever is wrong with it.
func TestNoKeyIsEverWrittenAnywhere(t *testing.T) {
	const marker = "sk-marker-4f1c"
	w := newWorld(t, quick)
	for name, value := range map[string]string{"good": marker, "newline": marker + "\n", "quoted": `"` + marker + `"`, "control": marker + "\x01" + marker} {
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"api-key": []byte(value)}}, keyedProvider(name, name))
	}
	w.create(goodPolicy("agents"))
	w.providerCondition("good", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	for _, name := range []string{"newline", "quoted", "control"} {
		w.providerCondition(name, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretKeyMalformed)
	}
	w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonProgrammed)
	_, cm, err := w.document()
	if err != nil {
		t.Fatal(err)
	}
	cm.Data["router.json"] = "{}" // so that there is an event, too
	if err := admin.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	w.eventually("waiting for the event", func() error {
		var events eventsv1.EventList
		if err := admin.List(t.Context(), &events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if len(events.Items) == 0 {
			return context.DeadlineExceeded
		}
		return nil
	})
	for _, list := range []client.ObjectList{&v1alpha1.VisionPolicyList{}, &v1alpha1.VisionProviderList{}, &corev1.ConfigMapList{}, &eventsv1.EventList{}} {
		if err := admin.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if meta.LenList(list) == 0 || bytes.Contains(data, []byte(marker)) || strings.Contains(string(data), "c2stbWFya2Vy") {
			t.Errorf("%T has %d items and holds the key's value: %s", list, meta.LenList(list), data)
		}
	}
}

// A key that is rotated is as good as the one before: only the Secret's resourceVersion tells.
func TestARotatedKeyShowsInTheStatusWithinTheRefreshInterval(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}}
	w := newWorld(t, Intervals{CredentialRetry: time.Hour, CredentialRefresh: 50 * time.Millisecond})
	w.create(secret, keyedProvider("cloud", "key"))
	before := w.providerCondition("cloud", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if before.Status.CredentialsResourceVersion != secret.ResourceVersion {
		t.Errorf("got %q, want %q", before.Status.CredentialsResourceVersion, secret.ResourceVersion)
	}
	secret.Data["api-key"] = []byte("sk-2")
	if err := admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	after := &v1alpha1.VisionProvider{}
	w.eventually("waiting for the rotated Secret", func() error {
		if err := w.get(after, "cloud"); err != nil {
			return err
		}
		if got := after.Status.CredentialsResourceVersion; got != secret.ResourceVersion {
			return fmt.Errorf("got %q, want %q", got, secret.ResourceVersion)
		}
		return nil
	})
	if diff := cmp.Diff(before.Status.Conditions, after.Status.Conditions); diff != "" {
		t.Errorf("the conditions changed (-before +after):\n%s", diff)
	}
	if got := w.told("cloud"); got != nil {
		t.Errorf("a rotation is told as %q", got)
	}
}
