// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/preflight"
)

func TestPathsThatWereLeftOutStayLeftOut(t *testing.T) {
	r := rand.New(rand.NewPCG(64, 1))
	left := 0
	for range 2000 {
		turns, paths := mentionedAtRandom(r)
		for n := 1; n < len(turns); n++ {
			end := slices.IndexFunc(paths, func(p preflight.Path) bool { return p.Turn >= n })
			if end < 0 {
				end = len(paths)
			}
			earlier, now := preflight.ProbePaths(turns[:n], paths[:end], 3), preflight.ProbePaths(turns, paths, 3)
			if earlier.Refusal != nil || now.Refusal != nil {
				continue
			}
			opened := map[string]bool{}
			for i, may := range now.May {
				if opened[paths[i].Name] = opened[paths[i].Name] || may; i < end && may && !earlier.May[i] {
					t.Fatalf("%d of %v is opened after %d turns, and was not after %d", i, paths, len(turns), n)
				}
				if !may {
					left++
				}
			}
			for name, may := range opened {
				if !may {
					delete(opened, name)
				}
			}
			if len(opened) > 3 {
				t.Fatalf("%d files are opened: %v", len(opened), opened)
			}
		}
	}
	if left == 0 {
		t.Error("no path was ever left out")
	}
}

func mentionedAtRandom(r *rand.Rand) ([]preflight.Turn, []preflight.Path) {
	turns := make([]preflight.Turn, 1+r.IntN(8))
	var paths []preflight.Path
	for k := range turns {
		turns[k].Kind = preflight.Kind(r.IntN(4))
		for range r.IntN(3) {
			paths = append(paths, preflight.Path{Name: fmt.Sprintf("/w/%d.png", r.IntN(8)), Turn: k})
		}
	}
	return turns, paths
}

func TestSoftPathsThatAreTooManyAreLeftOutFromTheOldest(t *testing.T) {
	turns := []preflight.Turn{{Kind: preflight.Human}, {Kind: preflight.Assistant}, {Kind: preflight.Results}}
	var paths []preflight.Path
	for i := range 5 {
		paths = append(paths, preflight.Path{Name: fmt.Sprint(i), Turn: 2, Soft: true})
	}
	if got := preflight.ProbePaths(turns, paths, 3); got.Refusal != nil || fmt.Sprint(got.May) != "[false false true true true]" {
		t.Errorf("got %v, %v", got.May, got.Refusal)
	}
	for i := range paths {
		paths[i].Soft = false
	}
	if got := preflight.ProbePaths(turns, paths, 3); got.Refusal == nil {
		t.Error("firm ones are not refused")
	}
}
