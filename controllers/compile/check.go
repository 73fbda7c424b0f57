// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

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
