// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/proxy"
	"github.com/visionoperator/vision-operator/runtime/telemetry"
)

// proxyRoutes are the paths of the model proxy.
func (a *app) proxyRoutes() []serve.Route {
	return proxy.Routes(proxy.Options{
		Prepare: a.prepare, Models: a.engine.Models, Passthrough: a.engine.Passthrough,
		Hold: a.engine.Hold, MaxInFlight: a.cfg.inFlight, MaxBodyBytes: a.engine.MaxBodyBytes, Done: a.proxied,
	})
}

// prepare makes a model request ready to be sent. It turns a panic into a fault,
// as view does.
func (a *app) prepare(ctx context.Context, req engine.ModelRequest) (ready *proxy.Prepared, err error) {
	defer func() {
		if p := recover(); p != nil {
			ready, err = nil, a.panicked("preparing a model request", p)
		}
	}()
	prepared, err := a.engine.Prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	return &proxy.Prepared{Target: prepared.Target, Body: prepared.Body, Record: &prepared.Record, Preparation: prepared}, nil
}

// proxied counts and logs what came of a model request: at level debug one that was
// answered and had no image put in or left out. Nothing of the request itself is
// logged.
func (a *app) proxied(o *proxy.Outcome) {
	counted := telemetry.Proxied{
		Dialect: string(o.Dialect), Operation: string(o.Operation), Outcome: o.Result, Asked: o.Provider != "", Status: o.Status,
		Took: o.Took, Sent: o.Sent, Received: o.Received, Retried: o.Retried,
	}
	level := slog.LevelInfo
	if r := o.Record; o.Result == proxy.Answered && o.Status < http.StatusBadRequest && !o.Retried &&
		(r == nil || r.Injected+r.Observed+r.Degraded+r.Unavailable == 0) {
		level = slog.LevelDebug
	}
	attributes := append(make([]slog.Attr, 0, 9),
		slog.String("dialect", string(o.Dialect)), slog.String("operation", string(o.Operation)), slog.String("outcome", o.Result),
		slog.Int("status", o.Status), slog.Int64("duration_ms", o.Took.Milliseconds()), slog.Int64("sent", o.Sent), slog.Int64("received", o.Received),
	)
	if o.Reason != "" {
		attributes = append(attributes, slog.String("reason", o.Reason))
	}
	if r := o.Record; r != nil {
		counted.Injected, counted.Observed, counted.Degraded, counted.Unavailable = r.Injected, r.Observed, r.Degraded, r.Unavailable
		attributes = append(attributes, slog.String("route", r.Route))
	}
	a.metrics.Proxied(counted)
	a.log.LogAttrs(context.Background(), level, "model request answered", attributes...)
}
