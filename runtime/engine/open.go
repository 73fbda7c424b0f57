// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/reference"
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

// DefaultMaxHeldBytes is Options.MaxHeldBytes where none is given: 64 MiB.
const DefaultMaxHeldBytes = 64 << 20

// minHeldBytes is what any request counts as: its buffers, its connection and
// its answer take memory however small the image is. It lets 256 requests look
// at the same time.
const minHeldBytes = 256 << 10

// at adds the caller's path to a fault, bounded by the system's PATH_MAX.
func at(f *fault.Fault, path string) *fault.Fault { return f.With("path", path[:min(len(path), 4096)]) }

// open opens, probes, judges and reads one image: a file of a workspace, or by
// "vision://…" one that is kept. The caller releases the picture.
func (e *Engine) open(ctx context.Context, path string, limits *router.Limits) (*picture, *fault.Fault) {
	id, isURI, ok := reference.ParseURI(path)
	switch {
	case !isURI:
		return e.openFile(ctx, path, limits)
	case !ok:
		return nil, at(fault.New(fault.InvalidToolInput, "ReferenceMalformed", "the path is not a reference: want vision://vis_ and 16 hexadecimal digits").
			With("field", fieldPath).Hint("Give the uri that the upload answered with, or a file's path."), path)
	}
	kept, found := e.options.References.Find(id)
	if !found {
		return nil, reference.Unknown(id).With("field", fieldPath)
	}
	if kept.Uploaded {
		return e.openUpload(ctx, kept, limits)
	}
	pic, bad := e.openFile(ctx, kept.Reference.Path, limits)
	if bad == nil && pic.reference.SHA256 != kept.Reference.SHA256 {
		pic.release()
		return nil, at(fault.New(fault.ImageReadFailed, "ReferenceChanged", "the file behind the reference is not the image any more that was looked at").
			With("field", fieldPath).Hint("Give the file's path to look at what it is now."), path)
	}
	return pic, bad
}

// openFile works in an order in which what is refused costs the least: the body
// of a file that is too large, or whose header tells too many pixels, is never read.
func (e *Engine) openFile(ctx context.Context, path string, limits *router.Limits) (*picture, *fault.Fault) {
	h, err := e.options.Workspaces.Open(path)
	if err != nil {
		return nil, e.openFault(err, path)
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
	release, bad := e.hold(ctx, withCopy(h.Size(), limits))
	if bad != nil {
		return nil, at(bad, path)
	}
	pic, bad := read(h, path, limits)
	if bad != nil {
		release()
		return nil, bad
	}
	pic.release = release
	return pic, nil
}

// openUpload reads the bytes that are kept, and judges them by the limits of now.
func (e *Engine) openUpload(ctx context.Context, kept *reference.Kept, limits *router.Limits) (*picture, *fault.Fault) {
	ref := kept.Reference
	if bad := checkBytes(ref.ByteCount, limits); bad != nil {
		return nil, at(bad, kept.URI)
	}
	release, bad := e.hold(ctx, withCopy(ref.ByteCount, limits))
	if bad != nil {
		return nil, at(bad, kept.URI)
	}
	data, err := e.options.References.Bytes(kept)
	if err != nil {
		release()
		return nil, at(fault.As(err), kept.URI)
	}
	facts, err := probe.Content(data)
	if bad := checkFacts(facts, err, limits); bad != nil {
		release()
		return nil, at(bad, kept.URI)
	}
	return &picture{facts: facts, data: data, reference: ref, release: release}, nil
}

// hold waits until an image of size bytes fits into what may be held at once.
func (e *Engine) hold(ctx context.Context, size int64) (release func(), bad *fault.Fault) {
	size = min(max(size, minHeldBytes), e.options.MaxHeldBytes) // a policy may allow a larger one: it goes alone
	if err := e.held.Acquire(ctx, size); err != nil {
		return nil, fault.New(fault.ImageReadFailed, "Canceled", "the call ended before the image could be read").
			Hint("Call again; many images are being looked at.").Because(err)
	}
	return func() { e.held.Release(size) }, nil
}

// read reads the whole image and judges it.
func read(h *workspace.Handle, path string, limits *router.Limits) (*picture, *fault.Fault) {
	file, err := h.ReadAll(maxImageBytes(limits))
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

// openFault is fileFault, for a file that was to be opened: where there is no
// workspace at all, no path of a file can do, and only where uploads are kept
// is one of use.
func (e *Engine) openFault(err error, path string) *fault.Fault {
	f := fileFault(err, path)
	if f.Reason != string(workspace.OutsideWorkspace) {
		return f
	}
	spaces, uploads := len(e.options.Workspaces.Dirs()) > 0, e.options.References.TakesUploads()
	if !spaces {
		f.Message = "the path is in no workspace: this runtime has none"
	}
	switch {
	case spaces && uploads:
		f.RecoveryHint = "Copy the image into a workspace and give that path, or upload it with POST /v1/images and give its uri."
	case uploads:
		f.RecoveryHint = "Upload the image with POST /v1/images and give the uri that is answered as path."
	case !spaces:
		f.RecoveryHint = "Ask the platform team to start the runtime with a workspace."
	}
	return f
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
		f = overBytes(e.Size, e.Limit)
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
