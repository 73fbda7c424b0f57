// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

func TestAPodThatOnlyABaselineServesIsInjectedWithTheBaselinesProfile(t *testing.T) {
	u := newUser(t, restricted, "tier=baseline-of-pods")
	platform := policy(v1alpha1.AdmissionEnforce)
	platform.Name, platform.Namespace = "platform", operatorNamespace
	platform.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "baseline-of-pods"}}
	if err := u.Create(t.Context(), platform); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Delete(context.Background(), platform); err != nil {
			t.Error(err)
		}
	})
	profile := func(name string) string {
		t.Helper()
		pod := agent(optIn)
		pod.Name = name
		u.create(pod)
		if runtimeOf(pod) == nil {
			t.Fatalf("no %s in pod %s; warnings: %s", inject.ContainerName, name, u.warned.all())
		}
		injection, err := inject.ParseInjection(pod.Annotations[v1alpha1.InjectionAnnotation])
		if err != nil || injection.Image == "" || len(injection.Keys) != 1 {
			t.Errorf("got injection %+v (%v)", injection, err)
		}
		return injection.Profile
	}
	u.create(provider())
	if got := profile("first"); got != "baseline/platform" {
		t.Errorf("got the profile %q", got)
	}
	u.create(policy(v1alpha1.AdmissionWarn)) // a moment before its pod, as in one file
	if got := profile("second"); got != "policy/default" {
		t.Errorf("got the profile %q beside a policy of the namespace", got)
	}
}
