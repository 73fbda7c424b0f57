// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest is the runtime's HTTP API for agents and their frameworks:
//
//	POST /v1/view-image   {path, prompt, model?} -> {visual_reference, observation, vision_selection, cached}
//	GET  /v1/router       which router document and which profile are in use
//	GET  /openapi.json    this API as OpenAPI 3.1
package rest

import (
	"io"
	"net/http"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// Options are where the answers come from.
type Options struct {
	// View answers ViewImage calls.
	View tool.View
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
	return []serve.Route{
		{Path: "/v1/view-image", Handler: reply.Methods(map[string]http.HandlerFunc{http.MethodPost: viewImage(opts.View)})},
		{Path: "/v1/router", Handler: reply.Methods(map[string]http.HandlerFunc{http.MethodGet: router(opts.Router)})},
		{Path: "/openapi.json", Handler: reply.Methods(map[string]http.HandlerFunc{http.MethodGet: openAPI(opts.Version)})},
	}
}

func viewImage(view tool.View) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// The guard refused longer bodies already; a cut one is not valid JSON.
		body, err := io.ReadAll(io.LimitReader(r.Body, guard.MaxBodyBytes))
		if err != nil {
			reply.Fault(w, fault.New(fault.InvalidToolInput, "BodyUnreadable", "the body ended before it was complete").Because(err))
			return
		}
		args, err := tool.Decode(body)
		if err != nil {
			reply.Fault(w, fault.As(err))
			return
		}
		result, err := view(r.Context(), args)
		if err != nil {
			reply.Fail(w, reply.NewFailure(err, result))
			return
		}
		reply.JSON(w, http.StatusOK, result)
	}
}

func router(status func() RouterStatus) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply.JSON(w, http.StatusOK, status()) }
}
