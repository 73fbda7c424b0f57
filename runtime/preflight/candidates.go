// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// Plan is the answer for a model and its fallbacks.
type Plan struct {
	// Verdicts are one for each candidate, in order.
	Verdicts []Verdict
	// Chosen is the first that is allowed; -1 when none is.
	Chosen int
	// Refusal is set when none is allowed: what the first candidate that sees was
	// refused for, and where none sees, that.
	Refusal *fault.Fault
}

// ReviewAll judges a request for each candidate in its stead: tokens by each
// one's own family, limits by each one's own vendor. in.Candidate is not read.
//
// What is left out for one candidate says nothing of another; see the package.
func ReviewAll(in Input, candidates []Candidate) Plan {
	plan := Plan{Chosen: -1, Verdicts: make([]Verdict, len(candidates))}
	for i := range candidates {
		in.Candidate = candidates[i]
		plan.Verdicts[i] = Review(in)
		if plan.Chosen < 0 && plan.Verdicts[i].Allowed {
			plan.Chosen = i
		}
	}
	if plan.Chosen < 0 {
		plan.Refusal = refuseAll(candidates, plan.Verdicts)
	}
	return plan
}

// mostNamed bounds how many candidates a refusal names.
const mostNamed = 16

func refuseAll(candidates []Candidate, verdicts []Verdict) *fault.Fault {
	for i := range verdicts {
		if f := verdicts[i].Refusal; f.Reason != ReasonBlind {
			return f
		}
	}
	if len(candidates) == 1 {
		return verdicts[0].Refusal
	}
	names := make([]string, 0, mostNamed)
	for i := range candidates[:min(len(candidates), mostNamed)] {
		names = append(names, strings.TrimPrefix(candidates[i].name(), "the model "))
	}
	return fault.New(fault.VisionAdapterUnavailable, ReasonBlind, "none of the request's %d models takes images", len(candidates)).
		With("candidates", names).Hint("Choose a model that can look at images.")
}
