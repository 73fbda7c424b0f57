// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/router"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each folder of testdata is a case: the words of the file args are the command
// line, run in the folder with the file stdin (if there is one) as input. What
// it prints is in stdout and stderr, and the exit code at the end of stderr.
func TestGolden(t *testing.T) {
	root, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Fatalf("found %d cases, want at least 10", len(cases))
	}
	for _, entry := range cases {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Chdir(filepath.Join(root, entry.Name()))
			args, err := os.ReadFile("args")
			if err != nil {
				t.Fatal(err)
			}
			var stdin io.Reader = strings.NewReader("")
			if data, err := os.ReadFile("stdin"); err == nil {
				stdin = bytes.NewReader(data)
			}
			var stdout, stderr bytes.Buffer
			code := 0
			if err := run(t.Context(), strings.Fields(string(args)), stdin, &stdout, &stderr); err != nil {
				fmt.Fprintf(&stderr, "kubectl-vision: %v\n", err)
				code = exitCode(err)
			}
			fmt.Fprintf(&stderr, "exit code %d\n", code)
			compareGolden(t, "stdout", stdout.Bytes())
			compareGolden(t, "stderr", stderr.Bytes())
			if strings.HasPrefix(string(args), "render ") && bytes.HasPrefix(stdout.Bytes(), []byte("{")) {
				if _, err := router.Parse(stdout.Bytes()); err != nil {
					t.Errorf("the runtime does not read the document: %v", err)
				}
			}
		})
	}
}

func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

func TestACommandLineThatCannotWorkSaysWhy(t *testing.T) {
	tests := map[string]struct {
		args []string
		says string
	}{
		"no command":              {nil, "render, explain, preflight, tokens, probe and version"},
		"an unknown command":      {[]string{"draw"}, `"draw"`},
		"probe without a file":    {[]string{"probe", "-o", "json"}, "FILE is missing"},
		"probe in a wild format":  {[]string{"probe", "-o", "yaml", "x"}, `"yaml"`},
		"probe with a wild flag":  {[]string{"probe", "--nope", "x"}, "--nope"},
		"version with a word":     {[]string{"version", "x"}, `"x"`},
		"a version flag and more": {[]string{"--version", "x"}, `--version takes no argument; got "x"`},
		"render without a file":   {[]string{"render", "-n", "team"}, "--filename"},
		"render without where":    {[]string{"render", "-f", "x"}, "--namespace"},
		"render with a word":      {[]string{"render", "-f", "x", "-n", "team", "y"}, `"y"`},
		"render with a wild flag": {[]string{"render", "--nope"}, "--nope"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), test.args, nil, io.Discard, io.Discard)
			if exitCode(err) != exitUsage || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got exit code %d and %v, want %d and %q", exitCode(err), err, exitUsage, test.says)
			}
		})
	}
}

func TestHelpAndVersionGoToStdout(t *testing.T) {
	for args, want := range map[string]string{"help": "kubectl vision render", "render --help": "--operator-namespace", "probe --help": "--output", "version": "kubectl-vision ", "--version": "kubectl-vision "} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), nil, &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %q (%v), want %q in it", args, out.String(), err, want)
		}
	}
}

// Every sample provider and policy, together in one namespace, work as written.
func TestTheSamplesHoldWhenStrict(t *testing.T) {
	samples := filepath.Join("..", "..", "config", "samples")
	var stdout, stderr bytes.Buffer
	args := []string{"render", "--strict", "-n", "team", "-f", filepath.Join(samples, "providers"), "-f", filepath.Join(samples, "policies")}
	if err := run(t.Context(), args, nil, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	doc, err := router.Parse(stdout.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Profiles) == 0 || len(doc.Providers) == 0 {
		t.Errorf("the samples make %d profiles and %d providers", len(doc.Profiles), len(doc.Providers))
	}
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	err := (&objects{}).read("endless", neverEnding{})
	if err == nil || !strings.Contains(err.Error(), "endless") || !strings.Contains(err.Error(), "32 MiB") {
		t.Errorf("got %v", err)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

// FuzzRead holds the reader of files against anything: it ends, and whatever it
// takes has a name and a namespace.
func FuzzRead(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("found no seeds: %v", err)
	}
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[null,{}]}`))
	schemas, err := loadSchemas()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := readObjects([]string{"-"}, "team", bytes.NewReader(data), schemas)
		if err != nil {
			return
		}
		for _, p := range o.policies {
			if p.Name == "" || p.Namespace == "" {
				t.Errorf("took a policy without a name or a namespace: %+v", p.ObjectMeta)
			}
		}
		for _, p := range o.providers {
			if p.Name == "" || p.Namespace == "" {
				t.Errorf("took a provider without a name or a namespace: %+v", p.ObjectMeta)
			}
		}
	})
}
