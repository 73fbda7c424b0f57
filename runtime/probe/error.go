// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "strings"

// Reason says why a header was refused: a stable CamelCase word.
type Reason string

const (
	// NotAnImage: no signature of a known format.
	NotAnImage Reason = "NotAnImage"
	// Truncated: a known format whose content ends before the size.
	Truncated Reason = "Truncated"
	// Malformed: a known format whose header breaks that format's rules.
	Malformed Reason = "Malformed"
	// ZeroSize: a side of zero pixels. For JPEG this includes a height that
	// is left to a later DNL marker, which common decoders refuse as well.
	ZeroSize Reason = "ZeroSize"
)

// Error is the refusal of a header. It never holds bytes of the image.
type Error struct {
	Reason Reason
	// MediaType is the format whose signature was found, "" for NotAnImage.
	MediaType string
}

// Error says what is wrong; for NotAnImage it lists the known types.
func (e *Error) Error() string {
	const doing = "reading image header: "
	switch e.Reason {
	case NotAnImage:
		return doing + "content is not an image of a known type (known: " + strings.Join(MediaTypes(), ", ") + ")"
	case Truncated:
		return doing + e.MediaType + " ends before its size"
	case ZeroSize:
		return doing + e.MediaType + " has a side of zero pixels"
	}
	return doing + e.MediaType + " is malformed"
}
