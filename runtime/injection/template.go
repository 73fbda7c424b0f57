// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

// Heading is the text that stands before the images of one message.
func (p *Plan) Heading() string { return p.rules.Heading }

// ItemText is the text that stands before the image of sight i, the index-th
// (from 1) of its message; "" where none stands: in a tool's result, unless the
// policy sets one.
func (p *Plan) ItemText(i int, picture *Picture, index int) string {
	return p.rules.Item
}

// Unavailable is the one text in the place of the image of sight i that cannot be
// shown. Sights that are Old, ErrorResult or NoPath have constant texts of their own.
func (p *Plan) Unavailable(i int, reason string) string {
	return p.rules.Unavailable
}
