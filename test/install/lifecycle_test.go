// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	release   = "vision-operator"
	policies  = "visionpolicies.visionoperator.dev"
	providers = "visionproviders.visionoperator.dev"
	unowned   = "invalid ownership metadata"
	crds      = root + "/charts/vision-operator-crds"
	owner     = "meta.helm.sh/release-name"
)

// helm runs Helm against the API server.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/tools/run"),
		append([]string{"helm", "--kubeconfig", kubeconfig, "--namespace", namespaces[0]}, args...)...)
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	return said.String(), err
}

func must(t *testing.T, args ...string) {
	t.Helper()
	if said, err := helm(t, args...); err != nil {
		t.Fatalf("running helm %s: %v: %s", strings.Join(args, " "), err, said)
	}
}

// definition is a CRD as the API server has it, in a cleanup too.
func definition(t *testing.T, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("apiextensions.k8s.io/v1")
	found.SetKind("CustomResourceDefinition")
	return found, server.Get(context.WithoutCancel(t.Context()), types.NamespacedName{Name: name}, found)
}

// owned fails unless a release owns both CRDs.
func owned(t *testing.T, by string) {
	t.Helper()
	for _, name := range []string{policies, providers} {
		found, err := definition(t, name)
		if err != nil || found.GetAnnotations()[owner] != by {
			t.Errorf("%s: owned by %q (%v), want %q", name, found.GetAnnotations()[owner], err, by)
		}
	}
}

// empty removes the CRDs and waits until they are gone.
func empty(t *testing.T) {
	t.Helper()
	for _, name := range []string{policies, providers} {
		for {
			found, err := definition(t, name)
			if apierrors.IsNotFound(err) {
				break
			}
			if err == nil {
				err = client.IgnoreNotFound(server.Delete(context.WithoutCancel(t.Context()), found))
			}
			if err != nil {
				t.Fatalf("deleting %s: %v", name, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// declared makes a policy, or says whether the one that was made is there.
func declared(t *testing.T, create bool) {
	t.Helper()
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"providers": []any{map[string]any{"name": "ocr"}}, "defaultModel": "ocr@local/tesseract"}}}
	policy.SetAPIVersion("visionoperator.dev/v1alpha1")
	policy.SetKind("VisionPolicy")
	policy.SetNamespace("team-a")
	policy.SetName("kept")
	act := func() error { return server.Get(t.Context(), client.ObjectKeyFromObject(policy), policy) }
	if create {
		act = func() error { return server.Create(t.Context(), policy) }
	}
	var err error
	for range 100 { // the API server serves a new kind a moment after it took it
		if err = act(); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the policy: %v", err)
}

func TestAReleaseTakesOverTheDefinitionsOfACRDsFolderAndFindsThemAgain(t *testing.T) {
	t.Cleanup(func() { empty(t) })
	// The chart of 0.1, whose CRDs, in its folder crds/, are no release's.
	must(t, "install", release, root+"/test/e2e/testdata/vision-operator-0.1.0.tgz")
	owned(t, "")
	declared(t, true)

	if said, err := helm(t, "upgrade", release, chart); err == nil || !strings.Contains(said, unowned) {
		t.Errorf("upgrading without taking ownership: got %v: %s, want %q", err, said, unowned)
	}
	must(t, "upgrade", release, chart, "--take-ownership")
	owned(t, release)
	declared(t, false)

	must(t, "uninstall", release)
	nothingStays(t)
	declared(t, false)

	must(t, "install", release, chart)
	owned(t, release)
	declared(t, false)

	// The definitions move to their own chart.
	must(t, "upgrade", release, chart, "--reuse-values", "--set", "crds.enabled=false")
	declared(t, false)
	must(t, "install", "vision-operator-crds", crds, "--take-ownership")
	owned(t, "vision-operator-crds")
	must(t, "uninstall", release)
	must(t, "uninstall", "vision-operator-crds")
	declared(t, false)
}

func TestTheDefinitionsGoWithAReleaseThatDoesNotKeepThem(t *testing.T) {
	t.Cleanup(func() { empty(t) })
	must(t, "install", release, chart)
	must(t, "upgrade", release, chart, "--set", "crds.keep=false")
	must(t, "uninstall", release)
	for range 100 {
		if _, err := definition(t, policies); apierrors.IsNotFound(err) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s stays", policies)
}

// nothingStays fails when a webhook or an admission policy of the chart is there,
// which pods or ConfigMaps would go on waiting for.
func nothingStays(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		left := &unstructured.UnstructuredList{}
		left.SetAPIVersion("admissionregistration.k8s.io/v1")
		left.SetKind(kind + "List")
		if err := server.List(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		for _, object := range left.Items {
			t.Errorf("%s %s stays", kind, object.GetName())
		}
	}
}
