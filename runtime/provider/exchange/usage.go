// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
)

// Counted adds to a fault what a reply without usable text cost: the details
// "input_tokens" and "output_tokens", each where the provider counted any.
func Counted(f *fault.Fault, usage provider.Usage) *fault.Fault {
	if usage.InputTokens > 0 {
		f.With("input_tokens", usage.InputTokens)
	}
	if usage.OutputTokens > 0 {
		f.With("output_tokens", usage.OutputTokens)
	}
	return f
}
