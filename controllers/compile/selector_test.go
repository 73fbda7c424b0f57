// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selectable are all labels that matter to the selectors of randomSelector: each
// key is absent, has a value that selectors name, or one that none does.
func selectable() []labels.Set {
	values := []string{"", "x", "y", "z", "unheard-of"}
	var sets []labels.Set
	for _, a := range values {
		for _, b := range values {
			set := labels.Set{}
			if a != "" {
				set["a"] = a
			}
			if b != "" {
				set["b"] = b
			}
			sets = append(sets, set)
		}
	}
	return sets
}

func randomSelector(r *rand.Rand) *metav1.LabelSelector {
	values, keys := []string{"x", "y", "z"}, []string{"a", "b"}
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	if r.IntN(3) == 0 {
		s.MatchLabels[keys[r.IntN(2)]] = values[r.IntN(3)]
	}
	operators := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}
	for range r.IntN(4) {
		e := metav1.LabelSelectorRequirement{Key: keys[r.IntN(2)], Operator: operators[r.IntN(4)]}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			r.Shuffle(3, func(i, j int) { values[i], values[j] = values[j], values[i] })
			e.Values = append(e.Values, values[:1+r.IntN(3)]...)
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

func TestSelectorsHaveOneKeyExactlyWhenTheySelectTheSame(t *testing.T) {
	const count = 20_000
	r, sets := rand.New(rand.NewPCG(6, 1)), selectable()
	byKey, bySelection := map[string]string{}, map[string]string{}
	for range count {
		s := randomSelector(r)
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		var selection string
		selected := 0
		for _, set := range sets {
			matches := selector.Matches(set)
			selection += fmt.Sprintf("%t ", matches)
			if matches {
				selected++
			}
		}
		key := selectorKey(s)
		if other, seen := byKey[key]; seen && other != selection {
			t.Fatalf("%v has the key %q of another selection", s, key)
		}
		if other, seen := bySelection[selection]; seen && other != key {
			t.Fatalf("%v has the key %q, and what selects the same %q", s, key, other)
		}
		if (key == selectsNone) != (selected == 0) {
			t.Fatalf("%v selects %d sets of labels and has the key %q", s, selected, key)
		}
		byKey[key], bySelection[selection] = selection, key
	}
	if len(byKey) < 50 {
		t.Errorf("met %d selections, want at least 50", len(byKey))
	}
}
