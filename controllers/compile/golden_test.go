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
// verdicts.yaml come out. `go test -run Golden -update` writes them anew.
const (
	goldenFolder = "testdata/golden"
	inFile       = "in.yaml"
	routerFile   = router.Key
	verdictsFile = "verdicts.yaml"
)

// goldenInput is Input as a case writes it.
type goldenInput struct {
	Namespace         string                    `json:"namespace"`
	OperatorNamespace string                    `json:"operatorNamespace"`
	Providers         []v1alpha1.VisionProvider `json:"providers"`
	Policies          []v1alpha1.VisionPolicy   `json:"policies"`
}

func (g *goldenInput) input() Input {
	return Input{Namespace: g.Namespace, OperatorNamespace: g.OperatorNamespace, Providers: g.Providers, Policies: g.Policies}
}

// goldenVerdicts is what a case expects beside the document, a line for each verdict.
type goldenVerdicts struct {
	Policies  map[string]goldenPolicy   `json:"policies,omitempty"`
	Providers map[string]goldenProvider `json:"providers,omitempty"`
	Pods      map[string]goldenPod      `json:"pods,omitempty"`
}

type goldenPolicy struct {
	Accepted     string   `json:"accepted"`
	ResolvedRefs string   `json:"resolvedRefs"`
	Overridden   string   `json:"overridden,omitempty"`
	Profile      string   `json:"profile,omitempty"`
	DefaultRoute string   `json:"defaultRoute,omitempty"`
	Candidates   []string `json:"candidates,omitempty"`
	Redundant    []string `json:"redundant,omitempty"`
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
}

func goldenOf(out Output) goldenVerdicts {
	g := goldenVerdicts{Policies: map[string]goldenPolicy{}, Providers: map[string]goldenProvider{}, Pods: map[string]goldenPod{}}
	for name, v := range out.Policies {
		p := goldenPolicy{Accepted: line(v.Accepted), ResolvedRefs: line(v.ResolvedRefs), Overridden: line(v.Overridden),
			Profile: v.Profile, DefaultRoute: v.DefaultRoute, Redundant: v.Redundant, Unprogrammed: v.Unprogrammed}
		for _, c := range v.Candidates {
			p.Candidates = append(p.Candidates, fmt.Sprintf("%s %t %s", c.Route, c.Usable, c.Reason))
		}
		g.Policies[name] = p
	}
	for name, v := range out.Providers {
		g.Providers[name] = goldenProvider{Accepted: line(v.Accepted), Unprogrammed: v.Unprogrammed}
	}
	for id, p := range out.Pods {
		g.Pods[id] = goldenPod(p)
	}
	return g
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
	if len(names) < 20 {
		t.Fatalf("found %d cases in %s, want at least 20", len(names), goldenFolder)
	}
	return names
}

func readCase(t *testing.T, name string) Input {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenFolder, name, inFile))
	if err != nil {
		t.Fatal(err)
	}
	var in goldenInput
	if err := yaml.UnmarshalStrict(data, &in); err != nil {
		t.Fatalf("reading %s of %s: %v", inFile, name, err)
	}
	return in.input()
}

func TestGolden(t *testing.T) {
	for _, name := range goldenCases(t) {
		t.Run(name, func(t *testing.T) {
			out := Compile(readCase(t, name))
			document, err := router.Marshal(out.Document)
			if err != nil {
				t.Fatal(err)
			}
			verdicts, err := yaml.Marshal(goldenOf(out))
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join(goldenFolder, name), map[string][]byte{routerFile: document, verdictsFile: verdicts})
			decodeStrictly(t, document)
		})
	}
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
