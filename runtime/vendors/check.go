// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Image is what is known of one image in a request. What is 0 or empty is unknown,
// and then not checked.
type Image struct {
	// Width and Height are in pixels.
	Width, Height int
	// Bytes is the size of the content before base64.
	Bytes int64
	// Base64Bytes is its length in base64; when 0, it is computed from Bytes.
	Base64Bytes int64
	// MediaType is the type by content, such as image/png.
	MediaType string
	// Animated is set when the content is known to have more than one frame.
	Animated bool
	// Message is the index of the message that it stands in.
	Message int
	// Source is base64 (also when empty), url or file. The bytes of an image that
	// is not in the request are not counted.
	Source string
}

// inline reports whether the content is part of the request.
func (i Image) inline() bool { return i.Source == "" || i.Source == SourceBase64 }

// raw and encoded are the bytes that count, 0 when unknown or elsewhere.
func (i Image) raw() int64 {
	if !i.inline() {
		return 0
	}
	return max(i.Bytes, 0)
}

func (i Image) encoded() int64 {
	switch {
	case !i.inline():
		return 0
	case i.Base64Bytes > 0:
		return i.Base64Bytes
	}
	return Base64Length(i.Bytes)
}

// Base64Length is the length of n bytes in base64, with padding; the largest int64
// where it would be more than that.
func Base64Length(n int64) int64 {
	switch {
	case n <= 0:
		return 0
	case n > math.MaxInt64/4*3:
		return math.MaxInt64
	}
	return (n-1)/3*4 + 4
}

// Request is what is known of a request.
type Request struct {
	// Images are all images in message order: history and tool results too, each
	// occurrence of a duplicate.
	Images []Image
	// BodyBytes is the length of the body as it will be sent; 0 is unknown.
	BodyBytes int64
	// WindowTokens is the model's context window; 0 is unknown.
	WindowTokens int64
}

// Whole is the image index of a finding about the whole request.
const Whole = -1

// Finding is a limit that a request goes past.
type Finding struct {
	// Vendor and Limit say whose limit it is, and which, with value, unit and source.
	Vendor string
	Limit  Limit
	// Image is the index of the image, or Whole.
	Image int
	// Actual is what the request has, in the limit's unit.
	Actual int64
	// Word is what the request has where the limit lists words.
	Word string
}

// Advice reports whether the vendor accepts the request all the same.
func (f Finding) Advice() bool { return f.Limit.Advice }

// String names the limit, its value, what there is instead, and the source.
func (f Finding) String() string {
	where := "the request"
	if f.Image != Whole {
		where = fmt.Sprintf("image %d", f.Image+1)
	}
	about, vendor := kinds[f.Limit.Name], f.Vendor
	if vendor == "" {
		vendor = "this provider"
	}
	var text string
	switch {
	case f.Limit.Name == Animation && f.Limit.Advice:
		text = fmt.Sprintf("%s is animated (%s), of which %s shows the first frame alone", where, f.Word, vendor)
	case f.Limit.Name == Animation:
		text = fmt.Sprintf("%s is animated (%s), which %s refuses", where, f.Word, vendor)
	case about.unit == "":
		text = fmt.Sprintf("%s has %s %q; %s accepts %s", where, about.what, f.Word, vendor, strings.Join(f.Limit.Words, ", "))
	default:
		text = fmt.Sprintf("%s has %s of %d %s, above the limit of %d %s for %s", where, about.what, f.Actual, about.unit, f.Limit.Value, about.unit, vendor)
	}
	if n := f.Limit.FromImages; n > 0 {
		text += fmt.Sprintf(" in requests of %d images or more", n)
	}
	return text + " (" + f.Limit.Source + ")"
}

// Check compares a request with the limits. The findings come in the order of the
// limits, and for each in the order of the images; the same request always gives
// the same ones. None means that nothing is known against it.
func (l Limits) Check(r Request) []Finding {
	var out []Finding
	for _, limit := range l.list {
		if limit.FromImages > len(r.Images) || limit.UpToWindow > 0 && (r.WindowTokens <= 0 || r.WindowTokens > limit.UpToWindow) {
			continue
		}
		for _, p := range kinds[limit.Name].past(limit, r) {
			out = append(out, Finding{Vendor: l.Vendor, Limit: limit, Image: p.image, Actual: p.actual, Word: p.word})
		}
	}
	return out
}

// past is one place where a request goes past a limit.
type past struct {
	image  int
	actual int64
	word   string
}

// kind is how a name is checked.
type kind struct {
	unit, what string
	past       func(Limit, Request) []past
}

// kinds are all names.
var kinds = map[Name]kind{
	MaxImages: {"images", "a number", func(l Limit, r Request) []past { return whole(l, int64(len(r.Images))) }},
	MaxImagesPerMessage: {"images", "a number in one message", func(l Limit, r Request) []past {
		return whole(l, mostPerMessage(r.Images))
	}},
	MaxImageBytes:       {"bytes", "a size", each(Image.raw)},
	MaxImageBase64Bytes: {"bytes", "a size in base64", each(Image.encoded)},
	MaxTotalImageBytes:  {"bytes", "a total of image data", func(l Limit, r Request) []past { return whole(l, sum(r.Images, Image.raw)) }},
	MaxTotalBase64Bytes: {"bytes", "a total of image data in base64", func(l Limit, r Request) []past { return whole(l, sum(r.Images, Image.encoded)) }},
	MaxRequestBytes:     {"bytes", "a body", func(l Limit, r Request) []past { return whole(l, r.BodyBytes) }},
	MaxSide:             {"px", "a longest side", each(func(i Image) int64 { return int64(max(i.Width, i.Height)) })},
	MaxPixels:           {"px", "an area", each(Image.pixels)},
	MediaTypes:          {"", "the type", listed(Image.mediaType)},
	Sources:             {"", "the source", listed(func(i Image) string { return i.Source })},
	Animation:           {"", "an animation", animated},
}

// mediaType is the type in the form that limits use.
func (i Image) mediaType() string {
	if t := strings.ToLower(i.MediaType); t != "image/jpg" {
		return t
	}
	return "image/jpeg"
}

// pixels is the area, cut at the largest int64; 0 when unknown.
func (i Image) pixels() int64 {
	if i.Width <= 0 || i.Height <= 0 {
		return 0
	}
	return min(int64(i.Width), math.MaxInt32) * min(int64(i.Height), math.MaxInt32)
}

func whole(l Limit, actual int64) []past {
	if actual <= l.Value {
		return nil
	}
	return []past{{image: Whole, actual: actual}}
}

func each(of func(Image) int64) func(Limit, Request) []past {
	return func(l Limit, r Request) (out []past) {
		for n, image := range r.Images {
			if actual := of(image); actual > l.Value && l.holdsFor(image) {
				out = append(out, past{image: n, actual: actual})
			}
		}
		return out
	}
}

func listed(of func(Image) string) func(Limit, Request) []past {
	return func(l Limit, r Request) (out []past) {
		for n, image := range r.Images {
			if word := of(image); word != "" && !slices.Contains(l.Words, word) {
				out = append(out, past{image: n, word: word})
			}
		}
		return out
	}
}

func animated(l Limit, r Request) (out []past) {
	for n, image := range r.Images {
		if image.Animated && l.holdsFor(image) {
			out = append(out, past{image: n, word: image.MediaType})
		}
	}
	return out
}

// holdsFor reports whether the limit is about images of this type.
func (l Limit) holdsFor(i Image) bool {
	return len(l.For) == 0 || slices.Contains(l.For, i.mediaType())
}

func sum(images []Image, of func(Image) int64) (total int64) {
	for _, i := range images {
		if n := of(i); n > 0 {
			total = saturating(total, n)
		}
	}
	return total
}

// saturating adds without overflow.
func saturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func mostPerMessage(images []Image) (most int64) {
	count := make(map[int]int64, len(images))
	for _, i := range images {
		count[i.Message]++
		most = max(most, count[i.Message])
	}
	return most
}
