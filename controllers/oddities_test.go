// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// The outcomes that these tests show are the table of docs/operations.md.

// neighbours are namespaces whose objects and routers a test must leave as they are.
type neighbours struct {
	w      *world
	before map[string]string
}

// settledNeighbours notes what the world's other namespaces hold once each has a
// router, and nothing is written any more.
func (w *world) settledNeighbours() neighbours {
	w.Helper()
	for _, namespace := range w.others {
		w.in(namespace).policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	}
	w.settle()
	n := neighbours{w: w, before: map[string]string{}}
	for _, namespace := range w.others {
		n.before[namespace] = w.held(namespace)
	}
	return n
}

// undisturbed fails when anything in the other namespaces was written since.
func (n neighbours) undisturbed() {
	n.w.Helper()
	for namespace, before := range n.before {
		if now := n.w.held(namespace); now != before {
			n.w.Errorf("namespace %s was disturbed: it held\n%s\nand holds\n%s", namespace, before, now)
		}
	}
}

// held are the versions of all that the operator writes in a namespace.
func (w *world) held(namespace string) string {
	w.Helper()
	var held strings.Builder
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &v1alpha1.VisionPolicyList{}, &v1alpha1.VisionProviderList{}} {
		if err := admin.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
			w.Fatal(err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			a, err := meta.Accessor(o)
			if err == nil {
				fmt.Fprintf(&held, "%s %s\n", a.GetName(), a.GetResourceVersion())
			}
			return err
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	return held.String()
}

// settle waits until the controllers have written nothing for a while.
func (w *world) settle() {
	w.Helper()
	last, since := w.writes.Load(), time.Now()
	for deadline := time.Now().Add(time.Minute); time.Since(since) < time.Second; time.Sleep(20 * time.Millisecond) {
		if now := w.writes.Load(); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			w.Fatal("the controllers do not settle")
		}
	}
}

func TestABadObjectAmong500GoodOnesTakesNothingWithIt(t *testing.T) {
	const others, policies, providers = 9, 45, 5 // of a namespace: 10 times 50
	w := newWideWorld(t, Intervals{}, others, nil)
	for _, namespace := range append([]string{w.namespace}, w.others...) {
		at := w.in(namespace)
		for i := range providers {
			at.create(goodProvider(fmt.Sprintf("models-%d", i)))
		}
		at.create(goodPolicy("agents"))
		for i := range policies - 1 {
			p := goodPolicy(fmt.Sprintf("team-%02d", i))
			p.Spec.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": p.Name}}
			at.create(p)
		}
	}
	n := w.settledNeighbours()
	// These the API server takes: only who reads the certificate sees that it is none.
	badProvider, badPolicy := goodProvider("bad"), goodPolicy("bad")
	badProvider.Spec.Endpoints[0].CABundle = "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n"
	badPolicy.Spec.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "bad"}}
	badPolicy.Spec.Providers = []v1alpha1.ProviderReference{{Name: "bad"}}
	w.create(badProvider, badPolicy)

	w.providerCondition("bad", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	w.policyCondition("bad", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonProviderNotAccepted)
	w.settle()
	n.undisturbed()
	var list v1alpha1.VisionPolicyList
	if err := admin.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil || len(list.Items) != policies+1 {
		t.Fatalf("got %d policies (%v)", len(list.Items), err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if ready := meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady); ready == (p.Name == "bad") {
			t.Errorf("policy %s: ready is %v", p.Name, ready)
		}
	}
	doc, _, err := w.document()
	if err != nil || len(doc.Providers) != providers || len(doc.Profiles) < policies {
		t.Errorf("the router has %d providers and %d profiles (%v), want %d and at least %d", len(doc.Providers), len(doc.Profiles), err, providers, policies)
	}
	if err := errors.Join(admin.Delete(t.Context(), badPolicy), admin.Delete(t.Context(), badProvider)); err != nil {
		t.Fatal(err)
	}
	w.settle()
	n.undisturbed()
}

// largeProvider is a provider that takes some 50 KiB of a router.
func largeProvider(name string) *v1alpha1.VisionProvider {
	p := goodProvider(name)
	p.Spec.Models = nil
	types := make([]string, 16)
	for i := range types {
		types[i] = fmt.Sprintf("image/x-%02d", i)
	}
	for i := range 64 {
		p.Spec.Models = append(p.Spec.Models, v1alpha1.Model{Name: fmt.Sprintf("%s-%02d", strings.Repeat("m", 240), i),
			ImageInput: new(true), Limits: &v1alpha1.ModelLimits{MediaTypes: types}})
	}
	return p
}

func TestARouterThatIsTooLargeStaysAsItWasUntilItFitsAgain(t *testing.T) {
	w := newWideWorld(t, Intervals{}, 1, nil)
	for _, namespace := range append([]string{w.namespace}, w.others...) {
		w.in(namespace).create(goodProvider("local"), goodPolicy("agents"))
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	n := w.settledNeighbours()
	const large = 30
	for i := range large {
		w.create(largeProvider(fmt.Sprintf("large-%02d", i)))
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRouterTooLarge)
	w.settle()
	_, stayed, err := w.document()
	if err != nil {
		t.Fatal(err)
	}
	n.undisturbed()

	// What it cannot carry is not carried: an edit changes nothing, and one elsewhere does.
	w.ask("agents", "too late")
	w.in(w.others[0]).ask("agents", "in time")
	w.in(w.others[0]).eventually("waiting for the edit of the other namespace", func() error {
		_, cm, err := w.in(w.others[0]).document()
		if err == nil && !strings.Contains(cm.Data[router.Key], "in time") {
			err = errors.New("not there")
		}
		return err
	})
	w.settle()
	if _, cm, err := w.document(); err != nil || cm.ResourceVersion != stayed.ResourceVersion {
		t.Errorf("the router was written: %v", err)
	}

	for i := range large {
		if err := admin.Delete(t.Context(), &v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("large-%02d", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if _, cm, err := w.document(); err != nil || !strings.Contains(cm.Data[router.Key], "too late") {
		t.Errorf("the router that fits again does not carry the last edit (%v)", err)
	}
}

// ask gives a policy another observation prompt, which its router carries.
func (w *world) ask(policy, prompt string) {
	w.Helper()
	p := &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: policy}}
	patch := fmt.Appendf(nil, `{"spec":{"injection":{"observationPrompt":%q}}}`, prompt)
	if err := admin.Patch(w.Context(), p, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.Fatal(err)
	}
}

func TestASecretThatIsDeletedAndComesBackShowsInStatusAndStampsAndNotInTheRouter(t *testing.T) {
	w := newWideWorld(t, quick, 1, nil)
	secret := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"api-key": "sk-1"}}
	}
	for _, namespace := range append([]string{w.namespace}, w.others...) {
		w.in(namespace).create(secret(), keyedProvider("keyed", "keys"), goodPolicy("agents"))
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.newPod("agent", "policy/agents", w.namespace+"/keyed")
	first := w.stamped("agent", "")
	n := w.settledNeighbours()
	_, published, err := w.document()
	if err != nil {
		t.Fatal(err)
	}

	gone := secret()
	gone.Namespace = w.namespace
	if err := admin.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.providerCondition("keyed", v1alpha1.ConditionCredentialsResolved, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved)
	w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonProgrammed)
	without := w.stamped("agent", first)

	w.create(secret())
	w.providerCondition("keyed", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.stamped("agent", without)
	w.settle()
	n.undisturbed()
	if _, now, err := w.document(); err != nil || now.ResourceVersion != published.ResourceVersion {
		t.Errorf("the router was written on account of a Secret (%v)", err)
	}
}

func TestANamespaceThatTerminatesHoldsUpNoOther(t *testing.T) {
	w := newWideWorld(t, quick, 1, nil)
	for _, namespace := range append([]string{w.namespace}, w.others...) {
		w.in(namespace).create(goodProvider("local"), goodPolicy("agents"))
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	n := w.settledNeighbours()
	// Nobody empties namespaces here, so this one stays in that state: what is
	// there may be edited, and nothing can be created.
	if err := admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: router.ConfigMapName}}); err != nil {
		t.Fatal(err)
	}
	w.ask("agents", "last words")
	p := w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonPending)
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgrammed); !strings.Contains(c.Message, "being deleted") {
		t.Errorf("got the message %q", c.Message)
	}
	w.settle() // what is refused is not tried over and over
	if _, _, err := w.document(); !apierrors.IsNotFound(err) {
		t.Errorf("a router came back in a namespace that is being deleted: %v", err)
	}
	n.undisturbed()
	w.in(w.others[0]).ask("agents", "carry on")
	w.in(w.others[0]).policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// guard installs config/admissionpolicy for as long as the test lasts.
func guard(t *testing.T) {
	t.Helper()
	if err := cluster.Install(t.Context(), operatorNamespace, "../config/admissionpolicy"); err != nil {
		t.Fatal(err)
	}
	probe := func() error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: router.ConfigMapName}}
		return admin.Create(context.Background(), cm, client.DryRunAll)
	}
	awaitProbe(t, "the policies are in force", func() bool { return apierrors.IsForbidden(probe()) })
	t.Cleanup(func() {
		if _, err := cluster.Kubectl(context.Background(), "", "delete", "-k", "../config/admissionpolicy"); err != nil {
			t.Error(err)
		}
		awaitProbe(t, "the policies are gone", func() bool { return probe() == nil })
	})
}

func awaitProbe(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: they are not", what)
		}
	}
}

// tenant is a client with all rights on ConfigMaps of the world's namespace, and no others.
func (w *world) tenant() client.Client {
	w.Helper()
	name := "tenant-of-" + w.namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}}
	w.create(role, binding)
	config, err := cluster.User(name)
	if err != nil {
		w.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func TestUnderTheGuardATenantMayNotTouchTheRouterAndTheOperatorKeepsIt(t *testing.T) {
	guard(t)
	w := newWideWorld(t, quick, 1, nil)
	w.in(w.others[0]).create(goodProvider("local"), goodPolicy("agents"))
	n := w.settledNeighbours()
	tenant := w.tenant()
	theirs := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: router.ConfigMapName}, Data: map[string]string{router.Key: "{}"}}
	}
	denied := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "change a VisionPolicy or a VisionProvider instead") {
			t.Errorf("%s: got %v, want a denial that says what to change", what, err)
		}
	}
	denied("a tenant creates it beforehand", tenant.Create(t.Context(), theirs()))

	policy := goodPolicy("agents")
	w.create(goodProvider("local"), policy)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	_, before, err := w.document()
	if err != nil {
		t.Fatal(err)
	}
	denied("a tenant edits it", tenant.Patch(t.Context(), theirs(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"router.json":"{}"}}`))))
	denied("a tenant deletes it", tenant.Delete(t.Context(), theirs()))
	w.settle()
	if _, now, err := w.document(); err != nil || now.ResourceVersion != before.ResourceVersion {
		t.Errorf("the router is another one (%v)", err)
	}
	n.undisturbed()

	if err := admin.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	w.eventually("waiting until the operator has removed its own", func() error {
		_, _, err := w.document()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
}
