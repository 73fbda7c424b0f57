// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/review"
)

// text is a response for people: what was asked, a paragraph for each image, the
// sums, and the verdict last.
func (a *asked) text(g *governed, r *review.Response) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	policy := g.policy
	if policy == "" {
		policy = "none; every limit has its default"
	}
	line("Policy", "%s", policy)
	line("Model", "%s", a.model)
	line("Dialect", "%s", a.request.Dialect)
	w.Flush()
	for i := range r.Decisions {
		b.WriteString(paragraph(&r.Decisions[i]))
	}
	if t := r.Tokens; t != nil {
		line("Tokens", "%s", sums(t))
	}
	for _, warning := range r.Warnings {
		line("Warning", "%s", warning)
	}
	if !r.Allowed && !explained(r) {
		line("Why", "%s", r.Status.Message)
	}
	line("Verdict", "%s", verdictOf(r))
	w.Flush()
	return b.String()
}

// paragraph is one image: what became of it, what it costs, and why.
func paragraph(d *preflight.Decision) string {
	need := "optional"
	if d.Required {
		need = "required"
	}
	text := fmt.Sprintf("%s: %s, %s", printable(d.ID), d.Outcome, need)
	if d.Tokens > 0 {
		text += fmt.Sprintf(", %d tokens", d.Tokens)
	}
	text += "\n"
	if d.Basis != "" {
		text += "  " + printable(d.Basis) + "\n"
	}
	if d.Reason != "" {
		text += "  " + printable(d.Reason+": "+d.Message) + "\n"
	}
	if d.Outcome == preflight.Degraded {
		text += "  in its place: " + d.Note() + "\n"
	}
	return text
}

// explained reports whether the decision on an image says why the request is refused.
func explained(r *review.Response) bool {
	return slices.ContainsFunc(r.Decisions, func(d preflight.Decision) bool { return d.Message == r.Status.Message })
}

// sums are the tokens of the whole request.
func sums(t *preflight.Tokens) string {
	text := fmt.Sprintf("text %d, images %d, reserved for the answer %d, all estimated; ", t.Text, t.Images, t.Output)
	if t.Window == 0 {
		return text + "the context window is not known"
	}
	return text + fmt.Sprintf("the context window has %d, of which %d are kept free", t.Window, t.Headroom)
}

// verdictOf is the answer in a line.
func verdictOf(r *review.Response) string {
	out := 0
	for i := range r.Decisions {
		if r.Decisions[i].Outcome == preflight.Degraded {
			out++
		}
	}
	switch {
	case !r.Allowed:
		return fmt.Sprintf("refused: %s, to be answered with HTTP status %d", r.Status.Reason, r.Status.Code)
	case out > 0:
		return fmt.Sprintf("allowed, with %d of %d images left out", out, len(r.Decisions))
	}
	return "allowed"
}
