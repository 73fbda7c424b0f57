// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// The whole operator, installed from config/local and run as its service
// account: it gets ready, serves both webhooks, compiles and reports, and its
// admission policies let it.
func TestTheOperatorRunsFromConfigLocal(t *testing.T) {
	ctx := t.Context()
	team := fresh("team")
	webhooks := freeAddress(t)
	admin := install(t, webhooks)
	operator := startOperator(t, "--webhook-listen", webhooks)
	operator.waitReady(t)

	create(t, admin, namespace(team), sampleProvider(team), samplePolicy(team))
	waitFor(t, team, "Ready", "visionprovider/local")
	waitFor(t, team, "Ready", "visionpolicy/agents")
	var cm corev1.ConfigMap
	if err := admin.Get(ctx, client.ObjectKey{Namespace: team, Name: router.ConfigMapName}, &cm); err != nil {
		t.Error(err)
	} else if doc, err := router.Parse([]byte(cm.Data[router.Key])); err != nil || len(doc.Profiles) != 1 {
		t.Errorf("got the document %+v (%v)", doc, err)
	}
	if err := admin.Delete(ctx, &cm); !apierrors.IsForbidden(err) {
		t.Errorf("an administrator deletes the router: got %v, want a refusal", err)
	}

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "agent", Labels: map[string]string{v1alpha1.InjectLabel: v1alpha1.InjectEnabled}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}}}
	create(t, admin, pod)
	if len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].Image != "registry.example.com/runtime:test" || pod.Labels[v1alpha1.InjectedLabel] != "true" {
		t.Errorf("the pod was not injected: %+v", pod)
	}
	bad := sampleProvider(team)
	bad.Name, bad.Spec.Endpoints[0].CABundle = "bad", "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n"
	if err := admin.Create(ctx, bad); err == nil || !strings.Contains(err.Error(), "spec.endpoints[0].caBundle") {
		t.Errorf("a bad CA bundle: got %v, want a refusal that names the field", err)
	}

	if err := operator.stop(); err != nil {
		t.Errorf("the operator ended with %v", err)
	}
	cleanLog(t, operator)
}

// cleanLog holds a log to be of JSON and without errors, those apart that the end
// of the process makes: requests cut short, and the lead given up.
func cleanLog(t *testing.T, p *process) {
	t.Helper()
	for line := range strings.Lines(p.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has a line that is not JSON: %s", line)
		}
		if strings.Contains(line, `"level":"ERROR"`) && !strings.Contains(line, context.Canceled.Error()) &&
			!strings.Contains(line, "after stop sequence was engaged") {
			t.Errorf("the log has an error: %s", line)
		}
	}
}

func TestAReplicaThatIsToldToEndHandsTheLeadOver(t *testing.T) {
	team := fresh("handed-over")
	admin := install(t, freeAddress(t))
	first := startOperator(t)
	holder := leader(t, admin, "")
	second := startOperator(t)
	first.waitReady(t)
	second.waitReady(t)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	watched, err := admin.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace("vision-system"))
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	if err := first.stop(); err != nil {
		t.Errorf("the leader ended with %v", err)
	}
	released := false
	for event := range watched.ResultChan() {
		lease, ok := event.Object.(*coordinationv1.Lease)
		if !ok {
			continue
		}
		switch held := value(lease.Spec.HolderIdentity); held {
		case holder:
		case "":
			released = true
		default:
			if !released {
				t.Errorf("%s took the lead from %s, which had not released it", held, holder)
			}
			create(t, admin, namespace(team), sampleProvider(team), samplePolicy(team))
			waitFor(t, team, "Ready", "visionpolicy/agents")
			cleanLog(t, first)
			return
		}
	}
	t.Fatalf("nobody took the lead (released: %t)", released)
}

// leader waits until somebody other than before leads, and returns who.
func leader(t *testing.T, admin client.Client, before string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var lease coordinationv1.Lease
		err := admin.Get(t.Context(), client.ObjectKey{Namespace: "vision-system", Name: v1alpha1.ManagedBy}, &lease)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if held := value(lease.Spec.HolderIdentity); held != "" && held != before {
			return held
		}
	}
	t.Fatal("nobody leads")
	return ""
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// In namespaced mode the operator's roles hold in its namespaces alone, as the
// chart binds them; that it gets ready shows that it asks for no more.
func TestAnOperatorOfSomeNamespacesLeavesTheOthersAlone(t *testing.T) {
	ctx := t.Context()
	watched := fresh("watched")
	unwatched := fresh("unwatched")
	admin := install(t, freeAddress(t))
	t.Cleanup(func() { install(t, "127.0.0.1:9443") }) // the cluster-wide bindings are back
	create(t, admin, namespace(watched), namespace(unwatched))
	for _, name := range []string{"vision-operator-read", "vision-operator-namespaces", "vision-operator-secrets"} {
		if err := admin.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
		for _, namespace := range []string{"vision-system", watched} {
			create(t, admin, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + watched},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "vision-system", Name: v1alpha1.ManagedBy}},
			})
		}
	}
	operator := startOperator(t, "--watch-namespaces", watched)
	operator.waitReady(t)
	for _, namespace := range []string{unwatched, watched} {
		create(t, admin, sampleProvider(namespace), samplePolicy(namespace))
	}
	waitFor(t, watched, "Ready", "visionprovider/local")
	waitFor(t, watched, "Ready", "visionpolicy/agents")
	policy := &v1alpha1.VisionPolicy{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: unwatched, Name: "agents"}, policy); err != nil || len(policy.Status.Conditions) > 0 {
		t.Errorf("the policy of another namespace has the conditions %v (%v), want none", policy.Status.Conditions, err)
	}
	if err := operator.stop(); err != nil {
		t.Errorf("the operator ended with %v", err)
	}
	cleanLog(t, operator)
}

// Its roles would let it read the Secret: it does not ask.
func TestAnOperatorWithoutSecretAccessReadsNone(t *testing.T) {
	team := fresh("secretless")
	admin := install(t, freeAddress(t))
	startOperator(t, "--secret-access", "none").waitReady(t)
	provider := sampleProvider(team)
	provider.Spec.Credentials = v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "key", Key: "api-key"}}
	create(t, admin, namespace(team), provider, samplePolicy(team),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "key"}, Data: map[string][]byte{"api-key": []byte("k")}})
	waitFor(t, team, "CredentialsResolved=Unknown", "visionprovider/local")
	waitFor(t, team, "Programmed", "visionpolicy/agents")
	var status v1alpha1.VisionProvider
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(provider), &status); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(status.Status.Conditions, v1alpha1.ConditionCredentialsResolved); c == nil || c.Reason != v1alpha1.ReasonSecretAccessDenied {
		t.Errorf("got %+v, want the reason %s", c, v1alpha1.ReasonSecretAccessDenied)
	}
}

// fresh is a name that no other test of this process has.
func fresh(name string) string { return fmt.Sprintf("%s-%d", name, counter.Add(1)) }

var counter atomic.Int64

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
