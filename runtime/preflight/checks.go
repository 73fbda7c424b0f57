// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// imageChecks look at one image by itself, in this order; the first fault
// stands. What they say of an image never depends on another.
var imageChecks = []func(*terms, *entry) *fault.Fault{
	checkUsable, checkType, checkSource, checkBytes, checkPixels, checkSight, checkAnimation, checkSide, checkTokens,
}

// judge runs the checks over an image. Nothing speaks against one that is
// untouchable; it has a cost.
func (t *terms) judge(e *entry) *fault.Fault {
	if e.Untouchable {
		if t.sees {
			_ = checkTokens(t, e)
		}
		return nil
	}
	for _, check := range imageChecks {
		if bad := check(t, e); bad != nil {
			return bad
		}
	}
	return nil
}

// checkUsable passes on what the caller found, and says of which image.
func checkUsable(_ *terms, e *entry) *fault.Fault {
	if e.Bad == nil || e.ID == "" {
		return e.Bad
	}
	bad := *e.Bad
	bad.Details = maps.Clone(bad.Details)
	return bad.With("image", e.ID)
}

// checkType holds the type against every list that there is. An unknown type passes.
func checkType(t *terms, e *entry) *fault.Fault {
	for i := range t.types {
		list := &t.types[i]
		if e.MediaType != "" && !slices.Contains(list.list, e.MediaType) {
			return e.fault(fault.InvalidToolInput, ReasonMediaType, "%s is %s, which %s does not accept%s", e.subject(), e.MediaType, list.owner, list.published()).
				With("mime", e.MediaType).With("supported_media_types", list.list).
				With("limit", list.limit).With("limit_of", list.owner).Hint("Convert the image to a supported type.")
		}
	}
	return nil
}

// checkSource holds the way in which the image is given.
func checkSource(t *terms, e *entry) *fault.Fault {
	for i := range t.sources {
		if list := &t.sources[i]; e.Source != "" && !slices.Contains(list.list, e.Source) {
			return e.fault(fault.InvalidToolInput, ReasonSource, "%s is given as %s, which %s does not accept%s", e.subject(), e.Source, list.owner, list.published()).
				With("source", e.Source).With("supported_sources", list.list).
				With("limit", list.limit).With("limit_of", list.owner).Hint("Send the image's own bytes.")
		}
	}
	return nil
}

// checkBytes holds the file's size and what the body carries of it.
func checkBytes(t *terms, e *entry) *fault.Fault {
	for i := range t.imageBytes {
		if b := &t.imageBytes[i]; e.bytes > b.max {
			return tooManyBytes(e, e.subject(), e.bytes, b)
		}
	}
	for i := range t.imageBase64 {
		if b := &t.imageBase64[i]; e.base64 > b.max {
			return tooManyBytes(e, e.subject()+" as sent (base64)", e.base64, b)
		}
	}
	return nil
}

func tooManyBytes(e *entry, subject string, n int64, b *bound) *fault.Fault {
	return e.fault(fault.BudgetExceeded, ReasonBytes, "%s has %s; %s %s%s", subject, Size(n), b.named(), Size(b.max), b.published()).
		With("byte_count", n).With("max_byte_count", b.max).With("limit", b.limit).With("limit_of", b.owner).
		Hint("Use a smaller image, or one compressed more.")
}

// checkPixels multiplies in 64 bits; the sides of a header have at most 32.
func checkPixels(t *terms, e *entry) *fault.Fault {
	side := func(n int) uint64 { return min(uint64(max(n, 0)), math.MaxUint32) }
	n := side(e.Width) * side(e.Height)
	for i := range t.pixels {
		if b := &t.pixels[i]; n > uint64(b.max) {
			return e.fault(fault.BudgetExceeded, ReasonPixels, "%s has %d x %d = %d pixels; %s %d%s", e.subject(), e.Width, e.Height, n, b.named(), b.max, b.published()).
				With("width", e.Width).With("height", e.Height).With("pixel_count", n).With("max_pixel_count", b.max).
				With("limit", b.limit).With("limit_of", b.owner).Hint("Use a smaller or cropped image.")
		}
	}
	return nil
}

// checkSight speaks against every image when the model takes none.
func checkSight(t *terms, _ *entry) *fault.Fault {
	if t.sees {
		return nil
	}
	return fault.New(fault.VisionAdapterUnavailable, ReasonBlind, "%s does not take images", t.name).
		With("model", t.name).Hint("Choose a model that can look at images.")
}

// checkAnimation refuses what is known to move where stills alone are taken.
func checkAnimation(t *terms, e *entry) *fault.Fault {
	for i := range t.stills {
		of := &t.stills[i]
		if e.Animated && (len(of.list) == 0 || slices.Contains(of.list, e.MediaType)) {
			return e.fault(fault.InvalidToolInput, ReasonAnimated, "%s is animated, which %s does not accept%s", e.subject(), of.owner, of.published()).
				With("mime", e.MediaType).With("limit", of.limit).With("limit_of", of.owner).
				Hint("Send one frame of it as a still image.")
		}
	}
	return nil
}

func checkSide(t *terms, e *entry) *fault.Fault {
	side := int64(max(e.Width, e.Height))
	for i := range t.side {
		if b := &t.side[i]; side > b.max {
			return e.fault(fault.BudgetExceeded, ReasonSide, "%s is %d x %d pixels; %s %d%s", e.subject(), e.Width, e.Height, b.named(), b.max, b.published()).
				With("width", e.Width).With("height", e.Height).With("max_side", b.max).
				With("limit", b.limit).With("limit_of", b.owner).Hint("Use a smaller or cropped image.")
		}
	}
	return nil
}

// checkTokens estimates the image's cost, and refuses what the model's family
// rejects whatever the budget.
func checkTokens(t *terms, e *entry) *fault.Fault {
	estimate, err := t.family.Estimate(tokens.Image{Width: e.Width, Height: e.Height, Detail: e.Detail, Orientation: e.Orientation})
	if err == nil {
		e.estimate, e.cost = estimate, within(estimate.Total())
		return nil
	}
	f := e.fault(fault.BudgetExceeded, ReasonTokens, "%s cannot be sent to %s", e.subject(), t.name)
	if no, ok := errors.AsType[*tokens.RejectError](err); ok {
		f.Message = fmt.Sprintf("%s is %d x %d pixels, which makes its %s %d %s; the vendor of %s takes at most %d (%s)",
			e.subject(), e.Width, e.Height, no.Limit, no.Actual, no.Unit, no.Family, no.Value, no.Source)
		f.With("width", e.Width).With("height", e.Height).With("actual", no.Actual).With("max", no.Value).
			With("limit", no.Limit).With("limit_of", no.Family)
	}
	return f.Because(err).Hint("Use a smaller or cropped image, or a lower detail.")
}

// basis is the rule behind the image's estimate; "" where none was made.
func (e *entry) basis() string {
	if e.cost == 0 {
		return ""
	}
	return e.estimate.Basis()
}

// fault is one of the image, which it names where it has a name.
func (e *entry) fault(kind fault.Kind, reason, format string, args ...any) *fault.Fault {
	f := fault.New(kind, reason, format, args...)
	if e.ID != "" {
		f.With("image", e.ID)
	}
	return f
}

// subject is the image as the beginning of a sentence.
func (e *entry) subject() string {
	if e.ID == "" {
		return "the image"
	}
	return "the image " + e.ID
}
