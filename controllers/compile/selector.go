// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selectorKey is the same for selectors that select the same, in whatever words:
// requirements of different keys are independent of each other, so what all those
// of one key come to is its canonical form. The selector has been checked.
func selectorKey(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	demands := make(map[string]*demand, len(s.MatchLabels)+len(s.MatchExpressions))
	for key, value := range s.MatchLabels {
		demandOf(demands, key).add(metav1.LabelSelectorOpIn, []string{value})
	}
	for _, e := range s.MatchExpressions {
		demandOf(demands, e.Key).add(e.Operator, e.Values)
	}
	terms := make([]string, 0, len(demands))
	for _, key := range slices.Sorted(maps.Keys(demands)) {
		term := demands[key].String()
		if term == selectsNone {
			return selectsNone
		}
		terms = append(terms, key+" "+term)
	}
	return strings.Join(terms, ";")
}

// selectsNone is the selectorKey of selectors that select nothing, since their
// requirements contradict each other.
const selectsNone = "none"

// demand is what a selector demands of one label: that it is there, with one of
// some values, or with none of others. Zero: nothing.
type demand struct {
	there, absent bool
	// oneOf is what the value must be among, when it is not nil, and noneOf what
	// the label, where it is there, must not have.
	oneOf  []string
	noneOf []string
}

func demandOf(demands map[string]*demand, key string) *demand {
	if demands[key] == nil {
		demands[key] = &demand{}
	}
	return demands[key]
}

func (d *demand) add(operator metav1.LabelSelectorOperator, values []string) {
	switch operator {
	case metav1.LabelSelectorOpIn:
		if d.there = true; d.oneOf == nil {
			d.oneOf = slices.Clone(values)
			break
		}
		d.oneOf = slices.DeleteFunc(d.oneOf, func(v string) bool { return !slices.Contains(values, v) })
	case metav1.LabelSelectorOpNotIn:
		d.noneOf = append(d.noneOf, values...)
	case metav1.LabelSelectorOpExists:
		d.there = true
	case metav1.LabelSelectorOpDoesNotExist:
		d.absent = true
	}
}

// String is the same for demands that the same labels meet.
func (d *demand) String() string {
	list := func(values []string) string {
		slices.Sort(values)
		return strings.Join(slices.Compact(values), ",")
	}
	oneOf := slices.DeleteFunc(slices.Clone(d.oneOf), func(v string) bool { return slices.Contains(d.noneOf, v) })
	switch {
	case d.there && (d.absent || d.oneOf != nil && len(oneOf) == 0):
		return selectsNone
	case d.absent:
		return "absent"
	case d.oneOf != nil:
		return "in " + list(oneOf)
	case d.there:
		return "there, not in " + list(slices.Clone(d.noneOf))
	}
	return "not in " + list(slices.Clone(d.noneOf))
}
