// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"slices"
	"strings"
)

// The media types that every vision model takes.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
)

// The media types that some models take besides. The size of TIFF, AVIF, HEIC
// and HEIF may be unknown even when the whole image is at hand.
const (
	BMP  = "image/bmp"
	TIFF = "image/tiff" // BigTIFF too
	AVIF = "image/avif"
	HEIC = "image/heic"
	HEIF = "image/heif"
)

// The media types that are recognised to be named in a refusal: no vision
// model is known to take them. JXL and JP2 never tell a size.
const (
	ICO = "image/x-icon"
	SVG = "image/svg+xml"
	JXL = "image/jxl"
	JP2 = "image/jp2"
)

// MediaTypes returns the media types that Header recognises, in a fixed order
// that suits a message to the reader. Which of them are accepted is the
// caller's to say.
func MediaTypes() []string {
	return []string{PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF, HEIC, HEIF, ICO, SVG, JXL, JP2}
}

// Answer is what a header says to a question of yes or no.
type Answer uint8

// The answers. Unknown is also the answer to a question that was not reached.
const (
	Unknown Answer = iota
	No
	Yes
)

// String is "unknown", "no" or "yes".
func (a Answer) String() string {
	switch a {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// Facts is what the header of an image says. Facts are comparable.
type Facts struct {
	// MediaType is one of the constants above, taken from the content alone.
	MediaType string
	// Width and Height are in pixels, as stored (before any orientation that
	// metadata may ask for); DisplaySize is what a viewer shows. Both are 0 when
	// the size is unknown. They are those of the canvas of a GIF or WebP, of the
	// first page of a TIFF, of the primary image of an AVIF or HEIC (before any
	// clean aperture), and of the largest picture that the directory of an ICO
	// lists, which is a claim: a PNG in an ICO may be larger than 256. Those of an
	// SVG are a hint, which a renderer need not follow.
	Width, Height int
	// ReachWidth and ReachHeight are the sides of the smallest canvas that would
	// hold all frames of a GIF or WebP that were seen; both are 0 unless a frame
	// reaches past the canvas. Decoders differ on those: some refuse, some crop,
	// and some enlarge the canvas, and so need memory for Pixels.
	ReachWidth, ReachHeight int
	// Orientation is the EXIF orientation, 1 to 8, that a viewer applies; 0 when
	// the bytes that were read do not tell one, or one that does not exist. In
	// AVIF and HEIC the container's rotation and mirror decide, as one of the
	// eight, and EXIF is ignored. An orientation in XMP is not looked at.
	Orientation int
	// Animated is whether there is more than one frame. Unknown where the frames
	// were not all seen. The pages of a TIFF and the further pictures of an MPO
	// or ICO are not frames.
	Animated Answer
	// Bits is the number of bits of a sample of PNG, TIFF and JPEG: 16 in deep
	// images; 0 when not told. A palette's samples have 8.
	Bits int
	// CMYK is whether a JPEG has four components (CMYK or YCCK) or a TIFF is
	// separated: many decoders know neither.
	CMYK bool
}

// SizeKnown reports whether the header told the size.
func (f Facts) SizeKnown() bool { return f.Width > 0 && f.Height > 0 }

// Pixels is width times height, computed in 64 bits: the largest PNG
// (2^31-1 on both sides) does not overflow. It is 0 when the size is unknown.
// Where frames reach past the canvas it is the larger number that a decoder
// may have to hold.
func (f Facts) Pixels() uint64 {
	if !f.SizeKnown() {
		return 0
	}
	return uint64(max(f.Width, f.ReachWidth)) * uint64(max(f.Height, f.ReachHeight))
}

// DisplaySize is the size in pixels as a viewer shows the image: orientations 5
// to 8 lay it on its side. Both are 0 when the size is unknown.
func (f Facts) DisplaySize() (width, height int) {
	if f.Orientation >= 5 {
		return f.Height, f.Width
	}
	return f.Width, f.Height
}

// aliases are names in use for a media type besides its own. HEIC and HEIF are
// one container, whose files are declared as either.
var aliases = map[string][]string{
	PNG:  {"image/x-png", "image/apng", "image/vnd.mozilla.apng"},
	JPEG: {"image/jpg", "image/pjpeg", "image/jfif"},
	WebP: {"image/x-webp"},
	BMP:  {"image/x-bmp", "image/x-ms-bmp"},
	TIFF: {"image/tif", "image/x-tiff", "image/x-tif"},
	AVIF: {"image/avif-sequence"},
	HEIC: {HEIF, "image/heic-sequence", "image/heif-sequence"},
	HEIF: {HEIC, "image/heic-sequence", "image/heif-sequence"},
	ICO:  {"image/vnd.microsoft.icon", "image/ico"},
	SVG:  {"image/svg"},
	JP2:  {"image/jpeg2000", "image/jpeg2000-image"},
}

// Agrees reports whether a declared media type fits the type that the bytes
// have: case, parameters and the names in use for one type (image/jpg,
// image/jpeg) make no difference. Nothing declared ("") agrees with every
// recognised image.
func (f Facts) Agrees(declared string) bool {
	name, _, _ := strings.Cut(declared, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	switch {
	case f.MediaType == "":
		return false
	case name == "" && strings.TrimSpace(declared) == "":
		return true
	}
	return name == f.MediaType || slices.Contains(aliases[f.MediaType], name)
}
