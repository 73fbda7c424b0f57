// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/provider/retry"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/reload"
	"github.com/visionoperator/vision-operator/runtime/serve/rest"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
	"github.com/visionoperator/vision-operator/runtime/telemetry"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

// app is the runtime without a way in: the engine, what feeds it, and counters.
type app struct {
	cfg      config
	log      *slog.Logger
	spaces   *workspace.Set
	kept     *kept
	engine   *engine.Engine
	reloader *reload.Reloader
	metrics  *telemetry.Metrics
}

// newApp builds the runtime and reads the router document once. That it is not
// there yet is no error: requests are refused as router_unavailable until it is.
func newApp(cfg config, log *slog.Logger) (*app, error) {
	cfg.inFlight = cmp.Or(cfg.inFlight, engine.DefaultMaxHeldBytes)
	kept, err := openKept(cfg.cache, cfg.persisted, log)
	if err != nil {
		return nil, err
	}
	spaces, err := workspace.Open(cfg.workspaces)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening workspaces: %w", err), kept.close())
	}
	metrics := telemetry.New(time.Now())
	eng := engine.New(engine.Options{
		Profile:      cfg.profile,
		Workspaces:   spaces,
		SecretsDir:   cfg.secrets,
		References:   kept.references,
		Pins:         kept.pins,
		Cache:        kept.observations,
		MaxHeldBytes: cfg.inFlight,
		PodKey:       podKey(cfg.cache, log),
		Logger:       log,
		Attempted: func(a retry.Attempt) {
			metrics.Attempted(a.Endpoint, a.Reason, a.Took, a.Usage.InputTokens, a.Usage.OutputTokens)
		},
		Version: buildVersion(),
	})
	a := &app{cfg: cfg, log: log, spaces: spaces, kept: kept, engine: eng, metrics: metrics}
	a.reloader = reload.New(reload.Options{Path: cfg.router, Apply: eng.Use, Logger: log})
	_ = a.reloader.Load() // told by the log, by GET /v1/router and by every call
	return a, nil
}

// close lets go of what newApp opened, after the last view.
func (a *app) close() {
	a.engine.Close()
	a.spaces.Close()
	if err := a.kept.close(); err != nil {
		a.log.Warn("closing the cache directory failed", "error", err)
	}
}

// mcpEnabled is asked for every request at /mcp. Without a profile it is open,
// so that a call is told why it cannot be served.
func (a *app) mcpEnabled() bool { return !a.engine.ProfileFound() || a.engine.MCPEnabled() }

// newLogger writes one JSON object per line.
func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// spareMemory is what the process may take beside the images it holds: 32 MiB,
// twice what it takes when nothing is in flight.
const spareMemory = 32 << 20

// boundMemory makes the collector work harder before the heap outgrows what
// images may take; without it the heap could double. GOMEMLIMIT has precedence.
func boundMemory(inFlight int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(inFlight + spareMemory)
	}
}

// withhold keeps the texts of the standard library's own log out of ours.
// net/http prints there what a provider sends on an idle connection, and what a
// provider sends may repeat the key that it was called with.
func withhold(log *slog.Logger) { stdlog.SetOutput(withheld{log}) }

// withheld tells that there was a message, and not what it said.
type withheld struct{ log *slog.Logger }

// Write takes one message.
func (w withheld) Write(message []byte) (int, error) {
	w.log.Warn("a library logged a message, which is withheld: it may repeat what a provider sent", "bytes", len(message))
	return len(message), nil
}

// view answers one call for every way in: it counts and logs what came of it,
// and turns a panic into a fault, so that one image cannot end the process.
// Neither path nor prompt is logged: they may hold what users wrote.
func (a *app) view(ctx context.Context, call tool.Call) (result *observation.Result, err error) {
	began := time.Now()
	done := a.metrics.ViewStarted()
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, a.panicked("answering a view", p)
		}
		outcome := outcomeOf(result, err)
		done(outcome)
		if outcome == telemetry.Observed && result.VisionSelection.SelectionReason == observation.ReasonFallback {
			a.metrics.FellBack()
		}
		attributes := []any{"outcome", outcome, "duration_ms", time.Since(began).Milliseconds()}
		if err != nil {
			attributes = append(attributes, "reason", fault.As(err).Reason)
		}
		a.logDecision(result)
		a.log.Info("view answered", attributes...)
	}()
	return a.engine.View(ctx, engine.Request{Path: call.Path, Prompt: call.Prompt, Model: call.Model, PrimaryModel: call.PrimaryModel})
}

// upload keeps one image: it counts and logs what came of it, and turns a panic
// into a fault, as view does.
func (a *app) upload(ctx context.Context, r io.Reader, size int64) (kept *reference.Kept, err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			kept, err = nil, a.panicked("keeping an image", p)
		}
		duration := time.Since(began).Milliseconds()
		if err != nil {
			f := fault.As(err)
			a.metrics.UploadEnded(string(f.Kind))
			a.log.Info("upload answered", "outcome", string(f.Kind), "duration_ms", duration, "reason", f.Reason)
			return
		}
		a.metrics.UploadEnded(telemetry.Kept)
		a.log.Info("upload answered", "outcome", telemetry.Kept, "duration_ms", duration, "bytes", kept.Reference.ByteCount, "existed", kept.Existed)
	}()
	return a.engine.Upload(ctx, r, size)
}

// review judges one model request: it counts and logs what came of it, and turns
// a panic into a fault, as view does. Nothing of the request itself is logged.
func (a *app) review(ctx context.Context, r io.Reader, size int64, read rest.ReviewReader) (answer rest.Answer, err error) {
	began := time.Now()
	var reviewed *engine.Reviewed
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, a.panicked("reviewing a request", p)
		}
		outcome, reason := verdictOf(reviewed, err)
		a.metrics.ReviewEnded(outcome)
		attributes := []any{"outcome", outcome, "duration_ms", time.Since(began).Milliseconds()}
		if reason != "" {
			attributes = append(attributes, "reason", reason)
		}
		a.log.Info("review answered", attributes...)
	}()
	if reviewed, err = a.engine.Review(ctx, r, size, read); err != nil {
		return nil, err
	}
	return reviewed, nil
}

// verdictOf names what came of a review as telemetry counts it, and why.
func verdictOf(reviewed *engine.Reviewed, err error) (outcome, reason string) {
	switch {
	case err != nil:
		f := fault.As(err)
		return string(f.Kind), f.Reason
	case !reviewed.Response.Allowed:
		return telemetry.Denied, reviewed.Response.Status.Reason
	case reviewed.Response.Degraded():
		return telemetry.Degraded, ""
	}
	return telemetry.Allowed, ""
}

// panicked logs a panic without what it says, which may be content, and is the
// fault to answer with.
func (a *app) panicked(doing string, p any) *fault.Fault {
	a.log.Error(doing+" panicked", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
	return fault.New(fault.VisionObservationFailed, "Internal", "the vision runtime failed unexpectedly")
}

// logDecision says, at level debug, which routes were considered for a view and
// why. A route that the router does not have is what the caller wrote: it is
// told by its reason alone.
func (a *app) logDecision(result *observation.Result) {
	if result == nil || result.VisionSelection == nil || !a.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	s := result.VisionSelection
	considered := make([]string, len(s.Candidates))
	for i, c := range s.Candidates {
		considered[i] = string(c.Reason)
		if c.Reason != observation.ReasonUnknownRoute {
			considered[i] = c.ModelRef + " " + considered[i]
		}
	}
	a.log.Debug("model selected", "mode", s.SelectedMode, "reason", s.SelectionReason, "route", s.VisionModelRef, "candidates", considered)
}

// outcomeOf names what came of a view as telemetry counts it.
func outcomeOf(result *observation.Result, err error) string {
	switch {
	case err != nil:
		return string(fault.As(err).Kind)
	case result.Cached:
		return telemetry.Cached
	}
	return telemetry.Observed
}

// routerStatus is the answer of GET /v1/router.
func (a *app) routerStatus() rest.RouterStatus {
	state := a.reloader.State()
	status := rest.RouterStatus{
		Loaded:       state.Loaded,
		Digest:       state.Digest,
		Profile:      a.cfg.profile,
		ProfileFound: a.engine.ProfileFound(),
		LastError:    state.LastError,
	}
	if !state.LoadedAt.IsZero() {
		status.LoadedAt = &state.LoadedAt
	}
	if !state.FailingSince.IsZero() {
		status.FailingSince = &state.FailingSince
	}
	return status
}

// state is what probes and metrics tell of the runtime.
func (a *app) state() telemetry.State {
	router, held := a.reloader.State(), a.engine.State()
	return telemetry.State{
		Router:       telemetry.Router{Loaded: router.Loaded, LoadedAt: router.LoadedAt, Failing: router.LastError != ""},
		CacheEntries: held.CacheEntries, CacheBytes: held.CacheBytes, CircuitOpen: held.CircuitOpen,
	}
}
