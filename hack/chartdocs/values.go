// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"
)

// section is a table of values: a group of values.yaml, or what stands between two groups.
type section struct {
	name, text string // name is empty between groups
	rows       []row
}

// row tells of one value.
type row struct{ path, preset, text string }

// UndocumentedError is a value that no comment tells of.
type UndocumentedError struct {
	Path string
	Line int
}

func (e *UndocumentedError) Error() string {
	return fmt.Sprintf("documenting %s: line %d has no comment above it that starts with # --", e.Path, e.Line)
}

// describe returns the README of the chart in a folder.
func describe(folder fs.FS) ([]byte, error) {
	var parts [3][]byte
	for i, name := range []string{"Chart.yaml", "values.yaml", "README.md.gotmpl"} {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("reading a chart: %w", err)
		}
		parts[i] = text
	}
	return compose(parts[0], parts[1], parts[2])
}

// parse reads a values.yaml.
func parse(values []byte) ([]section, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, fmt.Errorf("parsing YAML: %w", err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("parsing YAML: it is no mapping")
	}
	var sections []section
	content := document.Content[0].Content
	for i := 0; i+1 < len(content); i += 2 {
		key, value := content[i], content[i+1]
		if group(value) {
			rows, err := leaves(key.Value, value)
			if err != nil {
				return nil, err
			}
			sections = append(sections, section{name: key.Value, text: prose(key.HeadComment), rows: rows})
			continue
		}
		rows, err := leaf(key.Value, key, value)
		if err != nil {
			return nil, err
		}
		if last := len(sections) - 1; last >= 0 && sections[last].name == "" {
			sections[last].rows = append(sections[last].rows, rows...)
		} else {
			sections = append(sections, section{rows: rows})
		}
	}
	return sections, nil
}

// group says whether a value is several values; a mapping in braces is one.
func group(value *yaml.Node) bool {
	return value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0
}

// leaves are the rows of a group.
func leaves(path string, mapping *yaml.Node) ([]row, error) {
	var rows []row
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		at := path + "." + key.Value
		read := leaves
		if !group(value) {
			read = func(at string, value *yaml.Node) ([]row, error) { return leaf(at, key, value) }
		}
		more, err := read(at, value)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// leaf is the row of one value.
func leaf(path string, key, value *yaml.Node) ([]row, error) {
	_, text, found := strings.Cut("\n"+key.HeadComment, "\n# -- ")
	if !found {
		return nil, &UndocumentedError{Path: path, Line: key.Line}
	}
	value.HeadComment, value.LineComment, value.FootComment = "", "", ""
	preset, err := yaml.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing the default of %s: %w", path, err)
	}
	return []row{{path: path, preset: strings.TrimSpace(string(preset)), text: prose(text)}}, nil
}

// prose is a comment without its marks, in one line.
func prose(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.Join(words, " ")
}

// tables writes sections as Markdown.
func tables(sections []section) string {
	var text strings.Builder
	for _, s := range sections {
		name := "Others"
		if s.name != "" {
			name = "`" + s.name + "`"
		} else if len(s.rows) == 1 {
			name = "`" + s.rows[0].path + "`"
		}
		fmt.Fprintf(&text, "\n### %s\n\n", name)
		if s.text != "" {
			fmt.Fprintf(&text, "%s\n\n", s.text)
		}
		text.WriteString("| Value | Default | Meaning |\n| --- | --- | --- |\n")
		for _, r := range s.rows {
			fmt.Fprintf(&text, "| `%s` | `%s` | %s |\n", r.path, cell(r.preset), cell(r.text))
		}
	}
	return strings.TrimSpace(text.String())
}

// cell keeps a text within its cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
