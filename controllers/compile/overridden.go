// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// markOverridden tells each accepted policy whose selector equals an older
// one's, or an equally old one's before it by name, which policy wins. A policy
// that is not accepted wins too, as in Serving: its pods are told what is wrong
// with it, and never fall to another. Of baselines only the accepted ones count,
// and both selectors must be equal. Policies are given oldest first.
func markOverridden(policies []*policy) {
	winners := make(map[string]*policy, len(policies))
	for _, p := range policies {
		if _, err := podSelector(p.object); err != nil || isBaseline(p.object) && !p.verdict.Accepted.OK {
			continue // serves no pod
		}
		key := selectorsKey(p.object)
		if key == "" {
			continue
		}
		winner, taken := winners[key]
		switch {
		case !taken:
			winners[key] = p
		case p.verdict.Accepted.OK:
			p.verdict.Overridden = overriddenBy(winner)
		}
	}
}

// selectorsKey is the same for policies that serve the same pods, and empty for
// those that serve none.
func selectorsKey(p *v1alpha1.VisionPolicy) string {
	pods := selectorKey(p.Spec.PodSelector)
	if !isBaseline(p) {
		return sharedKey("policy", pods)
	}
	return sharedKey("baseline", selectorKey(p.Spec.NamespaceSelector), pods)
}

func sharedKey(parts ...string) string {
	if slices.Contains(parts, selectsNone) {
		return ""
	}
	return strings.Join(parts, "\x00")
}

func overriddenBy(winner *policy) Verdict {
	v := Verdict{OK: true, Reason: v1alpha1.ReasonEqualSelector}
	if isBaseline(winner.object) {
		v.Message = fmt.Sprintf("baseline %q has equal selectors and comes first: it serves the pods that only baselines serve, and its defaults "+
			"come before this one's; the limits, allow-lists and denials of this one hold all the same", winner.object.Name)
		return v
	}
	state := ""
	if !winner.verdict.Accepted.OK {
		state = " (although it is not accepted)"
	}
	v.Message = fmt.Sprintf("VisionPolicy %q has an equal podSelector and comes first%s; a pod gets this policy only when its annotation %s names it",
		winner.object.Name, state, v1alpha1.PolicyAnnotation)
	return v
}
