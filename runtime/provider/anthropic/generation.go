// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"strconv"
	"strings"
)

// generation is what a model's name says of when it was made. The zero
// generation is a model whose name says nothing, such as one of another vendor.
type generation struct {
	family       string // "opus", "sonnet", "haiku", "instant", or "" for another
	major, minor int
}

// families are those by which older models differ within a generation.
var families = map[string]bool{"opus": true, "sonnet": true, "haiku": true, "instant": true}

// generationOf reads a model's name: "claude-", then a family and a version in
// either order. Clouds put a vendor or a region before it, and a date, a
// revision or a variant after it: "us.anthropic.claude-3-5-sonnet-20241022-v2:0",
// "claude-opus-4@20250514", "anthropic/claude-3.7-sonnet:thinking".
func generationOf(model string) generation {
	var g generation
	_, rest, found := strings.Cut(strings.ToLower(model), "claude")
	if !found {
		return g
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	for i, word := range words {
		if families[word] {
			g.family = word
		}
		if g.major != 0 {
			continue
		}
		g.major = number(strings.TrimPrefix(word, "v")) // "claude-v2"
		if i+1 < len(words) && g.major != 0 {
			g.minor = number(words[i+1])
		}
	}
	return g
}

// number reads one or two digits, and is 0 for anything else: more are a date.
func number(word string) int {
	if len(word) > 2 {
		return 0
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return 0
	}
	return n
}

// before reports whether a model is known to be of a generation before another.
func (g generation) before(major, minor int) bool {
	return g.major != 0 && (g.major < major || g.major == major && g.minor < minor)
}

// formatsOutput reports whether a model can be expected to know
// output_config.format, which came with Opus 4.1 and Sonnet 4.5. A model whose
// name says nothing is taken for a new one.
func (g generation) formatsOutput() bool { return g.family != "instant" && !g.before(4, 1) }

const (
	// longestOutput is the cap that holds where a model's own does not: far above
	// any observation, with as much again for a model that thinks first, since
	// thinking counts as output. It is below the some 21,000 tokens from which on
	// the vendor's SDKs insist on streaming.
	longestOutput = 16384
	// The most that older models write; they refuse to be asked for more.
	output35 = 8192
	output30 = 4096
)

// outputTokens is the cap for a request that names none. The protocol demands
// one. Source: the vendor's "Models overview", the row of the most output.
func (g generation) outputTokens() int64 {
	switch {
	case g.family == "instant" || g.before(3, 5):
		return output30
	case g.before(3, 7):
		return output35
	}
	return longestOutput
}
