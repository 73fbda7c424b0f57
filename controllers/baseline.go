// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// maxNamed is how many namespaces a baseline's message names.
const maxNamed = 3

// census is what is known of a baseline over the namespaces that it serves.
type census struct {
	// served counts them, and unheard those of which this generation is not known yet.
	served, unheard int
	// unresolved and unprogrammed are those where a verdict is not OK, by name.
	unresolved, unprogrammed trouble
	// route is the default route in all of them; empty where they differ.
	route string
}

// trouble counts the namespaces with one kind of trouble.
type trouble struct {
	count int
	names []string // the first of them
	first compile.Verdict
}

func (t *trouble) add(namespace string, v compile.Verdict) {
	if t.count == 0 {
		t.first = v
	}
	if t.count++; len(t.names) < maxNamed {
		t.names = append(t.names, namespace)
	}
}

// of is "3 of 12 namespaces (a, b, c): in a, why".
func (t *trouble) of(served int) string {
	names := strings.Join(t.names, ", ")
	if t.count > len(t.names) {
		names += ", …"
	}
	return fmt.Sprintf("%d of %s (%s): in %s, %s", t.count, namespaces(served), names, t.names[0], t.first.Message)
}

func namespaces(n int) string {
	if n == 1 {
		return "1 namespace"
	}
	return fmt.Sprintf("%d namespaces", n)
}

// census asks the ledger about every namespace that a baseline serves now.
func (r *routerReconciler) census(ctx context.Context, b *v1alpha1.VisionPolicy) (census, error) {
	all, err := listNamespaces(ctx, r.client)
	if err != nil {
		return census{}, err
	}
	var names []string
	for i := range all {
		ns := &all[i]
		in := compile.Input{Namespace: ns.Name, NamespaceLabels: ns.Labels, OperatorNamespace: r.scope.OperatorNamespace}
		if ns.DeletionTimestamp == nil && r.scope.Holds(ns.Name) && compile.ServedByBaselines(in) && compile.Matches(b, in) {
			names = append(names, ns.Name)
		}
	}
	slices.Sort(names)
	return countStandings(b, names, func(namespace string) (standing, bool) { return r.ledger.standing(namespace, b.Name) }), nil
}

// countStandings sums up what is known of a baseline in namespaces.
func countStandings(b *v1alpha1.VisionPolicy, names []string, find func(namespace string) (standing, bool)) census {
	c := census{served: len(names)}
	for i, name := range names {
		s, known := find(name)
		if !known || s.of != editionOf(b) {
			c.unheard++
			continue
		}
		if !s.refs.OK {
			c.unresolved.add(name, s.refs)
		}
		if !s.programmed.OK {
			c.unprogrammed.add(name, s.programmed)
		}
		if i == 0 {
			c.route = s.route
		} else if c.route != s.route {
			c.route = ""
		}
	}
	return c
}

// resolved is a baseline's verdict on its references: at home, and where it serves.
// One namespace's want of providers is that namespace's, and its policies tell
// it; a baseline that can serve nowhere is told of.
func (c *census) resolved(home compile.Verdict) compile.Verdict {
	switch t := &c.unresolved; {
	case !home.OK:
		return home
	case c.served == 0:
		return compile.Verdict{OK: true, Reason: home.Reason, Message: "no namespace matches spec.namespaceSelector"}
	case t.count == 0:
		return compile.Verdict{OK: true, Reason: home.Reason, Message: "what it refers to is resolved in " + namespaces(c.served)}
	case t.count == c.served && t.first.Reason != v1alpha1.ReasonNoProviders:
		return compile.Verdict{Reason: t.first.Reason, Message: "it cannot serve in " + t.of(c.served)}
	default:
		return compile.Verdict{OK: true, Reason: home.Reason, Message: "it holds wherever it matches; pods that only it serves cannot be served in " + t.of(c.served)}
	}
}

// programmed is a baseline's verdict on the routers that carry it.
func (c *census) programmed(v compile.PolicyVerdict) compile.Verdict {
	switch {
	case c.unprogrammed.count > 0:
		return compile.Verdict{Reason: c.unprogrammed.first.Reason, Message: "not carried in " + c.unprogrammed.of(c.served)}
	case c.served == 0:
		return partly(compile.Verdict{OK: true, Reason: v1alpha1.ReasonProgrammed, Message: "no namespace matches, so there is no router to carry it"}, v)
	}
	return partly(compile.Verdict{OK: true, Reason: v1alpha1.ReasonProgrammed,
		Message: "the routers of " + namespaces(c.served) + " carry this generation"}, v)
}

// baselineConditions are ResolvedRefs and Programmed of an accepted baseline.
// While some namespaces are not heard of, what was said of the same generation
// holds: so it is after a start of the operator, and when labels change.
func baselineConditions(p *v1alpha1.VisionPolicy, v compile.PolicyVerdict, c census) (refs, programmed metav1.Condition) {
	if c.unheard > 0 {
		oldRefs := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionResolvedRefs)
		oldProgrammed := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgrammed)
		if oldRefs != nil && oldProgrammed != nil && oldRefs.ObservedGeneration == p.Generation && oldProgrammed.ObservedGeneration == p.Generation {
			return *oldRefs, *oldProgrammed
		}
		return verdictCondition(v1alpha1.ConditionResolvedRefs, v.ResolvedRefs),
			unknown(v1alpha1.ConditionProgrammed, v1alpha1.ReasonPending, "the routers of "+namespaces(c.served)+" are being published")
	}
	return verdictCondition(v1alpha1.ConditionResolvedRefs, c.resolved(v.ResolvedRefs)),
		verdictCondition(v1alpha1.ConditionProgrammed, c.programmed(v))
}
