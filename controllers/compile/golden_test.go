// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each folder of testdata/golden is a case: in.yaml goes in, router.json and
// verdicts.yaml come out, and serving.yaml where in.yaml has pods. `go test -run
// Golden -update` writes them anew.
const (
	goldenFolder = "testdata/golden"
	inFile       = "in.yaml"
	routerFile   = router.Key
	verdictsFile = "verdicts.yaml"
	servingFile  = "serving.yaml"
)

// goldenInput is Input as a case writes it.
type goldenInput struct {
	Namespace         string                    `json:"namespace"`
	NamespaceLabels   map[string]string         `json:"namespaceLabels"`
	OperatorNamespace string                    `json:"operatorNamespace"`
	Providers         []v1alpha1.VisionProvider `json:"providers"`
	Policies          []v1alpha1.VisionPolicy   `json:"policies"`
	// Pods are of the namespace: which profile serves each?
	Pods []goldenAgent `json:"pods"`
}

type goldenAgent struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	// Policy is the value of the annotation.
	Policy string `json:"policy"`
}

func (g *goldenInput) input() Input {
	return Input{Namespace: g.Namespace, NamespaceLabels: g.NamespaceLabels, OperatorNamespace: g.OperatorNamespace,
		Providers: g.Providers, Policies: g.Policies}
}

// goldenVerdicts is what a case expects beside the document, a line for each verdict.
type goldenVerdicts struct {
	// Served is left out where it is true.
	Served    *bool                   `json:"served,omitempty"`
	Policies  map[string]goldenPolicy `json:"policies,omitempty"`
	Baselines map[string]goldenPolicy `json:"baselines,omitempty"`
	// Origins are those of profiles with several layers, without what is a default.
	Origins   map[string][]string       `json:"origins,omitempty"`
	Providers map[string]goldenProvider `json:"providers,omitempty"`
	Pods      map[string]goldenPod      `json:"pods,omitempty"`
}

type goldenPolicy struct {
	Accepted     string   `json:"accepted"`
	ResolvedRefs string   `json:"resolvedRefs"`
	Overridden   string   `json:"overridden,omitempty"`
	Profile      string   `json:"profile,omitempty"`
	DefaultRoute string   `json:"defaultRoute,omitempty"`
	Provider     string   `json:"provider,omitempty"`
	Candidates   []string `json:"candidates,omitempty"`
	Redundant    []string `json:"redundant,omitempty"`
	Unwise       []string `json:"unwise,omitempty"`
	Unprogrammed []string `json:"unprogrammed,omitempty"`
}

type goldenProvider struct {
	Accepted     string   `json:"accepted"`
	Unprogrammed []string `json:"unprogrammed,omitempty"`
}

type goldenPod struct {
	Workspaces    []string                     `json:"workspaces,omitempty"`
	Resources     *corev1.ResourceRequirements `json:"resources,omitempty"`
	RunAsUser     *int64                       `json:"runAsUser,omitempty"`
	LogLevel      v1alpha1.LogLevel            `json:"logLevel"`
	CacheMaxBytes int64                        `json:"cacheMaxBytes"`
	Admission     v1alpha1.AdmissionMode       `json:"admission"`
	MCP           bool                         `json:"mcp"`
	SetBaseURLs   bool                         `json:"setBaseURLs,omitempty"`
}

func goldenOf(in Input, out Output) goldenVerdicts {
	g := goldenVerdicts{Policies: goldenPolicies(out.Policies), Baselines: goldenPolicies(out.Baselines), Origins: map[string][]string{},
		Providers: map[string]goldenProvider{}, Pods: map[string]goldenPod{}}
	if !Served(in) {
		g.Served = new(false)
	}
	for name, v := range out.Providers {
		g.Providers[name] = goldenProvider{Accepted: line(v.Accepted), Unprogrammed: v.Unprogrammed}
	}
	for id, p := range out.Pods {
		g.Pods[id] = goldenPod(p)
	}
	if len(over(in, baselines(in))) > 0 {
		for id, origins := range out.Origins {
			for _, o := range origins {
				if o.From != FromDefault {
					g.Origins[id] = append(g.Origins[id], fmt.Sprintf("%s = %s, from %s", o.Field, o.Value, o.From))
				}
			}
		}
	}
	return g
}

func goldenPolicies(verdicts map[string]PolicyVerdict) map[string]goldenPolicy {
	policies := map[string]goldenPolicy{}
	for name, v := range verdicts {
		p := goldenPolicy{Accepted: line(v.Accepted), ResolvedRefs: line(v.ResolvedRefs), Overridden: line(v.Overridden),
			Profile: v.Profile, DefaultRoute: v.DefaultRoute, Provider: v.DefaultProvider, Redundant: v.Redundant, Unwise: v.Unwise, Unprogrammed: v.Unprogrammed}
		for _, c := range v.Candidates {
			p.Candidates = append(p.Candidates, fmt.Sprintf("%s %t %s", c.Route, c.Usable, c.Reason))
		}
		policies[name] = p
	}
	return policies
}

// goldenServing says for each pod which profile serves it, and why.
func goldenServing(in Input, pods []goldenAgent) map[string]string {
	serving := map[string]string{}
	for _, pod := range pods {
		profile, verdict := Serving(Servers(in), pod.Labels, pod.Policy)
		if profile == "" {
			profile = "none"
		}
		serving[pod.Name] = profile + ", " + line(verdict)
	}
	return serving
}

// line is a verdict as one line; empty for the verdict that was not given.
func line(v Verdict) string {
	if v == (Verdict{}) {
		return ""
	}
	return fmt.Sprintf("%t %s: %s", v.OK, v.Reason, v.Message)
}

func goldenCases(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(goldenFolder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if len(names) < 90 {
		t.Fatalf("found %d cases in %s, want at least 90", len(names), goldenFolder)
	}
	return names
}

func readCase(t *testing.T, name string) Input {
	t.Helper()
	in := readGolden(t, name)
	return in.input()
}

func readGolden(t *testing.T, name string) goldenInput {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenFolder, name, inFile))
	if err != nil {
		t.Fatal(err)
	}
	var in goldenInput
	if err := yaml.UnmarshalStrict(data, &in); err != nil {
		t.Fatalf("reading %s of %s: %v", inFile, name, err)
	}
	return in
}

func TestGolden(t *testing.T) {
	for _, name := range goldenCases(t) {
		t.Run(name, func(t *testing.T) {
			golden := readGolden(t, name)
			in := golden.input()
			out := Compile(in)
			document, err := router.Marshal(out.Document)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{routerFile: document, verdictsFile: mustYAML(t, goldenOf(in, out))}
			if len(golden.Pods) > 0 {
				files[servingFile] = mustYAML(t, goldenServing(in, golden.Pods))
			}
			compareGolden(t, filepath.Join(goldenFolder, name), files)
			decodeStrictly(t, document)
		})
	}
}

func mustYAML(t *testing.T, v any) []byte {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compareGolden holds files against a folder that has them and in.yaml, and nothing else.
func compareGolden(t *testing.T, folder string, files map[string][]byte) {
	t.Helper()
	for file, got := range files {
		path := filepath.Join(folder, file)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", path, diff)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if _, known := files[entry.Name()]; !known && entry.Name() != inFile {
			t.Errorf("%s holds %s, which no test reads: remove it", folder, entry.Name())
		}
	}
}

// decodeStrictly refuses a document with a field that the contract does not have.
func decodeStrictly(t *testing.T, document []byte) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&router.Document{}); err != nil {
		t.Errorf("the contract does not hold the document: %v", err)
	}
	if _, err := router.Parse(document); err != nil {
		t.Errorf("the runtime does not read the document: %v", err)
	}
}
