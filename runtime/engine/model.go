// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// ModelRequest is a request to a model, as an agent's own SDK wrote it.
type ModelRequest struct {
	Dialect message.Dialect
	// Model is what the path names, which Gemini's does; "" leaves it to the body.
	Model string
	// Counting says that the request asks what it would cost, and for no answer.
	Counting bool
	// Body is the whole request, without a content encoding. It stays as it is, and
	// is read until Prepared.Release.
	Body []byte
}

// Target is where a request goes.
type Target struct {
	// Route names the model in the policy's words, and Model in the upstream's.
	Route router.Route
	Model string
	// Provider is the object, "namespace/name", and Transport its wire protocol.
	Provider, Transport string
	Endpoint            exchange.Endpoint
	// Client brings the credential, the endpoint's own headers and the dialer that
	// refuses what is no provider's address. It bounds no reply: replies stream.
	Client *http.Client
}

// Served is a model that a dialect's requests may name.
type Served struct {
	// Name is the model's own, Route the policy's name of it.
	Name     string
	Route    router.Route
	Provider string
	Model    *router.Model
}
