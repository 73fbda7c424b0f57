// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/controllers/compile"
)

// TestTheDocumentationNamesEveryCheckReasonAndVariable keeps docs/admission.md
// whole: what users may meet has a line there that says what to do.
func TestTheDocumentationNamesEveryCheckReasonAndVariable(t *testing.T) {
	data, err := os.ReadFile("../../docs/admission.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	names = append(names, CheckNames()...)
	names = append(names, reasons(t)...)
	names = append(names, compile.ServingNone, compile.ServingNotFound, compile.ServingNotSelecting)
	for _, set := range compile.VariableSets() {
		names = append(names, set.Name)
		for name := range set.Data {
			names = append(names, name)
		}
	}
	for _, sdk := range compile.SDKs() {
		names = append(names, sdk.URL)
	}
	for _, name := range names {
		if !strings.Contains(string(data), "`"+name+"`") {
			t.Errorf("docs/admission.md does not speak of `%s`", name)
		}
	}
}

// reasons are the values of the constants of type Reason.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "plan.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Reason" {
			return true
		}
		for _, v := range spec.Values {
			value, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, value)
		}
		return true
	})
	if len(out) < 15 {
		t.Fatalf("plan.go has only the reasons %v", out)
	}
	return out
}
