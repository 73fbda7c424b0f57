// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// MaxImageBytes is the largest image that the policy in use takes, downscaled
// perhaps, or 0 when no policy is in use.
func (e *Engine) MaxImageBytes() int64 {
	if s := e.snapshot.Load(); s != nil && s.profile != nil {
		return maxImageBytes(&s.profile.Limits)
	}
	return 0
}

func maxImageBytes(limits *router.Limits) int64 {
	limits = readable(limits)
	return min(limits.Image.MaxBytes, limits.Request.MaxTotalImageBytes)
}

// Upload keeps an image that no workspace holds, so that the URI of its
// reference can be looked at. size is the number of bytes that from will give,
// or -1 when it is not known. The policy's limits hold for it as for a file.
// The error is nil or a *fault.Fault.
func (e *Engine) Upload(ctx context.Context, from io.Reader, size int64) (*reference.Kept, error) {
	kept, bad := e.upload(ctx, from, size)
	if bad != nil {
		return nil, bad
	}
	return kept, nil
}

func (e *Engine) upload(ctx context.Context, from io.Reader, size int64) (*reference.Kept, *fault.Fault) {
	snap := e.snapshot.Load()
	if snap == nil {
		return nil, noRouter()
	}
	profile, bad := snap.granted(e.options.Profile)
	if bad != nil {
		return nil, bad
	}
	if bad := checkBytes(max(size, 0), &profile.Limits); bad != nil {
		return nil, bad
	}
	most := maxImageBytes(&profile.Limits)
	room := size
	if size < 0 {
		room = most
	}
	release, bad := e.holdComing(ctx, room)
	if bad != nil {
		return nil, bad
	}
	defer release()
	data, bad := receive(from, size, most)
	if bad != nil {
		return nil, bad
	}
	facts, err := probe.Content(data)
	if bad := checkFacts(facts, err, &profile.Limits); bad != nil {
		return nil, ofBody(bad)
	}
	if bad := snap.checkAnyModel(facts.MediaType, profile); bad != nil {
		return nil, ofBody(bad)
	}
	digest := sha256.Sum256(data)
	sum := hex.EncodeToString(digest[:])
	kept, bad := e.options.References.Upload(observation.NewReference(
		reference.URI(observation.ReferenceID(sum)), sum, facts.MediaType, int64(len(data)), facts.Width, facts.Height), data)
	return kept, bad
}

// ofBody words a fault of a file's content for an upload, which has no path.
func ofBody(f *fault.Fault) *fault.Fault {
	delete(f.Details, "field")
	if f.RecoveryHint == hintSupportedFile {
		f.RecoveryHint = "Send the bytes of a supported image."
	}
	return f
}

// holdComing is hold for an image that is still to come, at its sender's pace.
// Uploads take half of what may be held, so that senders who stall keep nobody
// from looking; one that alone is over that goes alone.
func (e *Engine) holdComing(ctx context.Context, size int64) (release func(), bad *fault.Fault) {
	share := min(max(size, minHeldBytes), e.options.MaxHeldBytes/2)
	if err := e.coming.Acquire(ctx, share); err != nil {
		return nil, fault.New(fault.ImageReadFailed, "Canceled", "the upload ended before the image could be received").
			Hint("Call again; many images are being uploaded.").Because(err)
	}
	held, bad := e.hold(ctx, size)
	if bad != nil {
		e.coming.Release(share)
		return nil, bad
	}
	return func() { held(); e.coming.Release(share) }, nil
}

// receive reads an upload whole, and never more than one byte over most.
func receive(from io.Reader, size, most int64) ([]byte, *fault.Fault) {
	var data []byte
	var err error
	if size >= 0 {
		data = make([]byte, size)
		_, err = io.ReadFull(from, data)
	} else {
		data, err = readUntold(from, most)
	}
	switch {
	case err != nil:
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			return nil, f
		}
		return nil, fault.New(fault.InvalidToolInput, "BodyUnreadable", "the body ended before it was complete").Because(err)
	case len(data) == 0:
		return nil, fault.New(fault.InvalidToolInput, "Blank", "the body must not be empty").Hint("Send the image's bytes as the body.")
	case int64(len(data)) > most:
		return nil, overBytes(int64(len(data)), most)
	}
	return data, nil
}

// How the buffer of an upload of a size that was not told grows.
const (
	firstRoom  = 256 << 10
	secondRoom = 24 << 20 // more than the largest image that a policy takes by default
)

// readUntold reads to the end, and never more than one byte over most. A buffer
// that grows leaves smaller ones behind, which nobody counts: at once it has
// room for as much as was acquired for the upload, or grows in few steps.
func readUntold(from io.Reader, most int64) ([]byte, error) {
	data := make([]byte, 0, min(most+1, firstRoom))
	for {
		n, err := from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil || int64(len(data)) > most:
			return data, err
		case len(data) == cap(data):
			data = append(make([]byte, 0, min(most+1, max(4*int64(cap(data)), secondRoom))), data...)
		}
	}
}

// Reference finds what is kept of an image that was looked at or uploaded. The
// error is nil or a *fault.Fault.
func (e *Engine) Reference(id string) (*reference.Kept, error) {
	kept, ok := e.options.References.Find(id)
	if !ok {
		return nil, reference.Unknown(id)
	}
	return kept, nil
}
