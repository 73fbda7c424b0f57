// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/reference"
)

// reasonCanceled is that of a fault which is the context's, and not the image's.
const reasonCanceled = "Canceled"

func ended(err error) *fault.Fault {
	return fault.New(fault.ImageReadFailed, reasonCanceled, "the call ended before its images could be read").
		Hint("Call again; many images are being looked at.").Because(err)
}

func changed(err error) *fault.Fault {
	return fault.New(fault.ImageReadFailed, reasonChanged, "the path has other bytes now than those that were shown").Because(err)
}

func unreadable(err error) *fault.Fault {
	return fault.New(fault.ImageReadFailed, "IO", "the image could not be read").Because(err)
}

// read keeps the image at a path: a file of a workspace or, by "vision://…", one
// that is kept as a reference. again is its pin when it was shown before, and then
// nothing but its size is judged before it is read.
func (v *resolution) read(ctx context.Context, path string, again *pin.Pin) (*pin.Content, *fault.Fault) {
	id, isURI, _ := reference.ParseURI(path)
	if !isURI {
		return v.readFile(path, again)
	}
	kept, found := v.engine.options.References.Find(id)
	switch {
	case !found:
		return nil, reference.Unknown(id)
	case kept.Uploaded:
		return v.readUpload(ctx, kept, again)
	}
	c, bad := v.readFile(kept.Reference.Path, again)
	if bad == nil && c.SHA256 != kept.Reference.SHA256 {
		return nil, changed(nil)
	}
	return c, bad
}

// readFile works in an order in which what is refused costs the least, as openFile
// does. The file goes to the pins in pieces.
func (v *resolution) readFile(path string, again *pin.Pin) (*pin.Content, *fault.Fault) {
	h, err := v.engine.options.Workspaces.Open(path)
	if err != nil {
		return nil, fileFault(err, path)
	}
	defer func() { _ = h.Close() }() // only read from
	if bad := v.checkSize(h.Size(), again); bad != nil {
		return nil, bad
	}
	if again == nil {
		facts, err := probe.Reader(io.NewSectionReader(h, 0, h.Size()))
		if _, ok := errors.AsType[*probe.Error](err); err != nil && !ok {
			return nil, fileFault(err, path)
		}
		if bad := checkFacts(facts, err, v.limits); bad != nil {
			return nil, bad
		}
	}
	c, bad := v.keep(h, h.Size(), path)
	if bad != nil {
		return nil, bad
	}
	if err := h.Unchanged(); err != nil {
		return nil, fileFault(err, path)
	}
	return c, nil
}

// readUpload keeps the bytes of an upload. It holds one whole in memory, and for
// all requests one at a time.
func (v *resolution) readUpload(ctx context.Context, kept *reference.Kept, again *pin.Pin) (*pin.Content, *fault.Fault) {
	if bad := v.checkSize(kept.Reference.ByteCount, again); bad != nil {
		return nil, bad
	}
	done, bad := v.alone(ctx)
	if bad != nil {
		return nil, bad
	}
	defer done()
	data, err := v.engine.options.References.Bytes(kept)
	if err != nil {
		return nil, fault.As(err)
	}
	return v.keep(bytes.NewReader(data), int64(len(data)), kept.URI)
}

// checkSize judges a size before anything is read: by the policy, or by what was
// shown before.
func (v *resolution) checkSize(size int64, again *pin.Pin) *fault.Fault {
	switch {
	case again == nil:
		return checkBytes(size, v.limits)
	case size != again.Size:
		return changed(nil)
	}
	return nil
}

// keep puts bytes into the pins' store and opens them for the request.
func (v *resolution) keep(from io.ReaderAt, size int64, path string) (*pin.Content, *fault.Fault) {
	c, err := v.pins.PutContent(from, size)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, changed(err)
	case err != nil:
		return nil, fileFault(err, path)
	}
	if before, ok := v.open[c.SHA256]; ok {
		_ = c.Close() // only read from
		return before, nil
	}
	v.open[c.SHA256] = c
	return c, nil
}
