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
func judge(strict bool, o *objects, out compile.Output) error {
	shortfall := &shortfallError{leftOut: leftOut(o, out)}
	if strict {
		shortfall.faults = faults(out)
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
// are not accepted.
func leftOut(o *objects, out compile.Output) []string {
	var left []string
	for _, r := range o.refused {
		left = append(left, r.object)
	}
	for name, v := range out.Policies {
		if !v.Accepted.OK {
			left = append(left, "VisionPolicy "+out.Document.Namespace+"/"+name)
		}
	}
	for name, v := range out.Providers {
		if !v.Accepted.OK {
			left = append(left, "VisionProvider "+name)
		}
	}
	slices.Sort(left)
	return left
}

// faults are the accepted policies, by name, whose references do not resolve or
// that no route can serve, which is one condition, with its reason. The message
// is among the remarks.
func faults(out compile.Output) []string {
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(out.Policies)) {
		if v := out.Policies[name]; v.Accepted.OK && !v.ResolvedRefs.OK {
			faults = append(faults, fmt.Sprintf("VisionPolicy %s/%s: %s", out.Document.Namespace, name, v.ResolvedRefs.Reason))
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
// policy or provider, refused ones included, while others have some.
func (o *objects) checkNamespace() error {
	if o.inNamespace[o.defaultNamespace] || len(o.inNamespace) == 0 {
		return nil
	}
	return &elsewhereError{namespace: o.defaultNamespace, others: slices.Sorted(maps.Keys(o.inNamespace))}
}
