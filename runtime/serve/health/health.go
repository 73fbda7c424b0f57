// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health serves what the cluster asks the runtime: probes and metrics.
// It belongs on a listener of its own, which the kubelet reaches from outside
// the pod; nothing here shows a path, a prompt or a key.
package health

import (
	"bytes"
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
	"github.com/visionoperator/vision-operator/runtime/telemetry"
)

// Options are where the answers come from.
type Options struct {
	// Started reports whether every listener is open. The router document does
	// not count: a pod must start where none is published yet.
	Started func() bool
	// State reports what the runtime holds and uses now.
	State func() telemetry.State
	// Metrics are the runtime's counters.
	Metrics *telemetry.Metrics
}

// Handler serves /healthz, /startupz, /readyz and /metrics.
func Handler(opts Options) http.Handler {
	get := func(h http.HandlerFunc) http.Handler {
		return reply.Methods(map[string]http.HandlerFunc{http.MethodGet: h})
	}
	mux := http.NewServeMux()
	mux.Handle("/healthz", get(ok))
	mux.Handle("/startupz", get(func(w http.ResponseWriter, r *http.Request) {
		if !opts.Started() {
			reply.Fault(w, unavailable("NotStarted", "the listeners are not open yet"))
			return
		}
		ok(w, r)
	}))
	mux.Handle("/readyz", get(func(w http.ResponseWriter, r *http.Request) {
		if !opts.State().Router.Loaded {
			reply.Fault(w, unavailable("RouterNotLoaded", "no router document has been loaded yet"))
			return
		}
		ok(w, r)
	}))
	mux.Handle("/metrics", get(func(w http.ResponseWriter, _ *http.Request) {
		var body bytes.Buffer
		_ = opts.Metrics.Write(&body, opts.State()) // a buffer takes everything
		w.Header().Set("Content-Type", telemetry.ContentType)
		_, _ = w.Write(body.Bytes())
	}))
	mux.HandleFunc("/", reply.NotFound)
	return mux
}

func ok(w http.ResponseWriter, _ *http.Request) {
	reply.JSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"ok"})
}

func unavailable(reason, message string) *fault.Fault {
	f := fault.New(fault.RouterUnavailable, reason, "%s", message)
	f.Retryable = true
	return f
}
