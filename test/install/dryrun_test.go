// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// foreign are the kinds of other operators, whose definitions are not here; the
// tests beside the templates look at them.
var foreign = []string{
	"cert-manager.io/v1/Certificate",
	"cert-manager.io/v1/Issuer",
	"monitoring.coreos.com/v1/PrometheusRule",
	"monitoring.coreos.com/v1/ServiceMonitor",
}

// cases are values of the chart that differ from its defaults by more than one
// toggle; [toggles] adds a case for each toggle.
var cases = map[string]string{
	"the defaults":                 "{}",
	"a digest for every image":     "{image: {digest: DIGEST}, runtime: {image: {digest: DIGEST}}, ocr: {enabled: true, image: {digest: DIGEST}}}",
	"pull secrets":                 "{imagePullSecrets: [mirror], runtime: {pullSecrets: [mirror]}, ocr: {enabled: true}}",
	"labels for every object":      "{commonLabels: {team: platform, example.com/cost: \"12\"}, ocr: {enabled: true}, dashboard: {enabled: true}, watchdog: {evict: true}}",
	"two namespaces":               "{watchNamespaces: [team-a, team-b], watchdog: {evict: true}}",
	"its own namespace watched":    "{watchNamespaces: [vision-system, team-a]}",
	"Secrets of one namespace":     "{secretAccess: {mode: Namespaces, namespaces: [team-a]}}",
	"no Secrets":                   "{secretAccess: {mode: None}}",
	"no watchdog":                  "{watchdog: {interval: 0}}",
	"a certificate of one's own":   "{webhook: {secret: mine, injectCAFrom: vision-system/mine}}",
	"an issuer":                    "{certManager: {enabled: true, issuerRef: {kind: ClusterIssuer, name: corporate}}}",
	"a port and lifetimes":         "{webhook: {port: 19443, caLifetime: 720h, certLifetime: 24h}, networkPolicy: {apiServerPorts: [16443]}}",
	"a runtime with all it takes":  "{runtime: {httpProxy: 'http://proxy:1', httpsProxy: 'http://proxy:2', noProxy: .svc, caConfigMap: cas, requests: {cpu: 5m}, limits: {memory: 99Mi}}}",
	"scheduling":                   "{nodeSelector: {pool: system}, tolerations: [{key: a, operator: Exists}], priorityClassName: '', affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}",
	"further objects":              "{extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: vision-system}}, \"apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: text, namespace: '{{ .Release.Namespace }}'}\"]}",
	"a share of disruption":        "{operator: {podDisruptionBudget: {maxUnavailable: 50%}}, webhook: {replicas: 5, podDisruptionBudget: {maxUnavailable: 40%}}}",
	"no resources and no labels":   "{operator: {resources: {requests: null, limits: null}}, dashboard: {enabled: true, labels: null}}",
	"the node's network":           "{webhook: {hostNetwork: true, port: 19443}}",
	"everything that can be added": "{ocr: {enabled: true}, serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboard: {enabled: true}, certManager: {enabled: true}, watchdog: {evict: true}}",
	"as little as can be":          "{crds: {enabled: false}, networkPolicy: {enabled: false}, secretAccess: {mode: None}, operator: {podDisruptionBudget: {enabled: false}}, webhook: {podDisruptionBudget: {enabled: false}}}",
}

// toggles are the cases that turn one boolean of the chart's values around.
func toggles(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal(run(t, "show", "values", chart), &values); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var walk func(map[string]any, []string)
	walk = func(values map[string]any, path []string) {
		for key, value := range values {
			at := append(slices.Clone(path), key)
			switch value := value.(type) {
			case map[string]any:
				walk(value, at)
			case bool:
				found[fmt.Sprintf("%s is %t", strings.Join(at, "."), !value)] = "{" + strings.Join(at, ": {") + fmt.Sprintf(": %t", !value) + strings.Repeat("}", len(at))
			}
		}
	}
	walk(values, nil)
	return found
}

var chart = filepath.Join(root, "charts/vision-operator")

func TestTheAPIServerTakesEveryObjectWhateverTheValues(t *testing.T) {
	switches := toggles(t)
	if len(switches) < 13 {
		t.Errorf("got %d toggles, want at least 13: %v", len(switches), slices.Sorted(maps.Keys(switches)))
	}
	all := maps.Clone(cases)
	maps.Copy(all, switches)
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			objects := render(t, chart, strings.ReplaceAll(all[name], "DIGEST", "sha256:"+strings.Repeat("0a", 32)))
			if len(objects) < 20 {
				t.Errorf("got %d objects", len(objects))
			}
			for _, object := range objects {
				text, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				if !seen[string(text)] {
					show(t, object)
				}
				seen[string(text)] = true
			}
		})
	}
	t.Logf("%d objects of %d cases differ", len(seen), len(all))
}

func TestTheAPIServerTakesTheDefinitionsAlone(t *testing.T) {
	for _, values := range []string{"{}", "{keep: false, commonLabels: {team: platform}}"} {
		objects := render(t, filepath.Join(root, "charts/vision-operator-crds"), values)
		if len(objects) != 2 {
			t.Errorf("%s: got %d objects, want 2", values, len(objects))
		}
		for _, object := range objects {
			show(t, object)
		}
	}
}

func TestTheAPIServerRefusesWhatNoObjectOfTheChartHolds(t *testing.T) {
	// The other tests show something only as long as this one passes.
	for _, object := range render(t, chart, "{}") {
		if object.GetKind() != "Deployment" {
			continue
		}
		if err := unstructured.SetNestedField(object.Object, int64(2), "spec", "replica"); err != nil {
			t.Fatal(err)
		}
		if err := server.Create(t.Context(), &object, client.DryRunAll); err == nil || !strings.Contains(err.Error(), `unknown field "spec.replica"`) {
			t.Errorf("got %v, want the unknown field to be refused", err)
		}
	}
}

// show shows an object, and the pod of a Deployment, to the API server.
func show(t *testing.T, object unstructured.Unstructured) {
	t.Helper()
	if slices.Contains(foreign, object.GetAPIVersion()+"/"+object.GetKind()) {
		return
	}
	if err := server.Create(t.Context(), object.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	if object.GetKind() != "Deployment" {
		return
	}
	template, _, err := unstructured.NestedMap(object.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	pod := unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace(object.GetNamespace())
	pod.SetName(object.GetName())
	hostNetwork, _, _ := unstructured.NestedBool(template, "spec", "hostNetwork")
	switch err := server.Create(t.Context(), &pod, client.DryRunAll); {
	case hostNetwork && !apierrors.IsForbidden(err):
		t.Errorf("a pod of %s on the node's network: got %v, want Pod Security to refuse it", object.GetName(), err)
	case !hostNetwork && err != nil:
		t.Errorf("creating a pod of %s: %v", object.GetName(), err)
	}
}

// render returns what a chart makes of values, its tests included. A key that is
// there twice fails the test: YAML parsers differ in which one they take.
func render(t *testing.T, chart, values string) []unstructured.Unstructured {
	t.Helper()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(run(t, "template", "vision-operator", chart, "--namespace", namespaces[0], "--values", write(t, values)))))
	var objects []unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object := unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Errorf("reading a document: %v\n%s", err, document)
			continue
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// run runs Helm and returns what it prints.
func run(t *testing.T, args ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/tools/run"), append([]string{"helm"}, args...)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("running helm %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.Bytes()
}

// write writes values into a file and returns its path. It reads the charts, too,
// so that `go test` runs again when one of their files changes.
func write(t *testing.T, values string) string {
	t.Helper()
	if err := os.CopyFS(filepath.Join(t.TempDir(), "charts"), os.DirFS(filepath.Join(root, "charts"))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
