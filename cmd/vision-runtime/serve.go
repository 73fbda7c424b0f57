// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/health"
	"github.com/visionoperator/vision-operator/runtime/serve/mcp"
	"github.com/visionoperator/vision-operator/runtime/serve/rest"
)

// How long the listeners wait. There is no limit on writing an answer for
// agents: a look's time is bounded by the timeouts of the endpoints it may use, and
// the model proxy moves the limit on reading by itself.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = time.Minute
	idleTimeout       = 2 * time.Minute
	healthTimeout     = 10 * time.Second
	// drainTimeout is what requests in flight get after SIGTERM: below
	// Kubernetes' default grace period of 30 s.
	drainTimeout = 25 * time.Second
	// cancelTimeout is what those that did not finish get on top to say so.
	cancelTimeout = time.Second
)

const maxHeaderBytes = 64 << 10

// server is a running runtime with its listeners.
type server struct {
	app     *app
	started atomic.Bool
	agents  *http.Server
	health  *http.Server
	// agentsAt and healthAt are the addresses that are really listened on.
	agentsAt, healthAt net.Addr
	failed             chan error // what ended a listener too early
	background         sync.WaitGroup
	stop               context.CancelFunc
	cancel             context.CancelFunc // of all requests for agents
}

// serveCommand serves until ctx ends, then lets requests in flight finish.
func serveCommand(ctx context.Context, cfg serveConfig, stderr io.Writer) error {
	log := newLogger(stderr, cfg.logLevel)
	withhold(log)
	cfg.inFlight = cmp.Or(cfg.inFlight, sizeInFlight(os.DirFS("/")))
	boundMemory(cfg.inFlight)
	s, err := start(cfg, log)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	return errors.Join(err, s.shutdown(drainTimeout))
}

// start opens the listeners and returns once they answer.
func start(cfg serveConfig, log *slog.Logger) (*server, error) {
	agents, probes, err := openListeners(cfg)
	if err != nil {
		return nil, err
	}
	a, err := newApp(cfg.config, log)
	if err != nil {
		return nil, errors.Join(err, agents.Close(), probes.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	requests, cancel := context.WithCancel(context.Background())
	s := &server{app: a, agentsAt: agents.Addr(), healthAt: probes.Addr(), failed: make(chan error, 2), stop: stop, cancel: cancel}
	errorLog := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	s.agents = &http.Server{
		Handler: serve.Handler(a.routes(!cfg.noProxy), serve.Options{
			Guard:        guard.Options{Port: agents.Addr().(*net.TCPAddr).Port, ExtraHosts: cfg.allowedHosts},
			MaxBodyBytes: a.engine.MaxBodyBytes,
		}),
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: errorLog,
		BaseContext:                  func(net.Listener) context.Context { return requests },
		DisableGeneralOptionsHandler: true, // "OPTIONS *" is for the guard as well
	}
	s.health = &http.Server{
		Handler:           health.Handler(health.Options{Started: s.started.Load, State: a.state, Metrics: a.metrics}),
		ReadHeaderTimeout: healthTimeout, ReadTimeout: healthTimeout, WriteTimeout: healthTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: errorLog,
	}
	s.background.Go(func() { s.listen("agents", s.agents, agents) })
	s.background.Go(func() { s.listen("probes", s.health, probes) })
	s.background.Go(func() { _ = a.reloader.Run(ctx) }) // ends with ctx alone
	s.started.Store(true)
	log.Info("listening", "agents", s.agentsAt.String(), "probes", s.healthAt.String(), "profile", cfg.profile, "version", buildVersion())
	return s, nil
}

func openListeners(cfg serveConfig) (agents, probes net.Listener, err error) {
	if agents, err = net.Listen("tcp", cfg.listen); err != nil {
		return nil, nil, fmt.Errorf("opening listener for agents: %w", err)
	}
	if probes, err = net.Listen("tcp", cfg.healthListen); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("opening listener for probes: %w", err), agents.Close())
	}
	return agents, probes, nil
}

// routes are all paths for agents, those of the model proxy among them or not.
func (a *app) routes(proxied bool) []serve.Route {
	paths := rest.Routes(rest.Options{
		View: a.view, Upload: a.upload, MaxImageBytes: a.engine.MaxImageBytes, Reference: a.engine.Reference,
		Review: a.review, Inject: a.inject, MaxReviewBytes: a.engine.MaxBodyBytes, Router: a.routerStatus, Version: buildVersion(),
	})
	if proxied {
		paths = append(paths, a.proxyRoutes()...)
	}
	return append(paths, mcp.Route(mcp.NewServer(a.view, buildVersion()), a.mcpEnabled))
}

func (s *server) listen(name string, srv *http.Server, l net.Listener) {
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.failed <- fmt.Errorf("serving %s: %w", name, err)
	}
}

// shutdown takes no new requests and waits for those in flight, up to a time;
// then it cancels them, and each answers that it was. Probes are answered until
// the end.
func (s *server) shutdown(wait time.Duration) error {
	s.app.log.Info("shutting down", "drain_seconds", wait.Seconds())
	err := s.drain(wait)
	s.cancel()
	if err != nil {
		err = fmt.Errorf("waiting for requests in flight: %w", err)
		_ = s.drain(cancelTimeout)
	}
	_ = s.agents.Close() // what did not even end then
	_ = s.health.Close()
	s.stop()
	s.background.Wait()
	s.app.close()
	return err
}

func (s *server) drain(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return s.agents.Shutdown(ctx)
}
