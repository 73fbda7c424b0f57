// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestAPolicyIsPublishedAndSaysSo(t *testing.T) {
	w := newWorld(t, Intervals{})
	w.create(goodProvider("local"), goodPolicy("agents"))

	p := w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	doc, cm, err := w.document()
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Profiles) != 1 || doc.Profiles[0].ID != "policy/agents" || len(doc.Providers) != 1 {
		t.Errorf("got the document %+v", doc)
	}
	if cm.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
		t.Errorf("the ConfigMap has the labels %v", cm.Labels)
	}
	if want := router.Digest([]byte(cm.Data[router.Key])); p.Status.Router == nil || p.Status.Router.Digest != want || p.Status.Router.ConfigMap != router.ConfigMapName {
		t.Errorf("got the router %+v, want digest %s", p.Status.Router, want)
	}
	if p.Status.DefaultRoute != "local@main/vision" || len(p.Status.Candidates) != 1 {
		t.Errorf("got the default route %q and candidates %+v", p.Status.DefaultRoute, p.Status.Candidates)
	}
	var types []string
	for _, c := range p.Status.Conditions {
		types = append(types, c.Type+"="+string(c.Status))
	}
	if got := strings.Join(types, " "); got != "Accepted=True Programmed=True Ready=True ResolvedRefs=True" {
		t.Errorf("got the conditions %s", got)
	}
	var env corev1.ConfigMap
	if err := w.get(&env, compile.EnvConfigMapName); err != nil || env.Data[compile.EnvMCPURL] != compile.MCPURL {
		t.Errorf("got the variables %v (%v)", env.Data, err)
	}
	var urls corev1.ConfigMap
	if err := w.get(&urls, compile.BaseURLsConfigMapName); err != nil || urls.Data["OPENAI_BASE_URL"] != compile.RuntimeURL+"/openai/v1" || len(urls.Data) != 6 {
		t.Errorf("got the base URLs %v (%v)", urls.Data, err)
	}
}

func TestABrokenProviderBesideAGoodOneTakesNothingWithIt(t *testing.T) {
	w := newWorld(t, Intervals{})
	broken := goodProvider("broken")
	broken.Spec.Endpoints[0].CABundle = "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n"
	w.create(broken, goodProvider("good"), goodPolicy("agents"))

	w.providerCondition("broken", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	w.providerCondition("broken", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	w.providerCondition("good", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.eventually("waiting for the good provider alone", func() error {
		doc, _, err := w.document()
		if err != nil {
			return err
		}
		if len(doc.Providers) != 1 || doc.Providers[0].Name != w.namespace+"/good" {
			return fmt.Errorf("got the providers %+v", doc.Providers)
		}
		return nil
	})
}

func TestAReferenceWakesUpWhenItsProviderComes(t *testing.T) {
	w := newWorld(t, Intervals{})
	p := goodPolicy("agents")
	p.Spec.Providers = []v1alpha1.ProviderReference{{Name: "late"}}
	w.create(p)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonProviderNotFound)
	w.create(goodProvider("late"))
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestOfTwoPoliciesWithEqualSelectorsTheYoungerIsOverridden(t *testing.T) {
	w := newWorld(t, Intervals{})
	w.create(goodProvider("local"), goodPolicy("z-first"))
	time.Sleep(1100 * time.Millisecond) // creation times have whole seconds
	w.create(goodPolicy("a-second"))

	second := w.policyCondition("a-second", v1alpha1.ConditionOverridden, metav1.ConditionTrue, v1alpha1.ReasonEqualSelector)
	if c := meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionOverridden); !strings.Contains(c.Message, `"z-first"`) {
		t.Errorf("the message does not name the winner: %s", c.Message)
	}
	w.policyCondition("a-second", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	first := w.policyCondition("z-first", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if meta.FindStatusCondition(first.Status.Conditions, v1alpha1.ConditionOverridden) != nil {
		t.Error("the winner has the condition Overridden")
	}
	if err := admin.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.eventually("waiting for the condition to go", func() error {
		if err := w.get(second, "a-second"); err != nil {
			return err
		}
		if meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionOverridden) != nil {
			return errors.New("still overridden")
		}
		return nil
	})
}

func TestFieldsThatAreNotObeyedAreNamed(t *testing.T) {
	w := newWorld(t, Intervals{})
	p := goodPolicy("agents")
	p.Spec.Quotas = []v1alpha1.Quota{{Scope: v1alpha1.QuotaScopePod, Window: "1h", Observations: new(int64(10))}}
	w.create(goodProvider("local"), p)
	got := w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonPartiallyProgrammed)
	for _, kind := range []string{v1alpha1.ConditionProgrammed, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(got.Status.Conditions, kind); !strings.Contains(c.Message, "spec.quotas") {
			t.Errorf("%s does not name the field: %s", kind, c.Message)
		}
	}
}

func TestABaselineIsAcceptedOnlyInTheOperatorsNamespace(t *testing.T) {
	w := newWorld(t, Intervals{})
	p := goodPolicy("baseline")
	p.Spec.NamespaceSelector = &metav1.LabelSelector{}
	w.create(p)
	w.policyCondition("baseline", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotBaselineNamespace)
	if _, _, err := w.document(); !apierrors.IsNotFound(err) {
		t.Errorf("a router was published for a namespace without a policy of its own: %v", err)
	}
}

func TestWhatOthersDoToTheRouterIsUndone(t *testing.T) {
	w := newWorld(t, Intervals{})
	w.create(goodProvider("local"), goodPolicy("agents"))
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	_, want, err := w.document()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		do   func(*corev1.ConfigMap) error
		says string
	}{
		{"an edit", func(cm *corev1.ConfigMap) error {
			cm.Data[router.Key] = `{"version":"router/v1"}`
			return admin.Update(t.Context(), cm)
		}, "had been edited"},
		{"a removed key", func(cm *corev1.ConfigMap) error {
			cm.Data = nil
			return admin.Update(t.Context(), cm)
		}, "had been edited"},
		{"a removed label", func(cm *corev1.ConfigMap) error {
			cm.Labels = nil
			return admin.Update(t.Context(), cm)
		}, "had lost its label"},
		{"an edit that leaves nothing of ours, label or field", func(cm *corev1.ConfigMap) error {
			cm.Data[router.Key], cm.Labels = "{}", nil
			return admin.Update(t.Context(), cm)
		}, "had lost its label"},
		{"an edit that cannot be edited", func(cm *corev1.ConfigMap) error {
			cm.Data[router.Key], cm.Immutable = "{}", new(true)
			return admin.Update(t.Context(), cm)
		}, "had been edited"},
		{"a key taken by binary data", func(cm *corev1.ConfigMap) error {
			cm.Data, cm.BinaryData = nil, map[string][]byte{router.Key: {0xff}}
			return admin.Update(t.Context(), cm)
		}, "had been edited"},
		{"an edit that leaves no room", func(cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{"more": strings.Repeat("x", corev1.MaxSecretSize)}
			return admin.Update(t.Context(), cm)
		}, "had been edited"},
		{"a deletion", func(cm *corev1.ConfigMap) error { return admin.Delete(t.Context(), cm) }, "had been deleted"},
	}
	for _, test := range tests {
		var cm corev1.ConfigMap
		if err := w.get(&cm, router.ConfigMapName); err != nil {
			t.Fatal(err)
		}
		before := cm.ResourceVersion
		if err := test.do(&cm); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		w.eventually("waiting until "+test.name+" is undone", func() error {
			_, got, err := w.document()
			switch {
			case err != nil:
				return err
			case got.ResourceVersion == before || got.Data[router.Key] != want.Data[router.Key] || got.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy:
				return fmt.Errorf("got %v with the labels %v", got.Data, got.Labels)
			}
			return nil
		})
		w.eventually("waiting for the event about "+test.name, func() error {
			var events eventsv1.EventList
			if err := admin.List(t.Context(), &events, client.InNamespace(w.namespace)); err != nil {
				return err
			}
			for _, e := range events.Items {
				if e.Reason == "Restored" && e.Regarding.Name == router.ConfigMapName && strings.Contains(e.Note, test.says) {
					return nil
				}
			}
			return fmt.Errorf("none of %d events says that it %s", len(events.Items), test.says)
		})
	}
}

func TestOurOwnChangesAreNoDrift(t *testing.T) {
	w := newWorld(t, Intervals{})
	w.create(goodProvider("local"), goodPolicy("agents"))
	p := w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	for i := range 3 {
		p.Spec.Limits = &v1alpha1.Limits{Image: &v1alpha1.ImageLimits{MaxBytes: new(int64(1000 + i))}}
		if err := admin.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		p = w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	}
	w.stop()
	doc, _, err := w.document()
	if err != nil || doc.Profiles[0].Limits.Image.MaxBytes != 1002 {
		t.Errorf("got the document %+v (%v)", doc, err)
	}
	var events eventsv1.EventList
	if err := admin.List(t.Context(), &events, client.InNamespace(w.namespace)); err != nil || len(events.Items) != 0 {
		t.Errorf("got the events %+v (%v), want none", events.Items, err)
	}
}

func TestAForeignConfigMapIsNotAdopted(t *testing.T) {
	w := newWorld(t, quick)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: router.ConfigMapName}, Data: map[string]string{router.Key: "theirs"}}
	w.create(foreign, goodProvider("local"), goodPolicy("agents"))
	p := w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonConflict)
	if p.Status.Router != nil {
		t.Errorf("the status names a router: %+v", p.Status.Router)
	}
	var cm corev1.ConfigMap
	if err := w.get(&cm, router.ConfigMapName); err != nil || cm.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the ConfigMap was touched: %+v (%v)", cm, err)
	}
	if err := admin.Delete(t.Context(), &cm); err != nil {
		t.Fatal(err)
	}
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestARouterThatIsTooLargeLeavesThePreviousOne(t *testing.T) {
	w := newWorld(t, Intervals{})
	w.create(goodProvider("local"), goodPolicy("agents"))
	before := w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	for i := range 30 { // 64 models of some 700 bytes each
		p := goodProvider(fmt.Sprintf("large-%02d", i))
		p.Spec.Models = nil
		for j := range 64 {
			types := []string{}
			for k := range 16 {
				types = append(types, fmt.Sprintf("image/x-%02d", k))
			}
			p.Spec.Models = append(p.Spec.Models, v1alpha1.Model{Name: fmt.Sprintf("%s-%02d", strings.Repeat("m", 240), j),
				ImageInput: new(true), Limits: &v1alpha1.ModelLimits{MediaTypes: types}})
		}
		w.create(p)
	}
	after := w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonRouterTooLarge)
	_, cm, err := w.document()
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.Router == nil || after.Status.Router.Digest != router.Digest([]byte(cm.Data[router.Key])) {
		t.Errorf("the status names %+v, the API server holds %s", after.Status.Router, router.Digest([]byte(cm.Data[router.Key])))
	}
	if before.Status.Router.Digest == "" {
		t.Error("the first digest is empty")
	}
}

func TestANamespaceThatStopsBeingServedGrantsNothingAndIsCleanedUpLater(t *testing.T) {
	w := newWorld(t, quick)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent", Labels: map[string]string{v1alpha1.InjectedLabel: "true"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}}}
	policy := goodPolicy("agents")
	w.create(goodProvider("local"), policy, pod)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	if err := admin.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	w.eventually("waiting for a router without profiles", func() error {
		doc, _, err := w.document()
		if err != nil {
			return err
		}
		if len(doc.Profiles) != 0 || len(doc.Providers) != 0 {
			return fmt.Errorf("got %+v", doc)
		}
		return nil
	})
	time.Sleep(10 * quick.Leftover)
	if _, _, err := w.document(); err != nil {
		t.Errorf("the router went while an injected pod was left: %v", err)
	}
	ended := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))
	if err := admin.Status().Patch(t.Context(), pod, ended); err != nil {
		t.Fatal(err)
	}
	w.eventually("waiting for both ConfigMaps to go", func() error {
		var env corev1.ConfigMap
		if _, _, err := w.document(); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the router is still there"), err)
		}
		if err := w.get(&env, compile.EnvConfigMapName); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the variables are still there"), err)
		}
		if err := w.get(&env, compile.BaseURLsConfigMapName); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the base URLs are still there"), err)
		}
		return nil
	})
}

func TestANamespaceThatStoppedBeingServedMeanwhileIsCleanedUpAtTheStart(t *testing.T) {
	w := newWorld(t, Intervals{})
	policy := goodPolicy("agents")
	w.create(goodProvider("local"), policy)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.stop()
	if err := admin.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	w.start(Intervals{})
	w.eventually("waiting for the router to go", func() error {
		if _, _, err := w.document(); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("still there"), err)
		}
		return nil
	})
}

func TestANamespaceThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	w := newWorld(t, Intervals{})
	w.create(goodProvider("local"), goodPolicy("agents"))
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	// Nobody empties namespaces here, so this one stays in that state.
	if err := admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: router.ConfigMapName}}); err != nil {
		t.Fatal(err)
	}
	p := w.policyCondition("agents", v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonPending)
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgrammed); !strings.Contains(c.Message, "being deleted") {
		t.Errorf("got the message %q", c.Message)
	}
}

func TestARestartAndTheSameObjectsAgainWriteNothing(t *testing.T) {
	w := newWorld(t, Intervals{})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}},
		keyedProvider("local", "key"), goodProvider("other"), goodPolicy("agents"), goodPolicy("overridden"))
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.policyCondition("overridden", v1alpha1.ConditionOverridden, metav1.ConditionTrue, v1alpha1.ReasonEqualSelector)
	w.providerCondition("local", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.providerCondition("other", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	time.Sleep(300 * time.Millisecond) // whatever is still under way
	before := w.versions()
	w.stop()

	w.start(quick) // keys are read again all the time
	for _, o := range []client.Object{keyedProvider("local", "key"), goodProvider("other"), goodPolicy("agents"), goodPolicy("overridden")} {
		w.applyAgain(o)
	}
	time.Sleep(time.Second)
	if n := w.writes.Load(); n != 0 {
		t.Errorf("the controllers wrote %d times", n)
	}
	if after := w.versions(); after != before {
		t.Errorf("resourceVersions changed:\n%s\n%s", before, after)
	}
	// The controllers were at work all the time.
	w.create(goodPolicy("later"))
	w.policyCondition("later", v1alpha1.ConditionOverridden, metav1.ConditionTrue, v1alpha1.ReasonEqualSelector)
}

// versions lists the resourceVersions of all that the controllers write.
func (w *world) versions() string {
	w.Helper()
	var b strings.Builder
	for _, list := range []client.ObjectList{&v1alpha1.VisionPolicyList{}, &v1alpha1.VisionProviderList{}, &corev1.ConfigMapList{}} {
		if err := admin.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			w.Fatal(err)
		}
		for _, item := range items {
			o := item.(client.Object)
			fmt.Fprintf(&b, "%T %s %s; ", o, o.GetName(), o.GetResourceVersion())
		}
	}
	return b.String()
}

// applyAgain writes an object as it is already.
func (w *world) applyAgain(o client.Object) {
	w.Helper()
	live := o.DeepCopyObject().(client.Object)
	if err := w.get(live, o.GetName()); err != nil {
		w.Fatal(err)
	}
	if err := admin.Update(w.Context(), live); err != nil {
		w.Fatal(err)
	}
}
