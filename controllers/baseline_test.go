// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// newBaseline makes a baseline for namespaces with a label, and removes it at the end.
func (w *world) newBaseline(name, key, value string) *v1alpha1.VisionPolicy {
	w.Helper()
	b := goodPolicy(name)
	b.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	w.platform(b)
	return b
}

// platform creates an object in the operator's namespace, and removes it at the end.
func (w *world) platform(o client.Object) {
	w.Helper()
	w.in(operatorNamespace).create(o)
	w.Cleanup(func() {
		if err := client.IgnoreNotFound(admin.Delete(context.Background(), o)); err != nil {
			w.Error(err)
		}
	})
}

// profiles waits until the router has profiles of exactly these IDs; none waits
// until there is no router.
func (w *world) profiles(want ...string) *router.Document {
	w.Helper()
	var doc *router.Document
	w.eventually("waiting for the profiles "+strings.Join(want, " "), func() error {
		var err error
		doc, _, err = w.document()
		switch {
		case apierrors.IsNotFound(err) && want == nil:
			return nil
		case err != nil:
			return err
		}
		var got []string
		for _, p := range doc.Profiles {
			got = append(got, p.ID)
		}
		if want == nil || !slices.Equal(got, want) {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	return doc
}

func TestANamespaceThatGainsALabelIsServedByABaselineUntilItLosesIt(t *testing.T) {
	w := newWorld(t, quick)
	w.newBaseline("platform", "vision", w.namespace)
	w.in(operatorNamespace).policyCondition("platform", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.create(goodProvider("local"))
	time.Sleep(200 * time.Millisecond)
	w.profiles()

	w.label("vision", w.namespace)
	w.profiles("baseline/platform")
	pod := w.newPod("agent", "baseline/platform")

	w.label("vision", "")
	w.eventually("waiting for a router without profiles", func() error {
		doc, _, err := w.document()
		if err != nil || len(doc.Profiles) != 0 {
			return fmt.Errorf("got %+v (%w)", doc, err)
		}
		return nil
	})
	if err := admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.profiles()
	w.eventually("waiting for the variables to go", func() error {
		var env corev1.ConfigMap
		if err := w.get(&env, compile.EnvConfigMapName); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("still there"), err)
		}
		return nil
	})
}

func TestTheEditOfABaselineReachesEveryNamespaceThatItMatchedOrMatches(t *testing.T) {
	labels := map[string]string{"tier": fmt.Sprint(time.Now().UnixNano())}
	w := newWideWorld(t, quick, 3, labels)
	w.newBaseline("wide", "tier", labels["tier"])
	all := append([]string{w.namespace}, w.others...)
	for _, ns := range all {
		w.in(ns).create(goodProvider("local"))
	}
	w.in(all[1]).create(goodPolicy("agents"))
	home := w.in(operatorNamespace)
	p := home.policyCondition("wide", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.eventually("waiting until the status tells of all", func() error {
		if err := home.get(p, "wide"); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgrammed)
		if !strings.Contains(c.Message, "4 namespaces") || p.Status.DefaultRoute != "local@main/vision" {
			return fmt.Errorf("got %q and the default route %q", c.Message, p.Status.DefaultRoute)
		}
		return nil
	})

	b := p.DeepCopy()
	b.Spec.Limits = &v1alpha1.Limits{Request: &v1alpha1.RequestLimits{MaxDistinctImages: new(int64(3))}}
	if err := admin.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, ns := range all {
		w.eventually("waiting for the limit in "+ns, func() error {
			doc, _, err := w.in(ns).document()
			if err != nil {
				return err
			}
			for _, p := range doc.Profiles {
				if p.Limits.Request.MaxDistinctImages != 3 {
					return fmt.Errorf("%s has %d", p.ID, p.Limits.Request.MaxDistinctImages)
				}
			}
			return nil
		})
	}
	p = home.policyCondition("wide", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	p.Spec.NamespaceSelector.MatchLabels["tier"] = "other" // it matched them before
	if err := admin.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.in(all[0]).profiles()
	w.in(all[1]).profiles("policy/agents")
	w.in(all[2]).profiles()
}

func TestABaselineTellsWhereItIsNotCarried(t *testing.T) {
	labels := map[string]string{"tier": fmt.Sprint(time.Now().UnixNano())}
	w := newWideWorld(t, quick, 1, labels)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: router.ConfigMapName}, Data: map[string]string{router.Key: "theirs"}}
	w.create(foreign)
	w.newBaseline("obstructed", "tier", labels["tier"])
	home := w.in(operatorNamespace)
	p := home.policyCondition("obstructed", v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonConflict)
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgrammed); !strings.Contains(c.Message, "1 of 2 namespaces ("+w.namespace+")") {
		t.Errorf("got the message %q", c.Message)
	}
	if err := admin.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	home.policyCondition("obstructed", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if err := admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}); err != nil {
		t.Fatal(err)
	}
	w.eventually("waiting until the namespace that is being deleted does not count", func() error {
		if err := home.get(p, "obstructed"); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgrammed); !strings.Contains(c.Message, "of 1 namespace") {
			return fmt.Errorf("got %q", c.Message)
		}
		return nil
	})
}

func TestAProviderOfAnotherNamespaceIsSharedAndWithdrawn(t *testing.T) {
	w := newWideWorld(t, quick, 1, nil)
	models := w.in(w.others[0])
	shared := goodProvider("shared")
	shared.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromAll)}
	p := goodPolicy("agents")
	p.Spec.Providers = []v1alpha1.ProviderReference{{Name: "shared", Namespace: models.namespace}}
	w.create(p)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRefNotPermitted)
	models.create(shared)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if doc := w.profiles("policy/agents"); len(doc.Providers) != 1 || doc.Providers[0].Name != models.namespace+"/shared" {
		t.Errorf("got the providers %+v", doc.Providers)
	}
	models.profiles()

	allow := func(json string) {
		t.Helper()
		if err := admin.Patch(t.Context(), shared, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"allowedNamespaces":`+json+`}}`))); err != nil {
			t.Fatal(err)
		}
	}
	allow("null")
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRefNotPermitted)
	if doc := w.profiles("policy/agents"); len(doc.Providers) != 0 {
		t.Errorf("the router still has the providers %+v", doc.Providers)
	}

	allow(`{"from":"Selector","selector":{"matchLabels":{"vision":"yes"}}}`)
	w.label("vision", "yes")
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.label("vision", "")
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRefNotPermitted)
}

func TestAPolicyIsNotReadyWithoutTheKeyOfItsDefaultRoute(t *testing.T) {
	w := newWideWorld(t, quick, 1, nil)
	models := w.in(w.others[0])
	shared := keyedProvider("shared", "key")
	shared.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromAll)}
	shared.Spec.Credentials.SecretRef.From = new(v1alpha1.SecretFromConsumer)
	models.create(shared)
	p := goodPolicy("agents")
	p.Spec.Providers = []v1alpha1.ProviderReference{{Name: "shared", Namespace: models.namespace}}
	w.create(p)
	w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonProgrammed)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}}
	w.create(secret)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	own := goodPolicy("own")
	own.Spec.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "own"}}
	w.create(keyedProvider("mine", "missing"), own)
	w.policyCondition("own", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "missing"}, Data: map[string][]byte{"api-key": []byte("sk-2")}})
	w.policyCondition("own", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if err := admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved)
}

// The rules on one object alone are CEL's and the webhook's: here no webhook stands
// before the API server.
func TestABaselineThatIsEditedIntoAnInvalidOneGoesOnBoundingWhatItBounds(t *testing.T) {
	w := newWorld(t, quick)
	b := goodPolicy("edited-" + w.namespace)
	b.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"vision": w.namespace}}
	b.Spec.AllowedModels = []string{"*/vision"}
	b.Spec.Limits = &v1alpha1.Limits{Image: &v1alpha1.ImageLimits{MaxBytes: new(int64(1000))}}
	w.platform(b)
	w.label("vision", w.namespace)
	w.create(goodProvider("local"), goodPolicy("agents"))
	w.profiles("baseline/"+b.Name, "policy/agents")

	before := b.DeepCopy()
	b.Spec.Limits.Image.MaxBytes = new(int64(900)) // an edit that can be told from the one before
	b.Spec.Providers, b.Spec.DefaultModel = []v1alpha1.ProviderReference{{Name: "central"}}, new("unknown/vision")
	if err := admin.Patch(t.Context(), b, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	got := w.in(operatorNamespace).policyCondition(b.Name, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionAccepted); !strings.Contains(c.Message, "hold all the same") {
		t.Errorf("the condition does not tell that its bounds hold: %q", c.Message)
	}
	profile := w.profiles("policy/agents").Profiles[0]
	if profile.Limits.Image.MaxBytes != 900 || len(profile.Allow) != 1 || profile.Allow[0].From != operatorNamespace+"/"+b.Name {
		t.Errorf("the policy is bounded by %d bytes and %+v", profile.Limits.Image.MaxBytes, profile.Allow)
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.in(operatorNamespace).policyCondition(b.Name, v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted)
}
