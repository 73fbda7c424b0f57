// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest is the runtime's HTTP API for agents and their frameworks:
//
//	POST /v1/view-image       {path, prompt, model?} -> {visual_reference, observation, vision_selection, cached}
//	POST /v1/images           an image's bytes -> {visual_reference, uri, uploaded, created_at}
//	GET  /v1/references/{id}  the same for an image that was uploaded or looked at
//	POST /v1/review           a model request -> whether it may be sent, and changed how
//	POST /v1/inject           messages -> the images to show in them, and where
//	GET  /v1/router           which router document and which profile are in use
//	GET  /openapi.json        this API as OpenAPI 3.1
package rest

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// Options are where the answers come from.
type Options struct {
	// View answers ViewImage calls.
	View tool.View
	// Upload keeps an image whose bytes r yields, size of them, or -1 when that
	// is not known. Errors carry a *fault.Fault.
	Upload func(ctx context.Context, r io.Reader, size int64) (*reference.Kept, error)
	// MaxImageBytes is the largest image that Upload takes now; nil and 0 mean
	// guard.DefaultImageBytes.
	MaxImageBytes guard.Limit
	// Reference finds what is kept of an image by the id of its reference. One
	// that is not kept is a *fault.Fault with the reason ReferenceUnknown.
	Reference func(id string) (*reference.Kept, error)
	// Review judges a model request: r yields the body of the review, size bytes,
	// or -1 when that is not known, and read makes a review of all of it. Errors
	// carry a *fault.Fault.
	Review func(ctx context.Context, r io.Reader, size int64, read ReviewReader) (Answer, error)
	// MaxReviewBytes is the largest body of a review, and of messages, now; nil and 0
	// mean guard.DefaultModelBytes.
	MaxReviewBytes guard.Limit
	// Inject answers who asks what to change in messages: r yields the question, size
	// bytes, or -1 when that is not known. Errors carry a *fault.Fault.
	Inject func(ctx context.Context, r io.Reader, size int64) (Answer, error)
	// Router reports the router document in use.
	Router func() RouterStatus
	// Version is the runtime's own, as the OpenAPI document gives it.
	Version string
}

// RouterStatus is the answer of GET /v1/router. It names things and holds no
// URL, no header and no credential.
type RouterStatus struct {
	// Loaded says whether a router document is in use.
	Loaded bool `json:"loaded"`
	// Digest names the document's bytes: "sha256:" and 64 hexadecimal digits.
	Digest string `json:"digest,omitempty"`
	// LoadedAt is when it came into use.
	LoadedAt *time.Time `json:"loadedAt,omitempty"`
	// Profile is the profile that this runtime was started with.
	Profile string `json:"profile"`
	// ProfileFound says whether the document holds that profile.
	ProfileFound bool `json:"profileFound"`
	// LastError says why the newest document is not the one in use; empty when it is.
	LastError string `json:"lastError,omitempty"`
	// FailingSince is when LastError began.
	FailingSince *time.Time `json:"failingSince,omitempty"`
}

// Routes returns the paths of the API.
func Routes(opts Options) []serve.Route {
	only := func(method string, h http.HandlerFunc) http.Handler {
		return reply.Methods(map[string]http.HandlerFunc{method: h})
	}
	return []serve.Route{
		{Path: "/v1/view-image", Handler: only(http.MethodPost, viewImage(opts.View))},
		{Path: "/v1/images", Handler: only(http.MethodPost, uploadImage(opts.Upload)), Body: guard.Image(opts.MaxImageBytes)},
		{Path: referencesPath + "{id}", Handler: only(http.MethodGet, getReference(opts.Reference))},
		{Path: "/v1/review", Handler: only(http.MethodPost, answered(opts.review)), Body: guard.Model(opts.MaxReviewBytes)},
		{Path: "/v1/inject", Handler: only(http.MethodPost, answered(opts.inject)), Body: guard.Messages(opts.MaxReviewBytes)},
		{Path: "/v1/router", Handler: only(http.MethodGet, router(opts.Router))},
		{Path: "/openapi.json", Handler: only(http.MethodGet, openAPI(opts.Version))},
	}
}

func viewImage(view tool.View) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		call, err := readCall(r)
		if err != nil {
			reply.Fault(w, fault.As(err))
			return
		}
		result, err := view(r.Context(), call)
		if err != nil {
			reply.Fail(w, reply.NewFailure(err, result))
			return
		}
		reply.JSON(w, http.StatusOK, result)
	}
}

// readCall reads the arguments out of the body and the caller's own model out
// of its header.
func readCall(r *http.Request) (tool.Call, error) {
	// The guard refused longer bodies already; a cut one is not valid JSON.
	body, err := io.ReadAll(io.LimitReader(r.Body, guard.MaxJSONBytes))
	if err != nil {
		return tool.Call{}, guard.Unreadable(err)
	}
	args, err := tool.Decode(body)
	if err != nil {
		return tool.Call{}, err
	}
	said := r.Header.Values(tool.PrimaryModelHeader)
	if len(said) > 1 {
		return tool.Call{}, fault.New(fault.InvalidToolInput, "PrimaryModelTwice", "%s is given %d times", tool.PrimaryModelHeader, len(said)).
			With("field", tool.PrimaryModelHeader).Hint("Name one model in %s.", tool.PrimaryModelHeader)
	}
	primary, err := tool.PrimaryModel(tool.PrimaryModelHeader, r.Header.Get(tool.PrimaryModelHeader))
	return tool.Call{Args: args, PrimaryModel: primary}, err
}

func router(status func() RouterStatus) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply.JSON(w, http.StatusOK, status()) }
}

func (o *Options) review(r *http.Request, body io.Reader, size int64) (Answer, error) {
	read, err := reviewReader(r)
	if err != nil {
		return nil, err
	}
	return o.Review(r.Context(), body, size, read)
}

func (o *Options) inject(r *http.Request, body io.Reader, size int64) (Answer, error) {
	return o.Inject(r.Context(), body, size)
}
