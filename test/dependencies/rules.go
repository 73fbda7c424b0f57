// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"fmt"
	"slices"
	"strings"
)

// Rule forbids imports to some packages of the module.
type Rule struct {
	// Packages are the folders, below the module's root, that the rule binds;
	// "runtime/..." binds a folder and all below it.
	Packages []string
	// Transitive extends the rule to what the imported packages import.
	Transitive bool
	// Forbids says whether the packages may not depend on p.
	Forbids func(p Package) bool
	// Reason says why, to somebody who has just broken the rule.
	Reason string
}

// clients are the modules that reach a Kubernetes API server.
var clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

// logs are the packages that write logs.
var logs = []string{"github.com/go-logr/logr", "log", "k8s.io/klog/v2"}

// world are the packages of the standard library that reach outside the process.
var world = []string{"os", "net", "net/http", "syscall"}

// vendorSDKs are the modules with which vendors speak their own protocols.
var vendorSDKs = []string{"github.com/openai/openai-go", "github.com/anthropics/anthropic-sdk-go", "google.golang.org/genai"}

// chance are the packages whose answers differ from call to call.
var chance = []string{"crypto/rand", "math/rand", "math/rand/v2", "github.com/google/uuid"}

// Rules are the dependency rules of this project.
func Rules() []Rule {
	return []Rule{
		{
			Packages:   []string{"runtime/..."},
			Transitive: true,
			Forbids: func(p Package) bool {
				return under(p, "k8s.io", "sigs.k8s.io/controller-runtime") || inFolder(p, "api", "controllers", "webhook")
			},
			Reason: "runtime/ is a light library for programs without Kubernetes, and a sidecar of a few megabytes: " +
				"nothing of Kubernetes, nor of the API types, may come in below it; what both planes need belongs into the router document",
		},
		{
			Packages: []string{"controllers/compile", "webhook/inject"},
			Forbids: func(p Package) bool {
				return under(p, "context", "time") || under(p, clients...) || under(p, logs...) || exactly(p, world...) || exactly(p, chance...)
			},
			Reason: "this package is a pure function of its input, so that the controller, the webhook and `kubectl vision render` " +
				"get the same bytes: gather before it and act after it, in the rim",
		},
		{
			Packages:   []string{"runtime/router"},
			Transitive: true,
			Forbids: func(p Package) bool {
				return !p.Standard && !inFolder(p, "runtime/router")
			},
			Reason: "runtime/router is the contract that both planes link: it imports the standard library alone",
		},
		{
			Packages: []string{"controllers/...", "webhook/..."},
			Forbids: func(p Package) bool {
				return inFolder(p, "runtime") && !inFolder(p, "runtime/router")
			},
			Reason: "the two planes meet at runtime/router only: what the control plane must tell a runtime goes through the router document",
		},
		{
			Packages: []string{"controllers/...", "api/..."},
			Forbids:  func(p Package) bool { return inFolder(p, "webhook") },
			Reason:   "admission asks the compiler and the API types, never the other way round: what both need belongs into controllers/compile",
		},
		{
			Packages: []string{"webhook/...", "api/..."},
			Forbids: func(p Package) bool {
				return inFolder(p, "controllers") && !inFolder(p, "controllers/compile") && !inFolder(p, "controllers/gather") && !inFolder(p, "controllers/secretkey")
			},
			Reason: "of the controllers only what reads, judges and compiles objects is shared: admission decides from objects, never from what a reconcile did",
		},
		{
			Packages: []string{
				"runtime/downscale", "runtime/injection", "runtime/inspect", "runtime/message", "runtime/observation", "runtime/preflight", "runtime/probe", "runtime/review",
				"runtime/tokens", "runtime/vendors",
			},
			Forbids: func(p Package) bool {
				return exactly(p, world...) || exactly(p, chance...) || under(p, logs...)
			},
			Reason: "this package turns bytes and facts into facts, decisions and bytes, the same for the same input, and touches no file and " +
				"no network: the caller reads, sends and logs",
		},
		{
			Packages: []string{"api/...", "cmd/...", "controllers/...", "runtime/...", "webhook/..."},
			Forbids: func(p Package) bool {
				return inFolder(p, "test", "hack")
			},
			Reason: "test/ and hack/ serve the project's own tests and builds: no product links them",
		},
		{
			Packages: []string{"api/...", "cmd/...", "controllers/...", "runtime/...", "webhook/..."},
			Forbids: func(p Package) bool {
				return inFolder(p, "runtime/provider/exchange/exchangetest")
			},
			Reason: "this package is for tests of the wire protocols, and brings the package testing and its flags: only files of tests import it",
		},
		{
			Packages:   []string{"api/...", "cmd/...", "controllers/...", "hack/...", "runtime/...", "test/...", "webhook/..."},
			Transitive: true,
			Forbids:    func(p Package) bool { return under(p, vendorSDKs...) },
			Reason: "the wire protocols are spoken by runtime/provider itself, in a few kilobytes: a vendor's SDK belongs into " +
				"test/vendors, a module of its own, which holds our bytes against it",
		},
	}
}

// Violation is one import that a rule forbids.
type Violation struct {
	Chain  []string // from the package that the rule binds to the forbidden one
	Reason string
}

// String shows the way to the forbidden package and the rule's reason.
func (v Violation) String() string {
	short := make([]string, len(v.Chain))
	for i, path := range v.Chain {
		short[i] = strings.TrimPrefix(path, Module+"/")
	}
	return fmt.Sprintf("forbidden import: %s: %s", strings.Join(short, " -> "), v.Reason)
}

// CheckImports returns every package of the graph that breaks a rule, once for each rule.
func CheckImports(g Graph, rules []Rule) []Violation {
	var violations []Violation
	for _, rule := range rules {
		for _, p := range g.bound(rule) {
			if way := g.chain(p.ImportPath, rule.Transitive, rule.Forbids); way != nil {
				violations = append(violations, Violation{Chain: way, Reason: rule.Reason})
			}
		}
	}
	return violations
}

// bound returns the packages that the rule binds, sorted by path.
func (g Graph) bound(rule Rule) []Package {
	var packages []Package
	for _, p := range g.locals() {
		folder, _ := p.Local()
		if slices.ContainsFunc(rule.Packages, func(pattern string) bool { return matches(pattern, folder) }) {
			packages = append(packages, p)
		}
	}
	return packages
}

// matches says whether a pattern of [Rule.Packages] binds folder.
func matches(pattern, folder string) bool {
	root, recursive := strings.CutSuffix(pattern, "/...")
	return folder == root || recursive && strings.HasPrefix(folder, root+"/")
}

// inFolder says whether p is a package of the module in one of the folders or below it.
func inFolder(p Package, folders ...string) bool {
	folder, ok := p.Local()
	return ok && slices.ContainsFunc(folders, func(root string) bool { return matches(root+"/...", folder) })
}

// under says whether p has one of the paths or lies below it.
func under(p Package, paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return matches(path+"/...", p.ImportPath) })
}

// exactly says whether p has one of the paths.
func exactly(p Package, paths ...string) bool {
	return slices.Contains(paths, p.ImportPath)
}
