// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// checkBytes holds a file's size against the policy.
func checkBytes(size int64, limits *router.Limits) *fault.Fault {
	for _, l := range []struct {
		name string
		max  int64
	}{
		{"limits.image.maxBytes", limits.Image.MaxBytes},
		{"limits.request.maxTotalImageBytes", limits.Request.MaxTotalImageBytes},
	} {
		if size > l.max {
			return overBytes("the image", size, l.name, "the policy", l.max)
		}
	}
	return nil
}

// checkFacts judges what a probe found: not an image, of a type that the
// policy's own list leaves out, or of too many pixels. Where the policy has no
// list, the chosen model has the last word on the type; see checkType.
func checkFacts(facts probe.Facts, err error, limits *router.Limits) *fault.Fault {
	accepted := acceptedTypes(limits)
	if err != nil {
		return notAnImage(err, accepted)
	}
	if len(limits.Image.MediaTypes) > 0 && !slices.Contains(accepted, facts.MediaType) {
		return typeNotAccepted(facts.MediaType, "the policy", accepted)
	}
	if facts.Pixels() > uint64(limits.Image.MaxPixels) {
		return fault.New(fault.BudgetExceeded, "TooManyPixels", "the image has %d x %d = %d pixels; the policy's limits.image.maxPixels is %d",
			facts.Width, facts.Height, facts.Pixels(), limits.Image.MaxPixels).
			With("width", facts.Width).With("height", facts.Height).
			With("pixel_count", facts.Pixels()).With("max_pixel_count", limits.Image.MaxPixels).
			With("limit", "limits.image.maxPixels").Hint("Use a smaller or cropped image.")
	}
	return nil
}

// acceptedTypes is the policy's list, or the default one.
func acceptedTypes(limits *router.Limits) []string {
	if len(limits.Image.MediaTypes) > 0 {
		return limits.Image.MediaTypes
	}
	return router.DefaultMediaTypes()
}

// hintSupportedFile is what helps against a file that is no image.
const hintSupportedFile = "Give the path of a supported image file."

func notAnImage(err error, accepted []string) *fault.Fault {
	reason, message := "NotAnImage", "the file is not an image that can be looked at"
	if e, ok := errors.AsType[*probe.Error](err); ok && e.MediaType != "" {
		reason, message = "ImageMalformed", "the file begins as "+e.MediaType+" but its header is broken or incomplete"
		if e.Reason == probe.ZeroSize {
			message = "the file is " + e.MediaType + " with a side of zero pixels"
		}
	}
	return fault.New(fault.InvalidToolInput, reason, "%s", message).
		With("field", fieldPath).With("supported_media_types", accepted).Because(err).
		Hint(hintSupportedFile)
}

func typeNotAccepted(mediaType, owner string, accepted []string) *fault.Fault {
	return fault.New(fault.InvalidToolInput, "MediaTypeNotAccepted", "the image is %s, which %s does not accept", mediaType, owner).
		With("field", fieldPath).With("mime", mediaType).With("supported_media_types", accepted).
		Hint("Convert the image to a supported type.")
}

// checkType holds an image's type against a model; see takenBy.
func checkType(mediaType string, model *router.Model, owner string) *fault.Fault {
	accepted := takenBy(model)
	if slices.Contains(accepted, mediaType) {
		return nil
	}
	return typeNotAccepted(mediaType, owner, accepted)
}

// takenBy are the types that a model takes: the four that every model takes, and
// those that its own limits list. A list that names any of the four is complete,
// and leaves out the others of them.
func takenBy(model *router.Model) []string {
	four := router.DefaultMediaTypes()
	if model.Limits == nil || len(model.Limits.MediaTypes) == 0 {
		return four
	}
	listed := model.Limits.MediaTypes
	if slices.ContainsFunc(listed, func(t string) bool { return slices.Contains(four, t) }) {
		return listed
	}
	return slices.Concat(four, listed)
}

// checkAnyModel refuses a type that no model of the profile takes.
func (s *snapshot) checkAnyModel(mediaType string, profile *router.Profile) *fault.Fault {
	accepted := router.DefaultMediaTypes()
	for entry := range s.doc.Catalog(profile).All() {
		if entry.Model.Limits != nil {
			accepted = append(accepted, entry.Model.Limits.MediaTypes...)
		}
	}
	if slices.Contains(accepted, mediaType) {
		return nil
	}
	slices.Sort(accepted)
	return typeNotAccepted(mediaType, "no model of the policy", slices.Compact(accepted))
}
