// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"path/filepath"
	"slices"
	"testing"
)

// notYet are folders that a rule binds before they exist. Any other one must be there: a
// rule whose folder was renamed would bind nothing, and nobody would notice.
var notYet = []string{"runtime/message"}

// TestTree applies every rule to the packages of this repository as they are.
func TestTree(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := List(root, "./...")
	if err != nil {
		t.Fatal(err)
	}

	t.Run("no package imports what its rule forbids", func(t *testing.T) {
		for _, violation := range CheckImports(tree, Rules()) {
			t.Error(violation)
		}
	})
	t.Run("every rule binds a package", func(t *testing.T) {
		for _, rule := range Rules() {
			for _, pattern := range rule.Packages {
				if len(tree.bound(Rule{Packages: []string{pattern}})) == 0 && !slices.Contains(notYet, pattern) {
					t.Errorf("%s matches no package, so a rule binds nothing there: %s", pattern, rule.Reason)
				}
			}
		}
	})
	t.Run("every package is named after its job and says it", func(t *testing.T) {
		for _, problem := range CheckNames(tree) {
			t.Error(problem)
		}
	})
	t.Run("no function and no file is too long", func(t *testing.T) {
		problems, err := CheckSizes(tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			t.Error(problem)
		}
	})
}
