// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// oldChart is the chart as it was before its CRDs became templates and the webhook
// a Deployment of its own.
const oldChart = "test/e2e/testdata/vision-operator-0.1.0.tgz"

// values are those of every install of the present chart: the images that were loaded.
func (w *world) values() []string {
	return []string{
		"--namespace", operatorNamespace, "--wait", "--timeout", "3m",
		"--set", "image.tag=" + w.version, "--set", "image.pullPolicy=Never",
		"--set", "runtime.image.tag=" + w.version, "--set", "runtime.image.pullPolicy=Never",
		"--set", "ocr.enabled=true", "--set", "ocr.image.tag=" + w.version, "--set", "ocr.image.pullPolicy=Never",
		"--set", "watchdog.interval=5s",
	}
}

// ourNamespaceIsRestricted makes the operator's namespace under Pod Security's
// strictest level, enforced.
func (w *world) ourNamespaceIsRestricted(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := w.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	privileged := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "root", Namespace: operatorNamespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "root", Image: "localhost/vision-e2e-agent:1"}}},
	}
	if err := w.Create(t.Context(), privileged, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Fatalf("got %v, want that Pod Security refuses a pod without a security context", err)
	}
}

func (w *world) theOldChartIsInstalled(t *testing.T) {
	w.helm(t, "install", release, oldChart, "--namespace", operatorNamespace, "--wait", "--timeout", "3m",
		"--set", "image.repository=ghcr.io/visionoperator/vision-operator", "--set", "image.tag="+w.version, "--set", "image.pullPolicy=Never",
		"--set", "runtime.image=ghcr.io/visionoperator/vision-runtime:"+w.version, "--set", "runtime.pullPolicy=Never",
		"--set", "ocr.enabled=true", "--set", "ocr.image=ghcr.io/visionoperator/vision-ocr:"+w.version, "--set", "ocr.pullPolicy=Never")
}

// theChartIsUpgraded replaces the old chart by the present one. No agent's pod
// restarts, and nothing that statuses say is lost.
func (w *world) theChartIsUpgraded(t *testing.T) {
	pod, before := w.agent(t, team), w.conditions(t)
	w.helm(t, append([]string{"upgrade", release, "charts/vision-operator", "--take-ownership"}, w.values()...)...)
	after := w.agent(t, team)
	if after.UID != pod.UID || restarts(after) != restarts(pod) {
		t.Error("the agent's pod was made again, or its runtime restarted")
	}
	if now := w.conditions(t); now != before {
		t.Errorf("the policy's conditions were %s and are %s", before, now)
	}
	for _, name := range []string{"vision-operator", "vision-operator-webhook", "vision-ocr"} {
		w.rolledOut(t, operatorNamespace, name)
	}
	list := &networkingv1.NetworkPolicyList{}
	if err := w.List(t.Context(), list, client.InNamespace(operatorNamespace)); err != nil || len(list.Items) < 2 {
		t.Errorf("%d NetworkPolicies in %s (%v)", len(list.Items), operatorNamespace, err)
	}
}

// conditions are the types and statuses of the policy's conditions, and when they
// last changed.
func (w *world) conditions(t *testing.T) string {
	t.Helper()
	policy := &v1alpha1.VisionPolicy{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "default"}, policy); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range policy.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s since %s", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339)))
	}
	return strings.Join(out, ", ")
}

func (w *world) theChartsOwnTestPasses(t *testing.T) {
	t.Log(w.helm(t, "test", release, "--namespace", operatorNamespace, "--timeout", "2m"))
}

// theChartIsUninstalled: pods are created as if the operator had never been there,
// what users declared stays, and a second install finds it.
func (w *world) theChartIsUninstalled(t *testing.T) {
	w.helm(t, "uninstall", release, "--namespace", operatorNamespace, "--wait", "--timeout", "2m")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "after", Namespace: team, Labels: map[string]string{"team": "a", v1alpha1.InjectLabel: v1alpha1.InjectEnabled}},
		Spec:       *w.agent(t, team).Spec.DeepCopy(),
	}
	pod.Spec.InitContainers, pod.Spec.NodeName = nil, ""
	pod.Spec.Containers[0].Args = []string{"serve", ":8080"}
	if err := w.Create(t.Context(), pod); err != nil {
		t.Fatalf("a pod after the operator's removal: %v", err)
	}
	if err := w.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	left := w.kubectl(t, "", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,clusterroles", "-l", "app.kubernetes.io/name=vision-operator", "-o", "name")
	if strings.TrimSpace(left) != "" {
		t.Errorf("the removal left %s", left)
	}
	before := w.conditions(t)
	w.helm(t, append([]string{"install", release, "charts/vision-operator"}, w.values()...)...)
	if now := w.conditions(t); now != before {
		t.Errorf("the policy's conditions were %s and are %s", before, now)
	}
}

// rightsOf tells what each of our ServiceAccounts may do.
func (w *world) rightsOf(t *testing.T) {
	list := &corev1.ServiceAccountList{}
	if err := w.List(t.Context(), list, client.InNamespace(operatorNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, account := range list.Items {
		if account.Name == "default" {
			continue
		}
		user := "system:serviceaccount:" + operatorNamespace + ":" + account.Name
		for _, namespace := range []string{operatorNamespace, team} {
			t.Logf("%s in %s:\n%s", user, namespace, w.kubectl(t, "", "auth", "can-i", "--list", "--as", user, "-n", namespace))
		}
		out, _ := w.command(t.Context(), "", "kubectl", "auth", "can-i", "patch", "pods", "--all-namespaces", "--as", user)
		if strings.TrimSpace(out) != "no" {
			t.Errorf("%s may patch pods: %s", user, out)
		}
	}
}
