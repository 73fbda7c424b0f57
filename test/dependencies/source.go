// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// The largest file and function written by hand, in lines; tests are free.
const (
	MaxFileLines     = 500
	MaxFunctionLines = 80
)

// vague are names that say nothing of what a package is for.
var vague = []string{"util", "utils", "common", "helper", "helpers", "pkg", "misc", "shared", "base"}

// CheckNames returns what is wrong with the names and comments of the module's packages.
func CheckNames(g Graph) []string {
	var problems []string
	for _, p := range g.locals() {
		folder, _ := p.Local()
		if slices.Contains(vague, p.Name) || slices.Contains(vague, path.Base(folder)) {
			problems = append(problems, fmt.Sprintf("%s: a package called so gathers whatever has no home: name it after its one job", folder))
		}
		if p.Doc == "" && len(p.GoFiles) > 0 {
			problems = append(problems, fmt.Sprintf("%s: no package comment: a reader learns there what the package is for and what it leaves to others", folder))
		}
	}
	return problems
}

// CheckSize returns what is too long in one Go file, whose name is used in messages only.
// Generated files have no limit. A function is counted from its first line to its closing brace.
func CheckSize(name string, source []byte) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("measuring functions: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var problems []string
	if lines := bytes.Count(source, []byte("\n")); lines > MaxFileLines {
		problems = append(problems, fmt.Sprintf("%s: %d lines, at most %d: a file that long holds more than one thing", name, lines, MaxFileLines))
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := files.Position(function.Pos()).Line, files.Position(function.End()).Line
		if lines := last - first + 1; lines > MaxFunctionLines {
			problems = append(problems, fmt.Sprintf("%s:%d: function %s has %d lines, at most %d: the top function of a stage reads as its steps and fits a screen",
				name, first, function.Name.Name, lines, MaxFunctionLines))
		}
	}
	return problems, nil
}

// CheckSizes applies [CheckSize] to every file of the module's packages, tests left out.
func CheckSizes(g Graph) ([]string, error) {
	var problems []string
	for _, p := range g.locals() {
		folder, _ := p.Local()
		for _, name := range p.GoFiles {
			source, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, fmt.Errorf("measuring functions: %w", err)
			}
			found, err := CheckSize(path.Join(folder, name), source)
			if err != nil {
				return nil, err
			}
			problems = append(problems, found...)
		}
	}
	return problems, nil
}
