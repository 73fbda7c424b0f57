// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/downscale"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// maxOversize is how many times the policy's bytes and pixels an image may have of
// which a smaller copy is made. What is larger is refused by its header.
const maxOversize = 4

// sizeReasons are the refusals that a smaller copy may get past.
var sizeReasons = []string{
	preflight.ReasonBytes, preflight.ReasonPixels, preflight.ReasonSide, preflight.ReasonTotalBytes, preflight.ReasonBody,
}

func downscales(limits *router.Limits) bool {
	return limits.Image.OnOversize == router.OversizeDownscale
}

// readable are the limits that hold for an image that is read: the policy's, or
// where it has oversized images downscaled, as many times wider. Whoever judges by
// them says what the policy's own limit is.
func readable(limits *router.Limits) *router.Limits {
	if !downscales(limits) {
		return limits
	}
	wide := *limits
	for _, n := range []*int64{&wide.Image.MaxBytes, &wide.Image.MaxPixels, &wide.Request.MaxTotalImageBytes} {
		*n = min(*n, 1<<60) * maxOversize
	}
	return &wide
}

// withCopy is what an image of size bytes may hold in memory, a copy included.
func withCopy(size int64, limits *router.Limits) int64 {
	if downscales(limits) {
		return 2 * size
	}
	return size
}

// shrink tries to admit a smaller copy of an image that was refused for its size.
// It decodes nothing yet: by what the header tells, a copy can be made that keeps
// to every limit, and is admitted.
func (l *look) shrink(terms *preflight.Terms, in preflight.Input, refused *fault.Fault) (admission, *fault.Fault) {
	if !downscales(&l.profile.Limits) || !slices.Contains(sizeReasons, refused.Reason) {
		return admission{}, refused
	}
	fit, over := terms.Shrink(in)
	if !over {
		return admission{}, refused
	}
	limits := downscale.Limits{MaxPixels: fit.MaxPixels, MaxSide: fit.MaxSide, MaxBytes: fit.MaxBytes, MediaTypes: fit.MediaTypes}
	if err := downscale.Check(l.picture.data, l.picture.facts, limits, l.engine.options.MaxHeldBytes); err != nil {
		return admission{}, unshrinkable(refused, err)
	}
	verdict := terms.Review(asCopy(in, l.picture.facts, limits))
	if !verdict.Allowed {
		return admission{}, refusal(verdict.Refusal)
	}
	return admission{tokens: verdict.Tokens, copy: &limits, refused: refused}, nil
}

// asCopy is the request with a copy of the largest size in the image's place; how
// many bytes it has is not known yet, and within the limits when it is made.
func asCopy(in preflight.Input, facts probe.Facts, limits downscale.Limits) preflight.Input {
	img := in.Images[0]
	img.Width, img.Height = downscale.Size(facts.Width, facts.Height, limits)
	if facts.Orientation >= 5 {
		img.Width, img.Height = img.Height, img.Width
	}
	img.MediaType, img.Orientation, img.Animated = "", 0, false // the type is one of those that are accepted
	img.Bytes, img.Base64Bytes = 0, 0
	if in.BodyBytes > 0 {
		in.BodyBytes -= in.Images[0].Base64Bytes
	}
	in.Images = []preflight.Image{img}
	return in
}

// unshrinkable is the refusal of an image, with why no smaller copy of it is sent.
func unshrinkable(refused *fault.Fault, err error) *fault.Fault {
	f := *refused
	f.Details = maps.Clone(f.Details)
	e, ok := errors.AsType[*downscale.Error](err)
	if !ok {
		return fault.As(err)
	}
	f.Message = fmt.Sprintf("%s; no smaller copy can be made of it: %s", f.Message, unshrinkableWhy[e.Reason])
	f.Cause = err
	f.With("downscale", string(e.Reason))
	if e.Reason == downscale.TooLarge {
		f.With("decode_bytes", e.Memory).With("max_decode_bytes", e.MaxMemory)
	}
	return &f
}

// unshrinkableWhy words the reasons of package downscale.
var unshrinkableWhy = map[downscale.Reason]string{
	downscale.NotDecodable: "an image of this kind cannot be decoded",
	downscale.TooLarge:     "decoding it would take more memory than the runtime has for it",
	downscale.Malformed:    "it is broken or cut off",
	downscale.NoFit:        "none that can be written keeps to the limits",
}

// recipe names what is sent in the image's place, as part of a cache's key: the
// same recipe makes the same copy of the same image. It is empty for the image itself.
func (a *admission) recipe() string {
	if a.copy == nil {
		return ""
	}
	return fmt.Sprintf(" %s %d %d %d %q", downscale.Version, a.copy.MaxPixels, a.copy.MaxSide, a.copy.MaxBytes, a.copy.MediaTypes)
}

// send puts what is sent into the question: the image, or a copy that is made now.
// Copies are made one at a time, since each may take much memory.
func (l *look) send(ctx context.Context, a *admission, asked provider.Request) (provider.Request, *observation.ImageSent, error) {
	if a.copy == nil {
		return asked, nil, nil
	}
	if err := l.engine.shrinking.Acquire(ctx, 1); err != nil {
		f := fault.New(fault.VisionObservationFailed, "Timeout", "smaller copies of other images were being made until the time was over").
			Hint("Call again; many large images are being looked at.").Because(err)
		f.Retryable = true
		return asked, nil, f
	}
	defer l.engine.shrinking.Release(1)
	made, err := downscale.Image(l.picture.data, *a.copy, l.engine.options.MaxHeldBytes)
	if err != nil {
		return asked, nil, unshrinkable(a.refused, err)
	}
	asked.Image = provider.Image{MediaType: made.MediaType, Data: made.Data}
	digest := sha256.Sum256(made.Data)
	return asked, &observation.ImageSent{
		Width: made.Width, Height: made.Height, ByteCount: int64(len(made.Data)), SHA256: hex.EncodeToString(digest[:]), MIME: made.MediaType,
	}, nil
}
