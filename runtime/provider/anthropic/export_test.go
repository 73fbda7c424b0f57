// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

// Generation is generationOf, with what follows from it.
func Generation(model string) (family string, major, minor int, formats bool, output int64) {
	g := generationOf(model)
	return g.family, g.major, g.minor, g.formatsOutput(), g.outputTokens()
}
