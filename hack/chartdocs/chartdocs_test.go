// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const example = `# Of the file.

# What answers.
server:
  # How many.
  # -- It scales | it
  # does not.
  replicas: 2 # in a line
  nested:
    # -- In braces.
    resources: {cpu: 1, memory: "2"}
    # -- Empty.
    tag: ""

# -- A list.
names: []
# -- Off.
enabled: false
`

func TestEveryValueIsARowWithItsDefaultAndItsComment(t *testing.T) {
	got, err := compose([]byte("name: eyes\nversion: 1.2.3\n"), []byte(example), []byte("# {{ .Chart.Name }} {{ .Chart.Version }}\n\n{{ .Values }}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := "# eyes 1.2.3\n\n### `server`\n\nWhat answers.\n\n" +
		"| Value | Default | Meaning |\n| --- | --- | --- |\n" +
		"| `server.replicas` | `2` | It scales \\| it does not. |\n" +
		"| `server.nested.resources` | `{cpu: 1, memory: \"2\"}` | In braces. |\n" +
		"| `server.nested.tag` | `\"\"` | Empty. |\n" +
		"\n### Others\n\n| Value | Default | Meaning |\n| --- | --- | --- |\n" +
		"| `names` | `[]` | A list. |\n| `enabled` | `false` | Off. |\n"
	if _, text, _ := strings.Cut(string(got), "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestAValueWithoutACommentIsNamed(t *testing.T) {
	for values, want := range map[string]UndocumentedError{
		"a: 1\n":                       {Path: "a", Line: 1},
		"# -- A.\na: 1\nb: 2\n":        {Path: "b", Line: 3},
		"# A group.\na:\n  b: {c: 1}":  {Path: "a.b", Line: 3},
		"a:\n  # No dashes.\n  b: 1\n": {Path: "a.b", Line: 3},
	} {
		var undocumented *UndocumentedError
		if _, err := parse([]byte(values)); !errors.As(err, &undocumented) || *undocumented != want {
			t.Errorf("%q: got %v, want %v", values, err, want)
		}
	}
}

func TestWhatIsNoChartIsRefused(t *testing.T) {
	chart := func(change func(fstest.MapFS)) fstest.MapFS {
		folder := fstest.MapFS{"Chart.yaml": {Data: []byte("name: a")}, "values.yaml": {Data: []byte("# -- A.\na: 1")}, "README.md.gotmpl": {Data: []byte("{{ .Values }}")}}
		change(folder)
		return folder
	}
	if _, err := describe(chart(func(fstest.MapFS) {})); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(fstest.MapFS){
		"no values":          func(f fstest.MapFS) { delete(f, "values.yaml") },
		"no prose":           func(f fstest.MapFS) { delete(f, "README.md.gotmpl") },
		"values in a list":   func(f fstest.MapFS) { f["values.yaml"].Data = []byte("[a]") },
		"values of nothing":  func(f fstest.MapFS) { f["values.yaml"].Data = nil },
		"values not in YAML": func(f fstest.MapFS) { f["values.yaml"].Data = []byte("a: [") },
		"a broken chart":     func(f fstest.MapFS) { f["Chart.yaml"].Data = []byte("[") },
		"a broken template":  func(f fstest.MapFS) { f["README.md.gotmpl"].Data = []byte("{{") },
		"an unknown field":   func(f fstest.MapFS) { f["README.md.gotmpl"].Data = []byte("{{ .Chart.Nme }}") },
	} {
		if _, err := describe(chart(change)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestTheChartsREADMEsAreFresh(t *testing.T) {
	for _, name := range []string{"vision-operator", "vision-operator-crds"} {
		folder := filepath.Join("../../charts", name)
		want, err := describe(os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s/README.md is stale: run make docs", folder)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("a: &a {b: *a}\n"))
	f.Add([]byte("# -- A.\na: |\n  text\n"))
	f.Fuzz(func(t *testing.T, values []byte) {
		sections, err := parse(values)
		if err != nil {
			return
		}
		for _, s := range sections {
			if s.name == "" && len(s.rows) == 0 {
				t.Error("a section tells of nothing")
			}
		}
	})
}
