// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chartdocs writes the README.md of charts, each from its Chart.yaml, the
// comments of its values.yaml and the prose of its README.md.gotmpl:
//
//	go run ./hack/chartdocs charts/vision-operator charts/vision-operator-crds
//
// A value is told of by the comment above it that starts with "# --"; a group of
// values by one that does not. A value without is an error.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, folder := range os.Args[1:] {
		if err := write(folder); err != nil {
			fmt.Fprintf(os.Stderr, "chartdocs: %s: %v\n", folder, err)
			os.Exit(1)
		}
	}
}

// metadata is what a README tells of a Chart.yaml.
type metadata struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
	AppVersion  string `json:"appVersion"`
	KubeVersion string `json:"kubeVersion"`
}

// write writes the README.md of the chart in a folder.
func write(folder string) error {
	text, err := describe(os.DirFS(folder))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "README.md"), text, 0o644); err != nil { //nolint:gosec // a README is for everybody
		return fmt.Errorf("writing the README: %w", err)
	}
	return nil
}

// compose fills in a template: .Chart is the chart's metadata, .Values the tables of its values.
func compose(chart, values, prose []byte) ([]byte, error) {
	var about metadata
	if err := yaml.Unmarshal(chart, &about); err != nil {
		return nil, fmt.Errorf("reading Chart.yaml: %w", err)
	}
	sections, err := parse(values)
	if err != nil {
		return nil, fmt.Errorf("reading values.yaml: %w", err)
	}
	page, err := template.New("README.md.gotmpl").Option("missingkey=error").Parse(string(prose))
	if err != nil {
		return nil, fmt.Errorf("reading README.md.gotmpl: %w", err)
	}
	var text bytes.Buffer
	text.WriteString("<!-- Written by `make docs` from Chart.yaml, values.yaml and README.md.gotmpl: edit those. -->\n")
	if err := page.Execute(&text, map[string]any{"Chart": about, "Values": tables(sections)}); err != nil {
		return nil, fmt.Errorf("filling in README.md.gotmpl: %w", err)
	}
	return text.Bytes(), nil
}
