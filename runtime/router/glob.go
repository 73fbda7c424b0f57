// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router

// Glob reports whether pattern matches the whole of s. In a pattern, * stands
// for any run of bytes, slashes included, and ? for any one byte; everything
// else stands for itself. Time is linear in len(pattern)*len(s); nothing is allocated.
func Glob(pattern, s string) bool {
	p, i := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Allows reports whether every layer's list holds route. The canonical name of
// its provider is given beside it, since a tenant's alias never counts in a
// baseline's list.
func (p *Profile) Allows(route Route, provider string) bool {
	for _, layer := range p.Allow {
		name := route.String()
		if layer.Canonical {
			name = provider + "@" + route.Endpoint + "/" + route.Model
		}
		if !anyGlob(layer.Globs, name) {
			return false
		}
	}
	return true
}

func anyGlob(globs []string, s string) bool {
	for _, g := range globs {
		if Glob(g, s) {
			return true
		}
	}
	return false
}
