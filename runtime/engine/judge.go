// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// checkBytes holds a file's size against the policy.
func checkBytes(size int64, limits *router.Limits) *fault.Fault {
	return byPolicy(&preflight.Image{Bytes: size}, limits)
}

// checkFacts judges what a probe found: not an image, of a type that the
// policy's own list leaves out, or of too many pixels. Frames that reach past
// their canvas count. Everything else is for preflight to judge with the model.
func checkFacts(facts probe.Facts, err error, limits *router.Limits) *fault.Fault {
	if err != nil {
		return notAnImage(err, acceptedTypes(limits))
	}
	width, height := max(facts.Width, facts.ReachWidth), max(facts.Height, facts.ReachHeight)
	return byPolicy(&preflight.Image{MediaType: facts.MediaType, Width: width, Height: height}, limits)
}

// byPolicy holds what is known of an image against the policy. One that may be
// downscaled passes as long as it is readable.
func byPolicy(img *preflight.Image, limits *router.Limits) *fault.Fault {
	bad := preflight.ByPolicy(limits, img)
	switch {
	case bad == nil:
		return nil
	case !downscales(limits) || !slices.Contains(sizeReasons, bad.Reason):
		return refusal(bad)
	case preflight.ByPolicy(readable(limits), img) == nil:
		return nil
	}
	return refusal(bad).Hint("Use a smaller image: only one of at most %d times the limit is downscaled.", maxOversize)
}

// overBytes is an image of more bytes than could be read.
func overBytes(size, most int64) *fault.Fault {
	limits := router.Limits{Image: router.ImageLimits{MaxBytes: most}, Request: router.RequestLimits{MaxTotalImageBytes: most}}
	return checkBytes(max(size, most+1), &limits)
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
	return fault.New(fault.InvalidToolInput, preflight.ReasonMediaType, "the image is %s, which no model of the policy accepts", mediaType).
		With("field", fieldPath).With("mime", mediaType).With("supported_media_types", slices.Compact(accepted)).
		Hint("Convert the image to a supported type.")
}
