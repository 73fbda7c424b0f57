// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart tests that the two ways to install, config/default and the Helm
// chart, say the same: both are rendered, by kubectl and Helm themselves.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const root = "../.."

// objects are manifests by "Kind/namespace/name".
type objects map[string]map[string]any

func TestTheChartSaysWhatConfigSays(t *testing.T) {
	same(t, kustomize(t, filepath.Join(root, "config/default")), helm(t, "vision-system"))
}

// same compares what config and the chart say.
func same(t *testing.T, config, chart objects) {
	t.Helper()
	// Helm makes the namespace when asked to (--create-namespace).
	delete(config, "Namespace//vision-system")
	for _, all := range []objects{config, chart} {
		for _, object := range all {
			normalize(object)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(config)), slices.Sorted(maps.Keys(chart))); diff != "" {
		t.Fatalf("config/default (-) and the chart (+) have other objects:\n%s", diff)
	}
	for key, want := range config {
		if diff := cmp.Diff(want, chart[key]); diff != "" {
			t.Errorf("%s of config/default (-) and of the chart (+) differ:\n%s", key, diff)
		}
	}
}

// normalize takes off what the two may differ in: the labels that Helm's
// conventions add, and what keeps CRDs when a release goes.
func normalize(object map[string]any) {
	u := unstructured.Unstructured{Object: object}
	labels := u.GetLabels()
	for _, key := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "helm.sh/chart"} {
		delete(labels, key)
	}
	annotations := u.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	if u.GetKind() == "CustomResourceDefinition" {
		delete(labels, "app.kubernetes.io/name") // controller-gen writes no labels
	}
	if len(labels) == 0 {
		labels = nil
	}
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
}

func TestAnInstallElsewhereNamesItsNamespaceEverywhere(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(root, "config"))); err != nil {
		t.Fatal(err)
	}
	edited := filepath.Join(copied, "default/kustomization.yaml")
	data, err := os.ReadFile(edited)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(edited, bytes.Replace(data, []byte("\nnamespace: vision-system\n"), []byte("\nnamespace: elsewhere\n"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for how, all := range map[string]objects{
		"config/default": kustomize(t, filepath.Join(copied, "default")),
		"the chart":      helm(t, "elsewhere"),
	} {
		for key, object := range all {
			if strings.Contains(fmt.Sprint(object), "vision-system") {
				t.Errorf("%s: %s names vision-system", how, key)
			}
		}
	}
}

func TestNamespacedModeGrantsNothingInOtherNamespaces(t *testing.T) {
	all := helm(t, "vision-system", "--set", "watchNamespaces={team-a,team-b}")
	for key := range all {
		if strings.HasPrefix(key, "ClusterRoleBinding/") && key != "ClusterRoleBinding//vision-operator" && key != "ClusterRoleBinding//vision-operator-webhook" {
			t.Errorf("%s is there", key)
		}
	}
	for _, rule := range slices.Concat(rules(t, all["ClusterRole//vision-operator"]), rules(t, all["ClusterRole//vision-operator-webhook"])) {
		for _, resource := range rule["resources"].([]any) {
			switch resource {
			case "namespaces", "customresourcedefinitions", "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "tokenreviews", "subjectaccessreviews":
			default:
				t.Errorf("in the whole cluster the operator may %v %v", rule["verbs"], resource)
			}
		}
	}
	for _, namespace := range []string{"vision-system", "team-a", "team-b"} {
		for _, name := range []string{"vision-operator-read", "vision-operator-namespaces", "vision-operator-secrets"} {
			if all["RoleBinding/"+namespace+"/"+name] == nil {
				t.Errorf("there is no RoleBinding %s in %s", name, namespace)
			}
		}
	}
	for key, object := range all {
		switch kind, _, _ := strings.Cut(key, "/"); kind {
		case "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding":
			if !strings.Contains(fmt.Sprint(object), "team-a team-b") {
				t.Errorf("%s is not limited to the namespaces", key)
			}
		case "Deployment":
			if !strings.Contains(fmt.Sprint(object), "--watch-namespaces=team-a,team-b") {
				t.Errorf("%s has no --watch-namespaces", key)
			}
		}
	}
}

func TestSecretAccessIsBoundAsTheValueSays(t *testing.T) {
	const cluster, role = "ClusterRoleBinding//vision-operator-secrets", "ClusterRole//vision-operator-secrets"
	for name, test := range map[string]struct {
		set  string
		want []string // of the objects named vision-operator-secrets
		flag string
	}{
		"Cluster":    {"secretAccess.mode=Cluster", []string{role, cluster}, ""},
		"Namespaces": {"secretAccess.mode=Namespaces,secretAccess.namespaces={team-a}", []string{role, "RoleBinding/team-a/vision-operator-secrets"}, "--secret-access=namespaces"},
		"None":       {"secretAccess.mode=None", nil, "--secret-access=none"},
	} {
		t.Run(name, func(t *testing.T) {
			all := helm(t, "vision-system", "--set", test.set)
			var got []string
			for key := range all {
				if strings.HasSuffix(key, "/vision-operator-secrets") {
					got = append(got, key)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if deployment := fmt.Sprint(all["Deployment/vision-system/vision-operator"]); strings.Contains(deployment, "--secret-access") != (test.flag != "") || !strings.Contains(deployment, test.flag) {
				t.Errorf("the Deployment is %s, want %q in it", deployment, test.flag)
			}
		})
	}
}

// rules are those of a role.
func rules(t *testing.T, role map[string]any) []map[string]any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(role, "rules")
	if err != nil || len(list) == 0 {
		t.Fatalf("got no rules (%v)", err)
	}
	var found []map[string]any
	for _, rule := range list {
		found = append(found, rule.(map[string]any))
	}
	return found
}

func helm(t *testing.T, namespace string, args ...string) objects {
	t.Helper()
	read(t, filepath.Join(root, "charts"))
	return render(t, filepath.Join(root, "hack/tools/run"), append([]string{"helm", "template", "vision-operator", filepath.Join(root, "charts/vision-operator"),
		"--namespace", namespace, "--skip-tests", "--kube-version", "1.30.0"}, args...)...)
}

func kustomize(t *testing.T, folder string) objects {
	t.Helper()
	read(t, filepath.Join(root, "config"))
	assets, err := exec.CommandContext(t.Context(), filepath.Join(root, "hack/controlplane/assets"), "--print").Output()
	if err != nil {
		t.Fatalf("finding kubectl: %v", err)
	}
	return render(t, filepath.Join(strings.TrimSpace(string(assets)), "kubectl"), "kustomize", folder)
}

// read reads all files of a folder, so that `go test` runs again when one changes.
func read(t *testing.T, folder string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, err = os.ReadFile(filepath.Join(folder, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// render runs a program that prints manifests.
func render(t *testing.T, program string, args ...string) objects {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), program, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("running %s %s: %v: %s", program, strings.Join(args, " "), err, stderr.String())
	}
	all := objects{}
	decoder := yaml.NewYAMLOrJSONDecoder(&stdout, 4096)
	for {
		u := unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if strings.HasPrefix(u.GetKind(), "ValidatingAdmissionPolicy") {
			// kubectl's kustomize takes the kind for a namespaced one; the API server ignores it.
			u.SetNamespace("")
		}
		key := u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = u.Object
	}
}
