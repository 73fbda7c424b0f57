// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve puts the ways into the runtime behind one guarded handler. The
// folders below it are adapters without rules of their own:
//
//	guard    refuses what a browser in the pod could send to loopback
//	tool     the ViewImage tool: its arguments, its schemas, its answers
//	rest     the HTTP API
//	mcp      the same tool over the Model Context Protocol
//	health   probes and metrics, on a listener of their own
//	reply    JSON answers and faults as HTTP
package serve

import (
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

// Route is one path of the agents' listener.
type Route struct {
	// Path is a pattern of http.ServeMux without a method.
	Path    string
	Handler http.Handler
	// Body is what the path takes as the body of a request. Nil takes JSON
	// within Options.MaxBodyBytes.
	Body *guard.Body
}

// Options are what requests are held against.
type Options struct {
	Guard guard.Options
	// MaxBodyBytes lowers guard.MaxJSONBytes for every path that takes JSON,
	// those that nothing is served at as well.
	MaxBodyBytes guard.Limit
}

// Handler serves routes, and a fault as JSON for every other path. The guard
// stands before all of them: no route can be added that is not behind it, and
// none that reads a body without a rule.
func Handler(routes []Route, opts Options) http.Handler {
	json := guard.JSON(opts.MaxBodyBytes)
	mux := http.NewServeMux()
	for _, route := range routes {
		body := route.Body
		if body == nil {
			body = json
		}
		mux.Handle(route.Path, body.Handler(route.Handler))
	}
	mux.Handle("/", json.Handler(http.HandlerFunc(reply.NotFound)))
	return guard.Handler(mux, opts.Guard)
}
