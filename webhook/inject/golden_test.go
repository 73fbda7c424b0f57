// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each folder of testdata is a case: pod.yaml and objects.yaml (the pod's
// Namespace, policies and providers), and settings.yaml where the operator's
// settings matter, go in; out.yaml comes out. `go test -run Golden -update`
// writes them anew.
const (
	goldenFolder = "testdata"
	podFile      = "pod.yaml"
	objectsFile  = "objects.yaml"
	settingsFile = "settings.yaml"
	outFile      = "out.yaml"
)

// goldenOut is what a case expects: the whole pod where one is made.
type goldenOut struct {
	Inject   bool     `json:"inject"`
	Deny     []string `json:"deny,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Profile  string   `json:"profile,omitempty"`
	// Steps are those in which something was found.
	Steps []string    `json:"steps,omitempty"`
	Pod   *corev1.Pod `json:"pod,omitempty"`
}

func TestGolden(t *testing.T) {
	names := goldenNames(t)
	if len(names) < 80 {
		t.Fatalf("%s holds %d cases, want at least 80", goldenFolder, len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(goldenFolder, name)
			failOnStrangers(t, folder)
			in := readGolden(t, folder)
			before := in.Pod.DeepCopy()
			plan := Decide(in)
			after := Apply(in.Pod, plan)
			if diff := cmp.Diff(before, in.Pod); diff != "" {
				t.Errorf("the given pod was changed:\n%s", diff)
			}
			got := goldenOut{Inject: plan.Inject, Profile: plan.Profile}
			for _, problem := range plan.Deny {
				got.Deny = append(got.Deny, problem.String())
			}
			for _, step := range plan.Steps {
				if step.Outcome != Passed || len(step.Notes) > 0 {
					got.Steps = append(got.Steps, shownStep(step))
				}
			}
			for _, note := range plan.Notes {
				got.Warnings = append(got.Warnings, note.String())
			}
			if plan.Inject {
				got.Pod = after
			} else if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("a pod without injection was changed:\n%s", diff)
			}
			compareGolden(t, filepath.Join(folder, outFile), got)
		})
	}
}

// shownStep is a step's name and outcome, with the reasons of what it found.
func shownStep(step Step) string {
	out := step.Check + ": " + step.Outcome.String()
	for _, note := range step.Notes {
		out += " " + string(note.Reason)
	}
	return out
}

func compareGolden(t *testing.T, file string, got goldenOut) {
	t.Helper()
	data, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if diff := cmp.Diff(string(want), string(data)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func goldenNames(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(goldenFolder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() == "fuzz" {
			continue
		}
		names = append(names, e.Name())
	}
	return names
}

// failOnStrangers fails for files that no case reads, such as leftovers of a renamed one.
func failOnStrangers(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{podFile, objectsFile, settingsFile, outFile}, e.Name()) {
			t.Errorf("%s holds %s, which no case reads", folder, e.Name())
		}
	}
}

// readGolden reads a case's input, refusing fields that do not exist.
func readGolden(t testing.TB, folder string) Input {
	t.Helper()
	in := Input{Pod: &corev1.Pod{}, Settings: Settings{Image: "registry.example/vision-runtime:v1"}}
	readStrict(t, filepath.Join(folder, podFile), in.Pod)
	if file := filepath.Join(folder, settingsFile); exists(t, file) {
		readStrict(t, file, &in.Settings)
	}
	objects, err := os.Open(filepath.Join(folder, objectsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer objects.Close()
	compiled := compile.Input{OperatorNamespace: "vision-system"}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(objects))
	for {
		data, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		addObject(t, &in, &compiled, data)
	}
	compiled.Namespace, compiled.NamespaceLabels = in.Namespace, in.NamespaceLabels
	in.Policies = compile.Servers(compiled)
	in.Compiled = compile.Compile(compiled)
	if value, ok := in.Pod.Annotations[v1alpha1.InjectionAnnotation]; ok {
		in.Pod.Annotations[v1alpha1.InjectionAnnotation] = strings.ReplaceAll(value, presentHash, Decide(in).Hash)
	}
	return in
}

// presentHash stands in a pod's annotation for the hash of the container that the pod would get.
const presentHash = "HASH"

func addObject(t testing.TB, in *Input, compiled *compile.Input, data []byte) {
	t.Helper()
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(data, &head); err != nil {
		t.Fatal(err)
	}
	switch head.Kind {
	case "Namespace":
		var ns corev1.Namespace
		unmarshalStrict(t, data, &ns)
		in.Namespace, in.NamespaceLabels = ns.Name, ns.Labels
	case "LimitRange":
		var r corev1.LimitRange
		unmarshalStrict(t, data, &r)
		in.LimitRanges = append(in.LimitRanges, r)
	case "VisionPolicy":
		var p v1alpha1.VisionPolicy
		unmarshalStrict(t, data, &p)
		compiled.Policies = append(compiled.Policies, p)
	case "VisionProvider":
		var p v1alpha1.VisionProvider
		unmarshalStrict(t, data, &p)
		compiled.Providers = append(compiled.Providers, p)
	default:
		t.Fatalf("%s: kind %q is not read", objectsFile, head.Kind)
	}
}

func readStrict(t testing.TB, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unmarshalStrict(t, data, into)
}

func unmarshalStrict(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(data), into); err != nil {
		t.Fatal(err)
	}
}

func exists(t testing.TB, file string) bool {
	t.Helper()
	_, err := os.Stat(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}
