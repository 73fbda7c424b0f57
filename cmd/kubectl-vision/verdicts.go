// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// verdicts is what was decided of each object, for people: providers first,
// since policies refer to them, each kind by name; then the baselines that serve
// in the namespace by themselves.
func verdicts(in compile.Input, out compile.Output) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(out.Providers)) {
		v := out.Providers[name]
		fmt.Fprintf(w, "VisionProvider %s\n", name)
		condition(w, v1alpha1.ConditionAccepted, v.Accepted)
		unprogrammed(w, v.Unprogrammed)
	}
	for _, name := range slices.Sorted(maps.Keys(out.Policies)) {
		policyVerdict(w, fmt.Sprintf("VisionPolicy %s/%s", in.Namespace, name), out.Document, out.Policies[name])
	}
	for _, name := range slices.Sorted(maps.Keys(out.Baselines)) {
		policyVerdict(w, fmt.Sprintf("Baseline %s/%s", in.OperatorNamespace, name), out.Document, out.Baselines[name])
	}
	w.Flush()
	return trimLines(b.String())
}

func policyVerdict(w *tabwriter.Writer, object string, doc *router.Document, v compile.PolicyVerdict) {
	fmt.Fprintln(w, object)
	condition(w, v1alpha1.ConditionAccepted, v.Accepted)
	if v.Accepted.OK {
		condition(w, v1alpha1.ConditionResolvedRefs, v.ResolvedRefs)
	}
	if v.Overridden.OK {
		condition(w, v1alpha1.ConditionOverridden, v.Overridden)
	}
	unprogrammed(w, v.Unprogrammed)
	if v.Profile != "" {
		route := v.DefaultRoute
		if route == "" {
			route = "none"
		}
		fmt.Fprintf(w, "  Profile\t%s\t\t\n  Default route\t%s\t\t\n", v.Profile, route)
		for _, fallback := range fallbacks(doc, v.Profile) {
			fmt.Fprintf(w, "  Fallback\t%s\t\t\n", fallback)
		}
	}
	for _, c := range v.Candidates {
		fmt.Fprintf(w, "  Candidate\t%s\t%s\t\n", c.Route, c.Reason)
	}
}

// explanation says of each profile, by ID, where each of its fields comes from.
func explanation(out compile.Output) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, id := range slices.Sorted(maps.Keys(out.Origins)) {
		fmt.Fprintf(w, "Profile %s\n", id)
		for _, o := range out.Origins[id] {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", o.Field, o.From, oneLine(o.Value))
		}
	}
	w.Flush()
	return trimLines(b.String())
}

// oneLine quotes what would break a table.
func oneLine(value string) string {
	if strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(value)
	}
	return value
}

// fallbacks are the routes that a profile tries after its default.
func fallbacks(doc *router.Document, profile string) []string {
	for i := range doc.Profiles {
		if doc.Profiles[i].ID == profile {
			return doc.Profiles[i].FallbackModels
		}
	}
	return nil
}

func condition(w *tabwriter.Writer, kind string, v compile.Verdict) {
	status := "False"
	if v.OK {
		status = "True"
	}
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", kind, status, v.Reason, v.Message)
}

func unprogrammed(w *tabwriter.Writer, fields []string) {
	if len(fields) > 0 {
		fmt.Fprintf(w, "  Not obeyed yet\t%s\t\t\n", strings.Join(fields, ", "))
	}
}

// trimLines drops the spaces that columns leave at the ends of lines.
func trimLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
