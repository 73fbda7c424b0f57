// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vendors knows the limits that model vendors set on images in a request:
// how many, how many bytes and counted how, how large a body, how long a side,
// which types, and what becomes of animations.
//
// The limits are data (limits.json), each with its source. [Find] says which
// vendor serves an endpoint. Package preflight holds requests to its limits before
// anything is sent: a refused image stays in the conversation and would fail every
// later turn.
//
// What an image costs, and images that a vendor refuses for their number of
// patches or their aspect ratio, are in package tokens.
//
// The package is pure.
package vendors

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Name says what is limited. The unit is fixed for each name; see [Name.Unit].
type Name string

// The names. Those that count over a request count every occurrence of an image:
// history and tool results too, duplicates twice.
const (
	// MaxImages: images in a request.
	MaxImages Name = "maxImages"
	// MaxImagesPerMessage: images in one message.
	MaxImagesPerMessage Name = "maxImagesPerMessage"
	// MaxImageBytes: bytes of one image, before base64.
	MaxImageBytes Name = "maxImageBytes"
	// MaxImageBase64Bytes: bytes of one image in base64, without a data URL's prefix.
	MaxImageBase64Bytes Name = "maxImageBase64Bytes"
	// MaxTotalImageBytes: bytes of all images, before base64.
	MaxTotalImageBytes Name = "maxTotalImageBytes"
	// MaxTotalBase64Bytes: bytes of all images in base64.
	MaxTotalBase64Bytes Name = "maxTotalBase64Bytes"
	// MaxRequestBytes: bytes of the body.
	MaxRequestBytes Name = "maxRequestBytes"
	// MaxSide: pixels of an image's longer side.
	MaxSide Name = "maxSide"
	// MaxPixels: width times height of an image.
	MaxPixels Name = "maxPixels"
	// MediaTypes: the types that are accepted.
	MediaTypes Name = "mediaTypes"
	// Sources: the ways in which an image may be given.
	Sources Name = "sources"
	// Animation: what becomes of animated images.
	Animation Name = "animation"
)

// Unit is the unit of a limit's value: images, bytes or px; empty for those that
// are a list of words.
func (n Name) Unit() string { return units[n] }

// units are the units of all names.
var units = map[Name]string{
	MaxImages: "images", MaxImagesPerMessage: "images",
	MaxImageBytes: "bytes", MaxImageBase64Bytes: "bytes", MaxTotalImageBytes: "bytes", MaxTotalBase64Bytes: "bytes", MaxRequestBytes: "bytes",
	MaxSide: "px", MaxPixels: "px",
	MediaTypes: "", Sources: "", Animation: "",
}

// Confidence says how a limit is known, in the words of package tokens: published
// or third-party.
type Confidence string

// The confidences.
const (
	Published  Confidence = "published"
	ThirdParty Confidence = "third-party"
)

// Limit is one limit of a vendor.
type Limit struct {
	// Name says what is limited.
	Name Name `json:"name"`
	// Value is the most that is accepted, in the name's unit.
	Value int64 `json:"value,omitempty"`
	// Words are what is accepted, for the names that list words; for Animation one
	// word: refused or firstFrame.
	Words []string `json:"words,omitempty"`
	// FromImages is the number of images in the request, history and tool results
	// counted, from which the limit holds; 0 is always.
	FromImages int `json:"fromImages,omitempty"`
	// UpToWindow is the largest context window, in tokens, of the models that the
	// limit holds for; 0 is all. A model whose window is unknown is not held to it.
	UpToWindow int64 `json:"upToWindow,omitempty"`
	// Models are parts of the names, in lower case and without path, of the models
	// that it holds for; none is all.
	Models []string `json:"models,omitempty"`
	// For are the media types that it holds for; none is all.
	For []string `json:"for,omitempty"`
	// Advice is set when going past it is not refused, only not what one expects:
	// a figure that the vendor contradicts elsewhere, or an animation of which the
	// model sees one frame.
	Advice bool `json:"advice,omitempty"`
	// Source is where it is published.
	Source string `json:"source"`
	// Confidence says how it is known.
	Confidence Confidence `json:"confidence"`
	// Note is what else to know.
	Note string `json:"note,omitempty"`
}

// The words of Animation.
const (
	// AnimationRefused: animated images are refused.
	AnimationRefused = "refused"
	// AnimationFirstFrame: the model sees the first frame alone.
	AnimationFirstFrame = "firstFrame"
)

// The words of Sources.
const (
	SourceBase64 = "base64"
	SourceURL    = "url"
	SourceFile   = "file"
)

// How says how a vendor was found.
type How string

// The ways.
const (
	// ByHost: the endpoint is the vendor's.
	ByHost How = "host"
	// ByModel: the endpoint is unknown, and only this vendor makes the model.
	ByModel How = "model"
	// ByNothing: no vendor was found, and no limits are known.
	ByNothing How = "none"
)

// Limits are the limits that hold for one model of a vendor. The zero value has
// none.
type Limits struct {
	// Vendor is the vendor's name, such as anthropic or bedrock-claude; empty when
	// none was found.
	Vendor string
	// By says how it was found.
	By How

	list []Limit
}

// All are the limits, in the order in which they are checked.
func (l Limits) All() []Limit { return slices.Clone(l.list) }

// Get is the first limit of that name, with ok false when there is none.
func (l Limits) Get(name Name) (limit Limit, ok bool) {
	for _, limit := range l.list {
		if limit.Name == name {
			return limit, true
		}
	}
	return Limit{}, false
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

// String names the limit with its value, such as "maxSide 8000 px".
func (l Limit) String() string {
	if l.Name.Unit() == "" {
		return fmt.Sprintf("%s %s", l.Name, strings.Join(l.Words, ", "))
	}
	return fmt.Sprintf("%s %d %s", l.Name, l.Value, l.Name.Unit())
}
