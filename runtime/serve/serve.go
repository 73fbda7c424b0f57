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
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
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
	// AsSent gives the handler every path below Path, a name with a slash behind it,
	// as it was sent, and that name itself: http.ServeMux redirects paths with empty
	// segments or dots, and what becomes of those is the handler's to say.
	AsSent bool
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
// none that reads a body without a rule. What it refuses is worded as the path's
// own refusals are.
func Handler(routes []Route, opts Options) http.Handler {
	json := guard.JSON(opts.MaxBodyBytes)
	mux, trees := http.NewServeMux(), map[string]tree{}
	for _, route := range routes {
		body := route.Body
		if body == nil {
			body = json
		}
		handler := body.Handler(route.Handler)
		mux.Handle(route.Path, handler)
		if route.AsSent {
			trees[strings.TrimSuffix(route.Path, "/")] = tree{handler, body}
		}
	}
	mux.Handle("/", json.Handler(http.HandlerFunc(reply.NotFound)))
	opts.Guard.Refuse = func(w http.ResponseWriter, r *http.Request, f *fault.Fault) {
		body := json
		if t, ok := treeOf(trees, r); ok {
			body = t.body
		}
		body.Refuse(w, r, f)
	}
	return guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t, ok := treeOf(trees, r); ok {
			t.handler.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}), opts.Guard)
}

// tree is a route whose paths are as they were sent.
type tree struct {
	handler http.Handler
	body    *guard.Body
}

// treeOf is the tree whose name a path begins with; trees have names of one segment.
func treeOf(trees map[string]tree, r *http.Request) (t tree, ok bool) {
	path := r.URL.Path
	if end := strings.IndexByte(strings.TrimPrefix(path, "/"), '/'); end >= 0 {
		path = path[:end+1]
	}
	t, ok = trees[path]
	return t, ok
}
