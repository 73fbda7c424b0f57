// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
)

func TestWithoutTheBinariesTheSuiteIsToldWhichCommandBuildsThem(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", folder)

	_, err := Start(Options{})

	var missing *MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("Start with an empty assets folder: got error %v, want a *MissingError", err)
	}
	if missing.Folder != folder || missing.Binary != "kube-apiserver" {
		t.Errorf("got %+v, want folder %s and binary kube-apiserver", missing, folder)
	}
	if !strings.Contains(err.Error(), "`make controlplane`") {
		t.Errorf("error %q does not name the command to run", err)
	}
}

func TestABinaryThatCannotBeRunCountsAsMissing(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	for _, binary := range binaries {
		mode := os.FileMode(0o755)
		if binary == "kubectl" {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(folder, binary), nil, mode); err != nil {
			t.Fatal(err)
		}
	}

	_, err := Start(Options{})

	var missing *MissingError
	if !errors.As(err, &missing) || missing.Binary != "kubectl" {
		t.Fatalf("got error %v, want a *MissingError for kubectl", err)
	}
}

func TestWithoutCRDsTheSuiteIsToldWhichCommandGeneratesThem(t *testing.T) {
	_, err := describe(t.TempDir(), t.TempDir(), Options{})

	if err == nil || !strings.Contains(err.Error(), "`make manifests`") {
		t.Fatalf("got error %v, want one that names `make manifests`", err)
	}
}

func TestAClusterServesTheVersionThatTheModulesPinTheCRDsAndItsUsers(t *testing.T) {
	cluster, err := Start(Options{
		APIServerArgs: map[string][]string{"disable-admission-plugins": nil, "profiling": {"false"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(cluster.Kubeconfig()); !os.IsNotExist(err) {
			t.Errorf("the kubeconfig outlived the cluster: %v", err)
		}
	})

	version, err := discovery.NewDiscoveryClientForConfigOrDie(cluster.Config).ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if pinned := requiredKubernetes(t); version.GitVersion != pinned {
		t.Errorf("the API server calls itself %s, want %s", version.GitVersion, pinned)
	}

	ctx := context.Background()
	output, err := cluster.Kubectl(ctx, "", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if err != nil || output != "admin" {
		t.Errorf("kubectl is %q (%v), want admin", output, err)
	}
	output, err = cluster.Kubectl(ctx, "", "api-resources", "--api-group=visionoperator.dev", "-o", "name")
	if want := "visionpolicies.visionoperator.dev\nvisionproviders.visionoperator.dev\n"; err != nil || output != want {
		t.Errorf("the API server serves %q (%v), want %q", output, err, want)
	}
	_, err = cluster.Kubectl(ctx, "apiVersion: v1\nkind: Namespace\nmetadata: {name: Not_A_Name}\n", "apply", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("applying a wrong name: got error %v, want one that carries the server's words", err)
	}
	guest, err := cluster.User("guest")
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubernetes.NewForConfigOrDie(guest).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a user without any role lists namespaces: got error %v, want Forbidden", err)
	}
}

// requiredKubernetes reads which k8s.io/kubernetes the control plane's module requires.
func requiredKubernetes(t *testing.T) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(root, "hack", "controlplane", "kubernetes", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(module)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "k8s.io/kubernetes" {
			return fields[1]
		}
	}
	t.Fatal("the control plane's module requires no k8s.io/kubernetes")
	return ""
}
