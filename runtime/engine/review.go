// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/review"
)

// maxReviewBytes is what a review may take where no policy says: 64 MiB, a
// VisionPolicy's own default.
const maxReviewBytes = 64 << 20

// Reviewed is a verdict.
type Reviewed struct {
	Response *review.Response
	streamed
}

// Review judges a model request that a gateway holds. from yields the body of
// the review, size bytes of it, or -1 when that is not known; read makes a review
// of all of it. Reviews share with images what may be held in memory at once,
// and wait for room. A preflight calls nothing and keeps nothing; with the operation
// Inject the request goes the way that one to the model proxy does, up to where it
// would be sent. The caller releases what it gets. The error is a *fault.Fault.
func (e *Engine) Review(ctx context.Context, from io.Reader, size int64, read func([]byte) (*review.Request, error)) (*Reviewed, error) {
	snap := e.snapshot.Load()
	if snap == nil {
		return nil, noRouter()
	}
	room, most := size, int64(maxReviewBytes)
	if snap.profile != nil {
		most = snap.profile.Limits.Request.MaxBodyBytes
	}
	if size < 0 {
		room = most
	}
	release, bad := e.holdComing(ctx, room)
	if bad != nil {
		bad.Message = "the review ended before there was room for its body"
		return nil, bad.Hint("Review again; many are being judged.")
	}
	r := &Reviewed{streamed: streamed{let: []func(){release}}}
	defer r.unless(func() bool { return r.answer != nil })
	if err := e.review(ctx, r, snap, from, size, most, read); err != nil {
		return nil, err
	}
	return r, nil
}

func (e *Engine) review(ctx context.Context, r *Reviewed, snap *snapshot, from io.Reader, size, most int64, read func([]byte) (*review.Request, error)) error {
	body, err := receiveReview(from, size, most)
	if err != nil {
		return err
	}
	req, err := read(body)
	if err != nil {
		return err
	}
	target, err := req.Target()
	if err != nil {
		return err
	}
	var edits []message.Edit
	if target.Bodied && req.Operation == review.Inject {
		edits, err = e.reviewInjecting(ctx, r, snap, req, target)
	} else {
		r.Response, err = review.Review(ctx, req, snap.grants(e.options.Profile))
		r.Release() // the verdict holds nothing of the body
	}
	if err != nil {
		return err
	}
	r.answer, err = review.Written(r.Response, edits)
	return err
}

// grants gives what the snapshot grants to a profile by its ID, "" being own.
func (s *snapshot) grants(own string) review.Grants {
	return func(id string) (review.Grant, error) {
		if id == "" {
			id = own
		}
		for i := range s.doc.Profiles {
			if p := &s.doc.Profiles[i]; p.ID == id {
				return review.Grant{Profile: p, Catalog: s.doc.Catalog(p)}, nil
			}
		}
		return review.Grant{}, notGranted(id)
	}
}

// receiveReview reads a body whole. Whoever gave the reader bounds it.
func receiveReview(from io.Reader, size, most int64) ([]byte, error) {
	var data []byte
	var err error
	if size >= 0 {
		data = make([]byte, size)
		_, err = io.ReadFull(from, data)
	} else {
		data, err = readUntold(from, most)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return nil, f
	}
	if err != nil {
		return nil, fault.New(fault.InvalidToolInput, "BodyUnreadable", "the body ended before it was complete").Because(err)
	}
	return data, nil
}
