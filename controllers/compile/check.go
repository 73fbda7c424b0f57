// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// checkProvider returns what is wrong with a VisionProvider and would not show
// in the document: the document's own rules come after these.
func checkProvider(p *v1alpha1.VisionProvider) []string {
	var problems []string
	spec := &p.Spec
	if (spec.Credentials.SecretRef == nil) == (spec.Credentials.None == nil) {
		problems = append(problems, "spec.credentials: exactly one of secretRef and none must be set")
	}
	if name, twice := duplicate(spec.Endpoints, func(e v1alpha1.Endpoint) string { return e.Name }); twice {
		problems = append(problems, fmt.Sprintf("spec.endpoints: %q is there twice", name))
	}
	if len(spec.Models) == 0 {
		problems = append(problems, "spec.models: at least one model must be declared")
	}
	if name, twice := duplicate(spec.Models, func(m v1alpha1.Model) string { return m.Name }); twice {
		problems = append(problems, fmt.Sprintf("spec.models: %q is there twice", name))
	}
	for i := range spec.Models {
		if spec.Models[i].ImageInput == nil {
			problems = append(problems, fmt.Sprintf("spec.models[%d].imageInput: must be said, true or false", i))
		}
	}
	return problems
}

// checkPolicy returns what is wrong with a VisionPolicy and would not show in
// the document. An empty list is not the absence of a list: it would allow
// nothing, and the document would read it as everything.
func checkPolicy(p *v1alpha1.VisionPolicy) []string {
	var problems []string
	spec := &p.Spec
	for _, s := range []struct {
		field    string
		selector *metav1.LabelSelector
	}{{"spec.podSelector", spec.PodSelector}, {"spec.namespaceSelector", spec.NamespaceSelector}} {
		if _, err := metav1.LabelSelectorAsSelector(s.selector); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", s.field, err))
		}
	}
	if emptied(spec.Providers) {
		problems = append(problems, "spec.providers: is empty; leave it out to use every provider of the namespace")
	}
	if emptied(spec.AllowedModels) {
		problems = append(problems, "spec.allowedModels: is empty; leave it out to allow every model")
	}
	if l := spec.Limits; l != nil && l.Image != nil && emptied(l.Image.MediaTypes) {
		problems = append(problems, "spec.limits.image.mediaTypes: is empty; leave it out to accept the usual types")
	}
	if alias, twice := duplicate(spec.Providers, aliasOf); twice {
		problems = append(problems, fmt.Sprintf("spec.providers: two references are called %q in routes; give one an alias", alias))
	}
	if model := or(spec.DefaultModel, router.Auto); !isAuto(model) {
		problems = append(problems, checkRoute("spec.defaultModel", model)...)
	}
	for i, model := range spec.FallbackModels {
		problems = append(problems, checkRoute(fmt.Sprintf("spec.fallbackModels[%d]", i), model)...)
	}
	return problems
}

func checkRoute(field, text string) []string {
	if _, err := router.ParseRoute(text); err != nil {
		return []string{fmt.Sprintf("%s: %v", field, err)}
	}
	return nil
}

// emptied reports whether a list was given and holds nothing.
func emptied[T any](list []T) bool { return list != nil && len(list) == 0 }

// duplicate finds the first key that two elements share.
func duplicate[T any](list []T, key func(T) string) (string, bool) {
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		if seen[key(e)] {
			return key(e), true
		}
		seen[key(e)] = true
	}
	return "", false
}

// selectorKey is the same for selectors that say the same: an absent one and
// an empty one, a label under matchLabels and under matchExpressions, in any
// order. The selector has been checked.
func selectorKey(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	terms := make([]string, 0, len(s.MatchLabels)+len(s.MatchExpressions))
	for key, value := range s.MatchLabels {
		terms = append(terms, selectorTerm(key, metav1.LabelSelectorOpIn, []string{value}))
	}
	for _, e := range s.MatchExpressions {
		terms = append(terms, selectorTerm(e.Key, e.Operator, e.Values))
	}
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), ";")
}

func selectorTerm(key string, operator metav1.LabelSelectorOperator, values []string) string {
	values = slices.Clone(values)
	slices.Sort(values)
	return fmt.Sprintf("%s %s %s", key, operator, strings.Join(slices.Compact(values), ","))
}

func unprogrammedProvider(*v1alpha1.VisionProvider) []string { return nil }
func unprogrammedPolicy(*v1alpha1.VisionPolicy) []string     { return nil }
