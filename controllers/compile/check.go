// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
)

// checkProvider returns what is wrong with a VisionProvider.
func checkProvider(p *v1alpha1.VisionProvider) []string { return messages(validation.Provider(p)) }

// checkPolicy returns what is wrong with a VisionPolicy.
func checkPolicy(p *v1alpha1.VisionPolicy) []string { return messages(validation.Policy(p)) }

// messages are the errors' texts, in the order of the fields. Errors of one
// field may come from a map, so they are put in order.
func messages(errs field.ErrorList) []string {
	list := make([]string, len(errs))
	first := 0
	for i, err := range errs {
		list[i] = err.Error()
		if err.Field != errs[first].Field {
			first = i
		}
		slices.Sort(list[first : i+1])
	}
	return list
}

// selectorKey is the same for selectors that say the same: an absent one and
// an empty one, a label under matchLabels and under matchExpressions, in any
// order. The selector has been checked.
func selectorKey(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	terms := make([]string, 0, len(s.MatchLabels)+len(s.MatchExpressions))
	for key, value := range s.MatchLabels {
		terms = append(terms, selectorTerm(key, metav1.LabelSelectorOpIn, []string{value}))
	}
	for _, e := range s.MatchExpressions {
		terms = append(terms, selectorTerm(e.Key, e.Operator, e.Values))
	}
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), ";")
}

func selectorTerm(key string, operator metav1.LabelSelectorOperator, values []string) string {
	values = slices.Clone(values)
	slices.Sort(values)
	return fmt.Sprintf("%s %s %s", key, operator, strings.Join(slices.Compact(values), ","))
}
