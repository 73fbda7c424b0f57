// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/review"
)

// reviewInjecting decides what a gateway is to put into a request and to leave out
// of it. What the model proxy would refuse is refused; the error is for what cannot
// be judged here.
func (e *Engine) reviewInjecting(ctx context.Context, r *Reviewed, snap *snapshot, req *review.Request, target review.Target) ([]message.Edit, error) {
	r.Response = review.NewResponse(req)
	if req.Profile != "" && req.Profile != e.options.Profile {
		return nil, fault.New(fault.InvalidToolInput, "ProfileForeign", "reading the review: images are put in under the runtime's own profile %q alone", e.options.Profile).
			With("field", "profile").Hint("Leave profile out, or ask for the operation Preflight.")
	}
	profile, bad := snap.granted(e.options.Profile)
	if bad != nil {
		r.Response.Refuse(target.Dialect, bad)
		return nil, nil
	}
	if f := req.Oversized(&profile.Limits); f != nil {
		return nil, f
	}
	p := &preparation{engine: e, snapshot: snap, profile: profile, request: ModelRequest{Dialect: target.Dialect, Body: req.Body}}
	r.let = append(r.let, p.release)
	edits, bad := p.review(ctx, cmp.Or(req.Model, target.Model))
	switch {
	case ctx.Err() != nil:
		return nil, fault.As(ctx.Err())
	case bad != nil && bad.Reason == factsNotData:
		return nil, bad
	}
	if p.scanned != nil {
		r.Response.WarnOf(p.scanned)
	}
	r.Response.Warnings = append(r.Response.Warnings, p.record.Warnings...)
	r.Response.Decisions, r.Response.Tokens = append(r.Response.Decisions, p.record.Decisions...), p.record.Tokens
	if bad != nil {
		r.Response.Refuse(target.Dialect, bad)
		return nil, nil
	}
	r.Response.Allowed = true
	e.logPrepared(&p.record)
	return edits, nil
}

// review goes the way of a request up to where it would be sent, to the model of a
// name, or to the one that its body names. A model that the policy does not let look
// at images is shown none, and may be sent a request that has none.
func (p *preparation) review(ctx context.Context, model string) ([]message.Edit, *fault.Fault) {
	if bad := p.scan(); bad != nil {
		return nil, bad
	}
	p.request.Model = cmp.Or(model, p.scanned.Model)
	if bad := p.aimAt(ctx); bad != nil {
		if len(p.scanned.Images) > 0 {
			return nil, bad
		}
		p.record.Warnings = append(p.record.Warnings, "no image is put in: "+bad.Message)
		return nil, nil
	}
	for _, step := range []func(context.Context) *fault.Fault{p.look, p.judge, p.describe} {
		if bad := step(ctx); bad != nil {
			return nil, bad
		}
	}
	return p.edited(), nil
}
