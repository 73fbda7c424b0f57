// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine answers one ViewImage request in five steps on one immutable
// snapshot of the router document: open and probe the file, choose a model that
// preflight admits it to, look through the cache, build the result. What the
// policy alone refuses is refused before the file is read. It holds no rule of its own that another package could hold, and it
// needs no Kubernetes: any Go program can use it.
package engine

import (
	"context"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// View looks at one image. The error is nil or a *fault.Fault. Beside an error
// the Result is not nil when the image could be read: its VisualReference is
// set, and its VisionSelection when a model had been looked for. Everything
// that can be refused is refused before any network call.
func (e *Engine) View(ctx context.Context, req Request) (*observation.Result, error) {
	result, bad := e.view(ctx, req)
	if bad != nil {
		return result, bad
	}
	return result, nil
}

func (e *Engine) view(ctx context.Context, req Request) (*observation.Result, *fault.Fault) {
	req, bad := checkRequest(req)
	if bad != nil {
		return nil, bad
	}
	snap := e.snapshot.Load()
	if snap == nil {
		return nil, noRouter()
	}
	profile, bad := snap.granted(e.options.Profile)
	if bad != nil {
		return nil, bad
	}
	pic, bad := e.open(ctx, req.Path, &profile.Limits)
	if bad != nil {
		return nil, bad
	}
	defer pic.release()
	e.options.References.Remember(pic.reference)
	return e.see(ctx, snap, profile, req, pic)
}

// see has a model look at a picture. Beside a fault the result has all but the
// observation.
func (e *Engine) see(ctx context.Context, snap *snapshot, profile *router.Profile, req Request, pic *picture) (*observation.Result, *fault.Fault) {
	l := &look{engine: e, snapshot: snap, profile: profile, request: req, picture: pic}
	result := &observation.Result{VisualReference: pic.reference}
	bad := l.choose(ctx)
	if bad == nil {
		result.Observation, result.Cached, bad = l.answer(ctx)
	}
	result.VisionSelection = l.plan.Selection
	return result, bad
}

// look is one request on its way; each step fills in what the next one needs.
type look struct {
	engine   *Engine
	snapshot *snapshot
	profile  *router.Profile
	request  Request

	picture  *picture
	input    selection.Input            // what plan is made of
	needs    []selection.Need           // the endpoints whose lists are in input
	admitted map[router.Route]admission // by the models that plan may use
	plan     *selection.Plan
	deadline time.Time
}

// choose selects the model, once and on one snapshot.
func (l *look) choose(ctx context.Context) *fault.Fault {
	l.input = selection.Input{
		Document: l.snapshot.doc, Profile: l.profile, Model: l.request.Model, Primary: l.request.PrimaryModel,
		Unmounted: l.snapshot.unmounted(), Check: l.check,
	}
	l.discover(ctx)
	var err error
	if l.plan, err = selection.Select(l.input); err != nil {
		return fault.As(err)
	}
	return nil
}

func noRouter() *fault.Fault {
	f := fault.New(fault.RouterUnavailable, "NoRouter", "no router document has been read yet").
		Hint("Wait until the runtime has its router document, then call again.")
	f.Retryable = true
	return f
}
