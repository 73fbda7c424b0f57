// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// UnprogrammedProvider returns the paths of the fields of a VisionProvider that
// are set and whose behaviour this build does not have yet, in the order of the
// fields. A value that asks for what this build does anyway is not among them.
func UnprogrammedProvider(p *v1alpha1.VisionProvider) []string {
	u, spec := &unprogrammed{}, &p.Spec
	for i := range spec.Models {
		m, at := &spec.Models[i], fmt.Sprintf("spec.models[%d]", i)
		u.add(m.Price != nil, at+".price")
	}
	return u.paths
}

// UnprogrammedPolicy does the same for a VisionPolicy.
func UnprogrammedPolicy(p *v1alpha1.VisionPolicy) []string {
	u, spec := &unprogrammed{}, &p.Spec
	u.add(len(spec.Quotas) > 0, "spec.quotas")
	return u.paths
}

// unprogrammed collects paths.
type unprogrammed struct{ paths []string }

func (u *unprogrammed) add(set bool, path string) {
	if set {
		u.paths = append(u.paths, path)
	}
}

// is reports whether p points to one of the values.
func is[T comparable](p *T, values ...T) bool {
	if p == nil {
		return false
	}
	for _, v := range values {
		if *p == v {
			return true
		}
	}
	return false
}
