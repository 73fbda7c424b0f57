// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

// Text estimates the tokens of that many bytes of text or JSON: four bytes a
// token, rounded up. It is an estimate, never a reason to refuse.
func Text(bytes int64) int64 {
	if bytes <= 0 {
		return 0
	}
	return bytes/4 + (bytes%4+3)/4
}

// The bounds of Headroom, in tokens.
const (
	minHeadroom = 4096
	maxHeadroom = 32768
)

// Headroom is what is kept free of a context window for what estimates miss: a
// hundredth of it, at least 4096 and at most 32768 tokens.
func Headroom(window int64) int64 {
	return min(max(window/100, minHeadroom), maxHeadroom)
}

// ClampOutput is how many tokens a reply may have: the configured number, but no
// more than the window leaves after the input and its headroom, and at least 1.
// An unknown window (0 or less) leaves the configured number as it is; so does a
// configured number of 0, which asks for nothing.
func ClampOutput(configured, window, input int64) int64 {
	if window <= 0 || configured <= 0 {
		return max(configured, 0)
	}
	return min(configured, max(1, window-max(input, 0)-Headroom(window)))
}
