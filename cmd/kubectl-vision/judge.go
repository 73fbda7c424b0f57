// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/controllers/compile"
)

// judge is what makes the exit code 1 although there is a document: objects
// that were left out and, when strict, policies that do not work as written.
func judge(strict bool, o *objects, in compile.Input, out compile.Output) error {
	shortfall := &shortfallError{leftOut: leftOut(o, in, out)}
	if strict {
		shortfall.faults = faults(in, out)
	}
	if len(shortfall.leftOut)+len(shortfall.faults) == 0 {
		return nil
	}
	return shortfall
}

// shortfallError is a document that is less than the objects ask for.
type shortfallError struct {
	// leftOut are objects that the document lacks.
	leftOut []string
	// faults are policies that it holds and that do not work as written, and why.
	faults []string
}

// Error names the objects and what --strict refuses.
func (e *shortfallError) Error() string {
	var parts []string
	if len(e.leftOut) > 0 {
		parts = append(parts, "left out "+strings.Join(e.leftOut, ", "))
	}
	if len(e.faults) > 0 {
		parts = append(parts, "--strict refuses "+strings.Join(e.faults, ", "))
	}
	return "rendering: " + strings.Join(parts, "; ")
}

// leftOut lists the objects that the API server would refuse, and those that
// are not accepted, baselines of the operator's namespace among them.
func leftOut(o *objects, in compile.Input, out compile.Output) []string {
	var left []string
	for _, r := range o.refused {
		left = append(left, r.object)
	}
	for name, v := range out.Policies {
		if !v.Accepted.OK {
			left = append(left, "VisionPolicy "+out.Document.Namespace+"/"+name)
		}
	}
	for name := range rejectedBaselines(in) {
		left = append(left, "VisionPolicy "+name)
	}
	for name, v := range out.Providers {
		if !v.Accepted.OK {
			left = append(left, "VisionProvider "+name)
		}
	}
	slices.Sort(left)
	return left
}

// rejectedBaselines are the verdicts on baselines of the operator's namespace that
// are not accepted and so laid over no other, by "namespace/name".
func rejectedBaselines(in compile.Input) map[string]compile.Verdict {
	rejected := map[string]compile.Verdict{}
	if in.Namespace == in.OperatorNamespace {
		return rejected // they are among the namespace's own
	}
	home := compile.Compile(compile.Input{Namespace: in.OperatorNamespace, OperatorNamespace: in.OperatorNamespace, Policies: in.Policies})
	for name, v := range home.Policies {
		if v.Baseline && !v.Accepted.OK {
			rejected[in.OperatorNamespace+"/"+name] = v.Accepted
		}
	}
	return rejected
}

// faults are the accepted policies, and the baselines that serve by themselves,
// by name, whose references do not resolve or that no route can serve, which is
// one condition, with its reason. The message is among the remarks.
func faults(in compile.Input, out compile.Output) []string {
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(out.Policies)) {
		if v := out.Policies[name]; v.Accepted.OK && !v.ResolvedRefs.OK {
			faults = append(faults, fmt.Sprintf("VisionPolicy %s/%s: %s", out.Document.Namespace, name, v.ResolvedRefs.Reason))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(out.Baselines)) {
		if v := out.Baselines[name]; !v.ResolvedRefs.OK {
			faults = append(faults, fmt.Sprintf("baseline %s/%s: %s", in.OperatorNamespace, name, v.ResolvedRefs.Reason))
		}
	}
	return faults
}

// elsewhereError is a namespace that the files hold nothing of.
type elsewhereError struct {
	namespace string
	others    []string
}

// Error names the namespaces that the files do hold objects of.
func (e *elsewhereError) Error() string {
	return fmt.Sprintf("reading objects: the files hold nothing of namespace %q; they hold objects of: %s", e.namespace, strings.Join(e.others, ", "))
}

// checkNamespace refuses a namespace that is likely mistyped: one without a
// policy or provider, refused ones included, while others have some. A namespace
// that the files hold as an object, or that a baseline serves, is none.
func (o *objects) checkNamespace(in compile.Input) error {
	_, there := o.namespaces[o.defaultNamespace]
	if o.inNamespace[o.defaultNamespace] || len(o.inNamespace) == 0 || there || compile.Served(in) {
		return nil
	}
	return &elsewhereError{namespace: o.defaultNamespace, others: slices.Sorted(maps.Keys(o.inNamespace))}
}
