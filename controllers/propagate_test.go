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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// newPod makes a pod as injection leaves it.
func (w *world) newPod(name, profile string, keys ...string) *corev1.Pod {
	w.Helper()
	quoted := ""
	for i, key := range keys {
		quoted += strings.Repeat(",", min(i, 1)) + fmt.Sprintf("%q", key)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.InjectedLabel: "true"}, Annotations: map[string]string{
			v1alpha1.InjectionAnnotation: fmt.Sprintf(`{"profile":%q,"hash":"sha256:00","image":"runtime:v1","keys":[%s]}`, profile, quoted)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
	}
	w.create(pod)
	return pod
}

// stamped waits until a pod has a stamp of the published digest other than one
// before, and returns it.
func (w *world) stamped(name, before string) string {
	w.Helper()
	var stamp string
	w.eventually("waiting for the stamp of "+name, func() error {
		var pod corev1.Pod
		_, cm, err := w.document()
		if err := errors.Join(err, w.get(&pod, name)); err != nil {
			return err
		}
		stamp = pod.Annotations[v1alpha1.RouterDigestAnnotation]
		if digest := router.Digest([]byte(cm.Data[router.Key])); stamp == before || !strings.HasPrefix(stamp, digest+"/") {
			return fmt.Errorf("got %q, the digest is %s", stamp, digest)
		}
		return nil
	})
	return stamp
}

func TestPodsAreStampedOnceForEachRouterAndEachRotationOfAKey(t *testing.T) {
	w := newWorld(t, quick)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}}
	p := goodPolicy("agents")
	w.create(secret, keyedProvider("local", "key"), p)
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.newPod("one", "policy/agents", w.namespace+"/local=key/api-key")
	w.newPod("two", "policy/agents", w.namespace+"/local=key/api-key")
	first := w.stamped("one", "")
	w.stamped("two", "")

	if err := w.get(p, "agents"); err != nil {
		t.Fatal(err)
	}
	p.Spec.PerCallModel = new(v1alpha1.PerCallModelDenied)
	if err := admin.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	second := w.stamped("one", first)
	w.stamped("two", first)

	secret.Data["api-key"] = []byte("sk-2")
	if err := admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	third := w.stamped("one", second)
	w.stamped("two", second)
	digest := func(stamp string) string { d, _, _ := strings.Cut(stamp, "/"); return d }
	if digest(third) != digest(second) || digest(second) == digest(first) {
		t.Errorf("got the stamps %s, %s, %s", first, second, third)
	}
	time.Sleep(500 * time.Millisecond)
	if n := w.stamps.Load(); n != 6 {
		t.Errorf("the pods' status was written %d times, want 6", n)
	}
}

func TestTheCountsOfPodsTellWhichAreOutdated(t *testing.T) {
	w := newWorld(t, quick)
	w.create(goodProvider("local"), goodPolicy("agents"))
	w.newPod("one", "policy/agents")
	w.newPod("two", "policy/gone")
	counts := func(matched, outdated int32) {
		t.Helper()
		w.eventually("waiting for the counts", func() error {
			var p v1alpha1.VisionPolicy
			if err := w.get(&p, "agents"); err != nil {
				return err
			}
			if p.Status.Pods == nil || *p.Status.Pods != (v1alpha1.PodCounts{Matched: matched, Outdated: outdated}) {
				return fmt.Errorf("got %+v, want %d and %d", p.Status.Pods, matched, outdated)
			}
			return nil
		})
	}
	counts(1, 0)
	three := w.newPod("three", "policy/agents")
	counts(2, 0)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}}, keyedProvider("late", "key"))
	counts(2, 2) // neither mounts the new key
	if err := admin.Delete(t.Context(), three, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	counts(1, 1)
	other := goodPolicy("other")
	other.Spec.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	w.create(other)
	counts(1, 1)
}

// refusing makes the API server refuse to have a pod's status patched.
func refusing(t *testing.T, w *world, pod string) {
	t.Helper()
	policy := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + w.namespace + `}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods/status]}
  validations:
    - {expression: "object.metadata.namespace != '` + w.namespace + `' || object.metadata.name != '` + pod + `'", message: not this one}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + w.namespace + `}
spec: {policyName: ` + w.namespace + `, validationActions: [Deny]}
`
	if _, err := cluster.Kubectl(t.Context(), policy, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	w.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}}})
	w.eventually("waiting until the API server refuses", func() error {
		target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod}}
		err := admin.Status().Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)))
		if err == nil {
			return errors.New("it does not")
		}
		return nil
	})
}

func TestAStampThatIsRefusedIsCountedAndNotRepeatedAndHoldsUpNoOther(t *testing.T) {
	w := newWorld(t, quick)
	refusing(t, w, "stubborn")
	w.create(goodProvider("local"), goodPolicy("agents"))
	w.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.InjectedLabel+`":"true"}}}`))
	if err := admin.Patch(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "stubborn"}}, label); err != nil {
		t.Fatal(err)
	}
	w.newPod("willing", "policy/agents")
	w.stamped("willing", "")
	time.Sleep(500 * time.Millisecond)
	if n := w.stamps.Load(); n != 2 {
		t.Errorf("the pods' status was written %d times, want 2: one written, one refused", n)
	}
}

func TestOnceSettledNothingIsWrittenWhateverOthersAnnotate(t *testing.T) {
	labels := map[string]string{"tier": fmt.Sprint(time.Now().UnixNano())}
	w := newWideWorld(t, Intervals{CredentialRetry: 200 * time.Millisecond, CredentialRefresh: 200 * time.Millisecond, Pods: 500 * time.Millisecond}, 2, labels)
	w.newBaseline("settled", "tier", labels["tier"])
	all := append([]string{w.namespace}, w.others...)
	for _, ns := range all {
		v := w.in(ns)
		v.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}},
			keyedProvider("local", "key"), keyedProvider("zlate", "missing"), goodPolicy("agents"), goodPolicy("overridden"))
		v.newPod("agent", "policy/agents")
	}
	for _, ns := range all {
		v := w.in(ns)
		v.policyCondition("agents", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		v.stamped("agent", "")
	}
	w.in(operatorNamespace).policyCondition("settled", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	time.Sleep(5 * time.Second)

	before, deadline := w.writes.Load(), time.Now().Add(20*time.Second)
	for i := 0; time.Now().Before(deadline); i++ {
		w.annotateAll(all, fmt.Sprint(i))
		time.Sleep(500 * time.Millisecond)
	}
	if n := w.writes.Load() - before; n != 0 {
		t.Errorf("the controllers wrote %d times", n)
	}
	var events eventsv1.EventList
	if err := admin.List(t.Context(), &events, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Regarding.Kind == "VisionPolicy" {
			t.Errorf("a policy that was well from the start has the event %s: %s", e.Reason, e.Note)
		}
	}
}

// annotateAll is a foreign controller that touches all there is.
func (w *world) annotateAll(namespaces []string, value string) {
	w.Helper()
	touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/touched":"`+value+`"}}}`))
	for _, ns := range namespaces {
		at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
		for _, o := range []client.Object{
			&v1alpha1.VisionPolicy{ObjectMeta: at("agents")}, &v1alpha1.VisionProvider{ObjectMeta: at("local")}, &corev1.Pod{ObjectMeta: at("agent")},
			&corev1.ConfigMap{ObjectMeta: at(router.ConfigMapName)}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
		} {
			if err := admin.Patch(w.Context(), o, touch); err != nil {
				w.Fatal(err)
			}
		}
	}
	if err := admin.Patch(w.Context(), &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "settled"}}, touch); err != nil {
		w.Fatal(err)
	}
}
