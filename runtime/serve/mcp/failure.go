// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"maps"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// failureText says what failed and what to do, with all that the structured
// content has: a host may show its model the text alone. The image is named when
// it is known, and so is what was considered for it.
func failureText(failure *reply.Failure) string {
	f := failure.Error
	var out strings.Builder
	fmt.Fprintf(&out, "Error: %s failed with %s: %s\n", tool.Name, kindAndReason(f), oneLine(f.Message))
	if f.RecoveryHint != "" {
		fmt.Fprintf(&out, "Hint: %s\n", oneLine(f.RecoveryHint))
	}
	fmt.Fprintf(&out, "Retryable: %t\n", f.Retryable)
	if f.RetryAfter > 0 {
		fmt.Fprintf(&out, "Retry after: %s\n", f.RetryAfter)
	}
	if details := detailsBeside(f, failure.VisionSelection); len(details) > 0 {
		fmt.Fprintf(&out, "Details: %s\n", observation.Quote(details))
	}
	if failure.VisualReference != nil {
		out.WriteString(observation.Text(&observation.Result{VisualReference: failure.VisualReference, VisionSelection: failure.VisionSelection}))
	}
	return out.String()
}

func kindAndReason(f *fault.Fault) string {
	if f.Reason == "" {
		return string(f.Kind)
	}
	return fmt.Sprintf("%s (%s)", f.Kind, f.Reason)
}

// detailsBeside are the details without what is told in lines of its own.
func detailsBeside(f *fault.Fault, selected *observation.Selection) map[string]any {
	details := maps.Clone(f.Details)
	delete(details, reply.DetailRetryAfter)
	if selected != nil {
		for _, told := range []string{"selected_mode", "selection_reason", "candidates"} {
			delete(details, told)
		}
	}
	return details
}

// oneLine keeps a sentence to its line: it may repeat what a caller wrote.
func oneLine(sentence string) string {
	return strings.Join(strings.Fields(observation.Printable(sentence)), " ")
}
