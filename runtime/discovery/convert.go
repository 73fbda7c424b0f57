// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// MaxModels bounds the list that is kept of one endpoint. A longer one keeps
// first those that take images.
const MaxModels = 500

// convert makes an endpoint's list one of the router's, in order of name. Left
// out are names that no route may hold, a name's further entries, and what is
// over MaxModels; cut counts the last. A model takes images only where the
// endpoint says so.
func convert(listed []provider.Listed) (models []router.Model, cut int) {
	for _, l := range listed {
		if nameable(l.Name) {
			models = append(models, router.Model{
				Name: l.Name, ImageInput: l.ImageInput == provider.Yes,
				ContextWindowTokens: max(0, l.ContextWindowTokens), MaxOutputTokens: max(0, l.MaxOutputTokens),
			})
		}
	}
	byName := func(a, b router.Model) int { return cmp.Compare(a.Name, b.Name) }
	seeingFirst := func(a, b router.Model) int { return cmp.Compare(rank(a), rank(b)) }
	slices.SortStableFunc(models, func(a, b router.Model) int { return cmp.Or(byName(a, b), seeingFirst(a, b)) })
	models = slices.CompactFunc(models, func(a, b router.Model) bool { return a.Name == b.Name })
	if cut = len(models) - MaxModels; cut > 0 {
		slices.SortStableFunc(models, seeingFirst)
		models = slices.Clone(models[:MaxModels])
		slices.SortFunc(models, byName)
	}
	return models, max(0, cut)
}

func rank(m router.Model) int {
	if m.ImageInput {
		return 0
	}
	return 1
}

// nameable reports whether a route may name a model so. What cannot be printed,
// such as a sign that turns the direction of the text, is no name: nobody
// declared it, and it is shown in answers and logs.
func nameable(name string) bool {
	_, err := router.ParseRoute("p/" + name)
	return err == nil && utf8.ValidString(name) && !strings.ContainsFunc(name, unprintable)
}

func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
