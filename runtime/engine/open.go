// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

// picture is an image that was read and passed the policy's limits.
type picture struct {
	facts     probe.Facts
	data      []byte
	reference *observation.Reference
	release   func()
}

// maxHeldBytes bounds the images that requests hold at the same time; those
// that come on top wait. It is what keeps a sidecar small under load.
const maxHeldBytes = 64 << 20

// minHeldBytes is what any request counts as: its buffers, its connection and
// its answer take memory however small the image is. It lets 256 requests look
// at the same time.
const minHeldBytes = 256 << 10

// at adds the caller's path to a fault, bounded by the system's PATH_MAX.
func at(f *fault.Fault, path string) *fault.Fault { return f.With("path", path[:min(len(path), 4096)]) }

// open opens, probes, judges and reads one image, in an order in which what is
// refused costs the least: the body of a file that is too large, or whose
// header tells too many pixels, is never read. The caller releases the picture.
func (e *Engine) open(ctx context.Context, path string, limits *router.Limits) (*picture, *fault.Fault) {
	h, err := e.options.Workspaces.Open(path)
	if err != nil {
		return nil, fileFault(err, path)
	}
	defer func() { _ = h.Close() }() // only read from
	if bad := checkBytes(h.Size(), limits); bad != nil {
		return nil, at(bad, path)
	}
	header, err := h.Header(probe.MaxHeader)
	if err != nil {
		return nil, fileFault(err, path)
	}
	facts, err := probe.Header(header)
	if bad := checkFacts(facts, err, limits); bad != nil {
		return nil, at(bad, path)
	}
	release, err := e.hold(ctx, h.Size())
	if err != nil {
		return nil, at(fault.New(fault.ImageReadFailed, "Canceled", "the call ended before the image could be read").
			Hint("Call again; many images are being looked at.").Because(err), path)
	}
	pic, bad := read(h, path, limits)
	if bad != nil {
		release()
		return nil, bad
	}
	pic.release = release
	return pic, nil
}

// hold waits until an image of size bytes fits into what may be held at once.
func (e *Engine) hold(ctx context.Context, size int64) (release func(), err error) {
	size = min(max(size, minHeldBytes), maxHeldBytes) // a policy may allow a larger one: it goes alone
	if err := e.held.Acquire(ctx, size); err != nil {
		return nil, err
	}
	return func() { e.held.Release(size) }, nil
}

// read reads the whole image and judges it.
func read(h *workspace.Handle, path string, limits *router.Limits) (*picture, *fault.Fault) {
	file, err := h.ReadAll(min(limits.Image.MaxBytes, limits.Request.MaxTotalImageBytes))
	if err != nil {
		return nil, fileFault(err, path)
	}
	// Again on the bytes that will be sent: the file may have been another a
	// moment ago, and a JPEG may tell its size behind the header.
	facts, err := probe.Content(file.Bytes)
	if bad := checkFacts(facts, err, limits); bad != nil {
		return nil, at(bad, path)
	}
	return &picture{
		facts: facts, data: file.Bytes,
		reference: observation.NewReference(file.Path, file.SHA256, facts.MediaType, int64(len(file.Bytes)), facts.Width, facts.Height),
	}, nil
}

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
// policy does not take, or of too many pixels.
func checkFacts(facts probe.Facts, err error, limits *router.Limits) *fault.Fault {
	accepted := acceptedTypes(limits)
	if err != nil {
		return notAnImage(err, accepted)
	}
	if !slices.Contains(accepted, facts.MediaType) {
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
		Hint("Give the path of a supported image file.")
}

func typeNotAccepted(mediaType, owner string, accepted []string) *fault.Fault {
	return fault.New(fault.InvalidToolInput, "MediaTypeNotAccepted", "the image is %s, which %s does not accept", mediaType, owner).
		With("field", fieldPath).With("mime", mediaType).With("supported_media_types", accepted).
		Hint("Convert the image to a supported type.")
}

// fileFault maps what the workspace refused to the kind that callers know.
func fileFault(err error, path string) *fault.Fault {
	e, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		return at(fault.New(fault.ImageReadFailed, "IO", "the image could not be read").Because(err), path)
	}
	invalid := func(message, hint string) *fault.Fault {
		return fault.New(fault.InvalidToolInput, string(e.Reason), "%s", message).With("field", fieldPath).Hint("%s", hint)
	}
	var f *fault.Fault
	switch e.Reason {
	case workspace.OutsideWorkspace:
		f = fault.New(fault.PolicyDenied, string(e.Reason), "the path, or a symbolic link on its way, leads outside the workspaces").
			With("field", fieldPath).Hint("Copy the image into a workspace and give that path.")
	case workspace.Blank:
		f = invalid("path must not be empty", "Call again with a path.")
	case workspace.NotFound:
		f = invalid("there is no file at this path", "Check the path; it must be as this pod sees it.")
	case workspace.NotRegular:
		f = invalid("the path is a directory, a FIFO, a socket or a device, not a regular file", "Give the path of an image file.")
	case workspace.TooManyLinks:
		f = invalid("the path has too many symbolic links", "Give the path of the file itself.")
	case workspace.TooLarge:
		f = overBytes("the image", e.Size, "limits.image.maxBytes", "the policy", e.Limit)
	case workspace.Changed:
		f = fault.New(fault.ImageReadFailed, string(e.Reason), "the image changed while it was read").
			Hint("Wait until the file is written whole, then call again.")
		f.Retryable = true
	default:
		f = fault.New(fault.ImageReadFailed, string(e.Reason), "the image could not be read").
			Hint("Check that the runtime's user may read the file.")
		if e.Unwrap() != nil {
			f.With("io_error", e.Unwrap().Error()) // the system's words, without a path
		}
	}
	return at(f, path).Because(err)
}
