// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// attempt runs Helm.
func attempt(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	read(t, filepath.Join(root, "charts"))
	var out, complaints bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/tools/run"), append([]string{"helm"}, args...)...)
	command.Stdout, command.Stderr = &out, &complaints
	err = command.Run()
	return out.String(), complaints.String(), err
}

func TestATypoInAValueIsRefusedByName(t *testing.T) {
	for set, named := range map[string]string{
		"imagePullSecret={a}":                                         "imagePullSecret",
		"watchNamespace={team-a}":                                     "watchNamespace",
		"webhook.replica=3":                                           "replica",
		"webhook.podDisruptionBudget.enable=true":                     "enable",
		"operator.resources.request.cpu=1":                            "request",
		"runtime.image.digets=sha256:0":                               "digets",
		"ocr.image.pullpolicy=Always":                                 "pullpolicy",
		"certManager.issuerRef.nme=a":                                 "nme",
		"crds.kep=true":                                               "kep",
		"secretAccess.mode=cluster":                                   "mode",
		"logLevel=verbose":                                            "logLevel",
		"image.digest=sha256:abc":                                     "digest",
		"runtime.limits.memroy=1Gi":                                   "memroy",
		"webhook.replicas=two":                                        "replicas",
		"watchdog.interval=often":                                     "interval",
		"watchNamespaces={Team_A}":                                    "watchNamespaces",
		`commonLabels.app\.kubernetes\.io/name=a`:                     "app.kubernetes.io/name",
		`commonLabels.app\.kubernetes\.io/managed-by=vision-operator`: "app.kubernetes.io/managed-by",
		`commonLabels.helm\.sh/chart=a`:                               "helm.sh/chart",
		"metrics.secure=true":                                         "secure",
		"dashboard.labels.a=1":                                        "labels",
	} {
		t.Run(set, func(t *testing.T) {
			_, stderr, err := attempt(t, "template", filepath.Join(root, "charts/vision-operator"), "--set", set)
			if err == nil || !strings.Contains(stderr, "don't meet the specifications of the schema") || !strings.Contains(stderr, named) {
				t.Errorf("got %v: %s, want the schema to refuse %s", err, stderr, named)
			}
		})
	}
}

func TestRenderingTwiceGivesTheSameBytes(t *testing.T) {
	all := []string{"template", "vision-operator", filepath.Join(root, "charts/vision-operator"), "--namespace", "vision-system",
		"--set", "ocr.enabled=true,serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,certManager.enabled=true,watchdog.evict=true",
		"--set", "watchNamespaces={b,a},commonLabels.b=x,commonLabels.a=y,runtime.requests.memory=1Mi,runtime.requests.cpu=1m"}
	first, stderr, err := attempt(t, all...)
	if err != nil {
		t.Fatalf("rendering the chart: %v: %s", err, stderr)
	}
	for range 3 {
		if again, _, err := attempt(t, all...); err != nil || again != first {
			t.Fatalf("rendering again: %v; the bytes differ", err)
		}
	}
	if regexp.MustCompile(`(?m)^\s*caBundle: \S`).MatchString(first) || strings.Contains(first, "BEGIN CERTIFICATE") || strings.Contains(first, "kind: Secret\n") {
		t.Error("templates hold a certificate or a Secret")
	}
}

func TestThePackagedChartsHoldWhatIsInstalledAndNoTests(t *testing.T) {
	for name, want := range map[string][]string{
		"vision-operator": {"Chart.yaml", "README.md", "values.yaml", "values.schema.json", "templates/crds.yaml", "templates/tests/webhook.yaml",
			"files/crds/visionoperator.dev_visionpolicies.yaml", "files/dashboards/vision-operator.json"},
		"vision-operator-crds": {"Chart.yaml", "README.md", "values.yaml", "values.schema.json", "templates/crds.yaml", "files/crds/visionoperator.dev_visionproviders.yaml"},
	} {
		folder := t.TempDir()
		if _, stderr, err := attempt(t, "package", filepath.Join(root, "charts", name), "--destination", folder); err != nil {
			t.Fatalf("packaging %s: %v: %s", name, err, stderr)
		}
		packages, err := filepath.Glob(filepath.Join(folder, name+"-*.tgz"))
		if err != nil || len(packages) != 1 {
			t.Fatalf("got the packages %v (%v), want one", packages, err)
		}
		got := unpack(t, packages[0])
		for _, file := range want {
			if !slices.Contains(got, path.Join(name, file)) {
				t.Errorf("%s holds no %s", name, file)
			}
		}
		for _, file := range got {
			if strings.HasPrefix(file, path.Join(name, "tests")) || strings.HasSuffix(file, "_test.yaml") {
				t.Errorf("%s holds %s", name, file)
			}
		}
	}
}

// unpack returns the names of the files of a packaged chart.
func unpack(t *testing.T, archive string) []string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for entries := tar.NewReader(plain); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}
