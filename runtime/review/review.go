// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review judges a model request before it is sent, for a gateway that
// holds it: a VisionReview, in the manner of Kubernetes' admission reviews. A
// request goes in; whether it may be sent, what to answer when it may not, and
// what to change in it come out.
//
// The steps follow each other: the request's dialect and model (dialect.go,
// candidate.go), its turns and images (package message), facts about each image
// (package inspect), the decisions (package preflight), the patch (patch.go). It
// reaches no network and keeps nothing; beside copies of short strings, what it
// allocates does not grow with the images' bytes.
package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/inspect"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/vendors"
)

// What the envelope says it is; both may be left out of a request.
const (
	APIVersion = "visionoperator.dev/v1alpha1"
	Kind       = "VisionReview"
)

// Operation is what a review is for.
type Operation string

// The operations.
const (
	// Preflight admits, degrades or refuses the images that the request holds.
	// It is the default.
	Preflight Operation = "Preflight"
	// Inject also puts in the images that tools and humans have named, as the model
	// proxy does. It reads files, so that the engine judges it, and not Review.
	Inject Operation = "Inject"
)

// PatchType is a way to write changes down.
type PatchType string

// The patch types.
const (
	// JSONPatch is RFC 6902: for each image that is left out a guard (a test of
	// its part's type) and a replacement, the last part first. No image data is
	// in it. It is the default.
	JSONPatch PatchType = "JSONPatch"
	// ByteRanges are Edits of the body's bytes as they were sent, the last first:
	// every other byte stays. It is the default of Inject, and all that it takes.
	ByteRanges PatchType = "ByteRanges"
)

// Request is what is to be judged.
type Request struct {
	// UID is the caller's own name of the review; the response repeats it.
	UID string
	// Dialect is the body's; "" leaves it to Path.
	Dialect message.Dialect
	// Method and Path are those of the model request; a Path may stand behind any
	// prefix and have a query. "" as Method is POST.
	Method, Path string
	// Model is a route of the profile or a model's name; "" leaves it to Body and Path.
	Model string
	// Profile is the ID of the profile that governs; "" is the runtime's own.
	Profile   string
	Operation Operation
	// DryRun promises that the request will not be sent. A preflight keeps
	// nothing, so that it makes no difference; Inject, which keeps what it shows, is
	// refused with it.
	DryRun bool
	// PatchTypes are those that the caller can apply, the preferred first; none is
	// the operation's default.
	PatchTypes []PatchType
	// Body is the model request's, as sent. Images may be told as facts; see message.Facts.
	Body []byte
	// Warnings are what the reading of the review itself warns of.
	Warnings []string
}

// Response is the verdict.
type Response struct {
	UID     string `json:"uid"`
	Allowed bool   `json:"allowed"`
	// Status says why not, and what to answer; nil when allowed.
	Status   *Status  `json:"status,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Decisions are one for each image, in the order of the body.
	Decisions []preflight.Decision `json:"decisions"`
	// Tokens are estimates; nil when the body was not taken apart.
	Tokens *preflight.Tokens `json:"tokens,omitempty"`
	// PatchType and Patch are set when the request may be sent changed only. Inject's
	// Patch is not held: see Written.
	PatchType PatchType       `json:"patchType,omitempty"`
	Patch     json.RawMessage `json:"patch,omitempty"`
}

// Degraded reports whether the request may be sent with images left out.
func (r *Response) Degraded() bool {
	return r.Allowed && slices.ContainsFunc(r.Decisions, func(d preflight.Decision) bool { return d.Outcome == preflight.Degraded })
}

// Status is a refusal.
type Status struct {
	// Code is the HTTP status to answer the model request with.
	Code int `json:"code"`
	// Reason is a stable CamelCase word, Message one sentence with the numbers.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Body is the answer's body: an error as the dialect's vendor writes it.
	Body json.RawMessage `json:"body"`
}

// Grant is what a router document grants to a profile.
type Grant struct {
	Profile *router.Profile
	// Catalog is the profile's.
	Catalog *router.Catalog
}

// Grants gives what the router document in use grants to a profile by its ID;
// "" is the runtime's own. Errors carry a *fault.Fault: of the kind PolicyDenied
// when the document grants the profile nothing, which is a verdict; of any
// other kind when there can be no verdict.
type Grants func(profile string) (Grant, error)

// NewResponse is the response to a request before anything was decided.
func NewResponse(req *Request) *Response {
	return &Response{UID: req.UID, Warnings: req.Warnings, Decisions: []preflight.Decision{}}
}

// Review judges a request by its own images, the Preflight. The error is a
// *fault.Fault, and only for a review that cannot be judged: one that is
// malformed, or before there is a router document. A model request that is
// malformed is refused.
func Review(ctx context.Context, req *Request, grants Grants) (*Response, error) {
	t, err := req.Target()
	if err != nil {
		return nil, err
	}
	r := &review{Target: t, req: req, out: NewResponse(req)}
	switch {
	case !t.Bodied:
		r.out.Allowed = true
		r.warn("a %s request has no body that could hold images", req.Method)
		return r.out, nil
	case req.Operation == Inject:
		return nil, malformed("operation", "OperationUnsupported", "there is no runtime here that could put images in").
			Hint("Ask a runtime, or for the operation Preflight.")
	}
	grant, err := grants(req.Profile)
	if err != nil {
		if f := fault.As(err); f.Kind == fault.PolicyDenied {
			r.refuse(f)
			return r.out, nil
		}
		return nil, err
	}
	if err := r.judge(ctx, grant); err != nil {
		return nil, err
	}
	return r.out, nil
}

// review is one review on its way.
type review struct {
	Target
	req *Request
	out *Response
}

func (r *review) warn(format string, args ...any) { r.out.warn(format, args...) }

func (r *Response) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// refuse makes the verdict a refusal.
func (r *review) refuse(f *fault.Fault) { r.out.Refuse(r.Dialect, f) }

// Refuse makes the verdict a refusal in a dialect.
func (r *Response) Refuse(dialect message.Dialect, f *fault.Fault) {
	if image, ok := f.Details["image"].(string); ok && f.Details["field"] == nil {
		f.With("field", image)
	}
	r.Allowed, r.Status = false, StatusOf(dialect, f)
}

// StatusOf is the refusal of a request in a dialect.
func StatusOf(dialect message.Dialect, f *fault.Fault) *Status {
	code, body := message.ErrorBody(dialect, f)
	reason := f.Reason
	if reason == "" {
		reason = string(f.Kind)
	}
	return &Status{Code: code, Reason: reason, Message: f.Message, Body: body}
}

// judge fills in the verdict on the body.
func (r *review) judge(ctx context.Context, grant Grant) error {
	body, limits := r.req.Body, &grant.Profile.Limits
	if f := r.req.Oversized(limits); f != nil {
		return f
	}
	scanned, err := message.Scan(r.Dialect, body)
	if err != nil {
		if bad, ok := errors.AsType[*message.Error](err); ok && bad.Reason == message.BadFacts {
			return bad.Fault().Hint("Give sha256, bytes, mediaType and head of the image.")
		}
		r.refuse(faultOf(err))
		return nil
	}
	candidate, denied := r.candidate(scanned, grant)
	in := preflight.Input{
		Limits: *limits, Candidate: candidate, Turns: preflight.TurnsOf(scanned), TextBytes: scanned.TextBytes,
		BodyBytes: int64(len(body)), MaxOutputTokens: scanned.MaxOutputTokens,
	}
	if in.Images, err = inspect.Images(ctx, scanned, body); err != nil {
		return err
	}
	weighFacts(&in, scanned)
	verdict := preflight.Review(in)
	r.out.Decisions, r.out.Tokens = verdict.Decisions, &verdict.Tokens
	r.out.Warnings = append(r.out.Warnings, verdict.Warnings...)
	r.out.WarnOf(scanned)
	switch {
	case denied != nil && len(scanned.Images) > 0:
		r.deny(denied)
	case verdict.Refusal != nil:
		r.refuse(verdict.Refusal)
	default:
		r.out.Allowed = true
		r.patch(scanned)
	}
	return nil
}

// weighFacts makes a body in the facts form weigh what the one that is sent does:
// the data of its images, and not the heads that stand for it.
func weighFacts(in *preflight.Input, scanned *message.Request) {
	for i := range scanned.Images {
		if facts := scanned.Images[i].Facts; facts != nil {
			head := vendors.Base64Length(int64(len(facts.Head)))
			in.BodyBytes += in.Images[i].Base64Bytes - head
			turn := &in.Turns[scanned.Images[i].Turn]
			turn.BodyBytes = max(0, turn.BodyBytes-head)
		}
	}
}

// deny refuses the request whatever its images are.
func (r *review) deny(f *fault.Fault) {
	for i := range r.out.Decisions {
		d := &r.out.Decisions[i]
		d.Outcome, d.Reason, d.Message = preflight.Refused, f.Reason, f.Message
	}
	r.out.Tokens.Images = 0
	r.refuse(f)
}

// WarnOf tells what of a body no check sees.
func (r *Response) WarnOf(scanned *message.Request) {
	unknown, first := 0, 0
	for i := range scanned.Images {
		if scanned.Images[i].Source == message.Unknown {
			if unknown++; unknown == 1 {
				first = i
			}
		}
	}
	if unknown > 0 {
		r.warn("%d of the images are given in a form that is not known, the first at %s (%s); their content was not looked at",
			unknown, scanned.ID(first), scanned.Images[first].Why)
	}
	if scanned.OtherMedia > 0 {
		r.warn("%d parts are neither text nor image; what they cost is not counted", scanned.OtherMedia)
	}
	if scanned.Stateful {
		r.warn("the conversation goes on from one that the vendor keeps; what was said there is not counted")
	}
}

// faultOf is the refusal of a body that could not be taken apart.
func faultOf(err error) *fault.Fault {
	if bad, ok := errors.AsType[*message.Error](err); ok {
		return bad.Fault()
	}
	return fault.As(err)
}

// Oversized refuses a review whose model request is over the policy's limit; nil otherwise.
func (r *Request) Oversized(limits *router.Limits) *fault.Fault {
	size, most := int64(len(r.Body)), limits.Request.MaxBodyBytes
	if size <= most {
		return nil
	}
	f := fault.New(fault.BudgetExceeded, "BodyTooLarge", "the model request has %s; the policy declares limits.request.maxBodyBytes %s", preflight.Size(size), preflight.Size(most)).
		With("body_bytes", size).With("max_body_bytes", most).With("limit", "limits.request.maxBodyBytes").
		Hint("Review it in the facts form, which leaves image data out.")
	f.HTTPStatus = fault.StatusTooLarge
	return f
}

// malformed is a review that does not say what it should; field is where.
func malformed(field, reason, format string, args ...any) *fault.Fault {
	return fault.New(fault.InvalidToolInput, reason, "reading the review: "+format, args...).With("field", field)
}
