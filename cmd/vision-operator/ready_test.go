// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAReplicaThatHasNotReadAKindIsNotReadyAndEndsWhenToldTo(t *testing.T) {
	admin := install(t, freeAddress(t))
	meta := metav1.ObjectMeta{Name: "reads-providers-alone"}
	create(t, admin, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"visionoperator.dev"}, Resources: []string{"visionproviders"}, Verbs: []string{"list", "watch"}}}})
	create(t, admin, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: meta.Name}}})
	operator := startOperator(t, "--kubeconfig", kubeconfigOf(t, meta.Name), "--webhook-listen", off, "--leader-elect=false")

	last := ""
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get("http://" + operator.health + "/readyz?verbose=1") //nolint:noctx // the loop bounds it
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if last = string(body); err != nil || !strings.Contains(last, "[+]visionproviders ok") {
			continue
		}
		if resp.StatusCode == http.StatusOK || !strings.Contains(last, "[-]visionpolicies failed") {
			t.Errorf("got status %d: %s", resp.StatusCode, last)
		}
		ended := make(chan error, 1)
		go func() { ended <- operator.stop() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the operator ended with %v", err)
			}
		case <-time.After(30 * time.Second): // a pod's grace
			_ = operator.signal(os.Kill)
			t.Errorf("told to end, the operator goes on: %v\n%s", <-ended, operator.log)
		}
		return
	}
	t.Fatalf("the operator has not read what it may: %s\n%s", last, operator.log)
}
