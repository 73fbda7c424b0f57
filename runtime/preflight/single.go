// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// policyChecks look at what the policy alone says of one image.
var policyChecks = []func(*terms, *entry) *fault.Fault{checkType, checkBytes, checkPixels}

// ByPolicy holds one image against the policy alone, before a model is chosen and
// before more of the image is read than its facts need. What is not known of it
// passes. Review says the same of it, in the same words.
func ByPolicy(limits *router.Limits, img *Image) *fault.Fault {
	t := &terms{}
	t.ofPolicy(limits)
	e := &entry{Image: img, bytes: within(img.Bytes), base64: within(img.Base64Bytes)}
	for _, check := range policyChecks {
		if bad := check(t, e); bad != nil {
			return bad
		}
	}
	return nil
}

// Fit is what a smaller copy of an image must keep to. Numbers are above zero, but
// for a MaxSide of 0, which is no limit.
type Fit struct {
	// MaxBytes is of the copy as a file, MaxPixels its width times its height, and
	// MaxSide its longer side.
	MaxBytes, MaxPixels, MaxSide int64
	// MediaTypes are those that policy, model and vendor all accept.
	MediaTypes []string
}

// markup is what the body may gain by a copy beside its bytes: a longer media type.
const markup = 64

// Shrink says what a smaller copy of the only image of a request must keep to so
// that no limit on the size of an image stands against it, the policy's, the
// model's or the vendor's: bytes, pixels, side, and what is left of the body. over
// is false when the image is within all of them, and when no copy could be. Whether
// the copy is admitted is for Review to say.
func Shrink(in Input) (fit Fit, over bool) { return shrink(&in, termsOf(&in)) }

// Shrink is the package's Shrink, with the limits and the candidate of the terms.
func (t *Terms) Shrink(in Input) (fit Fit, over bool) { return shrink(&in, t.of.forRequest(&in)) }

func shrink(in *Input, t *terms) (fit Fit, over bool) {
	if len(in.Images) != 1 {
		return Fit{}, false
	}
	l := newLedger(in, t)
	e := &l.entries[0]
	bytes := func(list []bound, beside, n int64, raw func(int64) int64) {
		for i := range list {
			over = over || beside+n > list[i].max
			fit.MaxBytes = stricter(fit.MaxBytes, raw(list[i].max-beside))
		}
	}
	bytes(t.imageBytes, 0, e.bytes, asItIs)
	bytes(t.totalBytes, 0, e.bytes, asItIs)
	bytes(t.imageBase64, 0, e.base64, decoded)
	bytes(t.totalBase64, 0, e.base64, decoded)
	if beside := l.bodyBeside() + l.laterBody; len(t.body) > 0 {
		bytes(t.body, beside, e.base64, func(n int64) int64 { return decoded(n - markup) })
	}
	for i := range t.pixels {
		fit.MaxPixels = stricter(fit.MaxPixels, t.pixels[i].max)
	}
	for i := range t.side {
		fit.MaxSide = stricter(fit.MaxSide, t.side[i].max)
	}
	over = over || checkPixels(t, e) != nil || checkSide(t, e) != nil
	for i := range t.types {
		if i == 0 {
			fit.MediaTypes = slices.Clone(t.types[i].list)
		} else {
			fit.MediaTypes = slices.DeleteFunc(fit.MediaTypes, func(m string) bool { return !slices.Contains(t.types[i].list, m) })
		}
	}
	return fit, over && fit.MaxBytes > 0
}

func asItIs(n int64) int64 { return n }

// decoded is how many bytes base64 of n bytes holds; -1 for none.
func decoded(n int64) int64 {
	if n < 4 {
		return -1
	}
	return n / 4 * 3
}

// stricter is the lower of two limits, where the first may not be set yet.
func stricter(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}
