// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package behaviours holds the list of behaviour cases (docs/behaviours.md) and
// the tests that carry them together.
package behaviours

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// List reads the document: the ids of the cases that need a test, and of those
// that do not apply, each with its sentence.
func List(document string) (cases, absent map[string]string) {
	cases, absent = map[string]string{}, map[string]string{}
	into := cases
	for line := range strings.Lines(document) {
		if strings.HasPrefix(line, "## ") {
			into = cases
			if strings.TrimSpace(line) == "## Not applicable" {
				into = absent
			}
		}
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			into[m[1]] = m[2]
		}
	}
	return cases, absent
}

var row = regexp.MustCompile(`^\| ([DH][0-9]+[a-z]?) \| (.+) \|$`)

// Tests returns the ids that tests below root carry, each with where it stands:
// in the name of a test function (TestH40…, Test…_H40…) or at the beginning of a
// text, as names of cases in tables are; behind D's ids no colon need stand.
func Tests(root string) (map[string][]string, error) {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading tests of %s: %w", path, err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, id := range idsOf(n) {
				found[id] = append(found[id], files.Position(n.Pos()).String())
			}
			return true
		})
		return nil
	})
	return found, err
}

var (
	id     = regexp.MustCompile(`[DH][0-9]{2}[a-z]?`)
	inText = regexp.MustCompile(`^([DH][0-9]{2}[a-z]?(?:,? [DH][0-9]{2}[a-z]?)*): |^(D[0-9]{2}[a-z]?(?:,? D[0-9]{2}[a-z]?)*) `)
)

func idsOf(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if strings.HasPrefix(n.Name.Name, "Test") {
			return id.FindAllString(n.Name.Name, -1)
		}
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			if text, err := strconv.Unquote(n.Value); err == nil {
				return id.FindAllString(inText.FindString(text), -1)
			}
		}
	}
	return nil
}
