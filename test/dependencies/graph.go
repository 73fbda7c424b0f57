// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dependencies holds the rules about which package may import which, and the
// checks of names, comments and sizes, that keep the folders of this project apart. Its
// tests apply them to the real tree: a forbidden import fails, with the reason.
package dependencies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Module is the path of the module whose packages the rules are about.
const Module = "github.com/visionoperator/vision-operator"

// Package is what the rules need to know of one package, as `go list -json` says it.
type Package struct {
	ImportPath string
	Name       string
	Doc        string // the first sentence of the package comment
	Dir        string
	Standard   bool     // part of Go's standard library
	Imports    []string // direct, without those of tests
	GoFiles    []string // names in Dir, without tests
}

// Local returns the package's folder below the module's root ("runtime/router"), and
// false for a package of another module. The root itself is ".".
func (p Package) Local() (string, bool) {
	return local(p.ImportPath)
}

func local(importPath string) (string, bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}

// Graph is a set of packages with all that they depend on, by import path.
type Graph map[string]Package

// List asks the go command for the packages that patterns match from folder, and for
// everything they depend on.
func List(folder string, patterns ...string) (Graph, error) {
	args := []string{"list", "-deps", "-json=ImportPath,Name,Doc,Dir,Standard,Imports,GoFiles"}
	command := exec.Command("go", append(args, patterns...)...)
	command.Dir = folder
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	graph := Graph{}
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var p Package
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return graph, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		graph[p.ImportPath] = p
	}
}

// locals returns the packages of the module, sorted by path.
func (g Graph) locals() []Package {
	var packages []Package
	for _, p := range g {
		if _, ok := p.Local(); ok {
			packages = append(packages, p)
		}
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return packages
}

// chain returns the shortest way from a package to one that forbids matches, both
// included, looking only at direct imports unless transitive; nil when there is none.
func (g Graph) chain(from string, transitive bool, forbids func(Package) bool) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		current := queue[0]
		for _, path := range g[current].Imports {
			if _, seen := cameFrom[path]; seen {
				continue
			}
			cameFrom[path] = current
			if forbids(g.find(path)) {
				return trace(cameFrom, path)
			}
			if transitive {
				queue = append(queue, path)
			}
		}
	}
	return nil
}

// find returns the package with that path; one outside the graph is known by its path alone.
func (g Graph) find(path string) Package {
	if p, ok := g[path]; ok {
		return p
	}
	return Package{ImportPath: path}
}

// trace follows cameFrom back from the last package to the first.
func trace(cameFrom map[string]string, last string) []string {
	var way []string
	for path := last; path != ""; path = cameFrom[path] {
		way = append([]string{path}, way...)
	}
	return way
}
