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
}

// Handler serves routes, and a fault as JSON for every other path. The guard
// stands before all of them: no route can be added that is not behind it.
func Handler(routes []Route, opts guard.Options) http.Handler {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route.Path, route.Handler)
	}
	mux.HandleFunc("/", reply.NotFound)
	return guard.Handler(mux, opts)
}
