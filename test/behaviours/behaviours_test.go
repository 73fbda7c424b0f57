// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviours_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/test/behaviours"
)

// mostAbsent is how many cases may be declared not applicable.
const mostAbsent = 10

func TestEveryCaseHasATestAndEveryTestACase(t *testing.T) {
	document, err := os.ReadFile("../../docs/behaviours.md")
	if err != nil {
		t.Fatal(err)
	}
	cases, absent := behaviours.List(string(document))
	if len(cases) < 40 {
		t.Fatalf("only %d cases were read from docs/behaviours.md", len(cases))
	}
	if len(absent) > mostAbsent {
		t.Errorf("%d cases do not apply; at most %d may", len(absent), mostAbsent)
	}
	found, err := behaviours.Tests("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Sorted(maps.Keys(cases)) {
		if len(found[id]) == 0 {
			t.Errorf("%s has no test: %s", id, cases[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if _, known := cases[id]; !known {
			t.Errorf("%s is tested at %v, and docs/behaviours.md has no such case", id, found[id])
		}
	}
}

func TestWhatCountsAsTheNameOfACase(t *testing.T) {
	source := `package p
func TestH40_ANamedModelWaits(t *testing.T) {}
func TestLists_H37_H38(t *testing.T) {}
func helperH99() {}
var table = map[string]int{"H01: a PNG": 1, "H02, H03: both": 2, "see H77 below": 3, "H78 without a colon": 4,
	"D01: nothing": 5, "D02, D03 both": 6, "D04 D05: both": 7, "see D77": 8, "D78bare": 9, "D06": 10}
`
	dir := t.TempDir()
	for name, content := range map[string]string{"a_test.go": source, "b.go": "package p\nvar x = \"H66: not a test\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := behaviours.Tests(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"D01", "D02", "D03", "D04", "D05", "H01", "H02", "H03", "H37", "H38", "H40"}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("found %v; want %v", got, want)
	}
	if _, err := behaviours.Tests(filepath.Join(dir, "missing")); err == nil {
		t.Error("a folder that is not there was read")
	}
}
