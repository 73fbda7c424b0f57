// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"sync"

	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/serve/mcp"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// mcpCommand serves one MCP session on standard input and output until the
// peer closes its end or ctx ends. Logs go to standard error alone.
func mcpCommand(ctx context.Context, cfg config, stdin io.ReadCloser, stdout, stderr io.Writer) error {
	log := newLogger(stderr, cfg.logLevel)
	withhold(log)
	cfg.inFlight = cmp.Or(cfg.inFlight, sizeInFlight(os.DirFS("/")))
	boundMemory(cfg.inFlight)
	a, err := newApp(cfg, log)
	if err != nil {
		return err
	}
	defer a.close()
	ctx, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	background.Go(func() { _ = a.reloader.Run(ctx) })
	return mcp.ServeStdio(ctx, mcp.NewServer(until(ctx, a.view), buildVersion()), stdin, keepOpen{stdout})
}

// until is view, cancelled when ctx ends: a session that closes waits for its
// calls, and a call may wait for a model for minutes.
func until(ctx context.Context, view tool.View) tool.View {
	return func(calling context.Context, call tool.Call) (*observation.Result, error) {
		calling, cancel := context.WithCancel(calling)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return view(calling, call)
	}
}

// keepOpen is a writer whose owner closes it.
type keepOpen struct{ io.Writer }

// Close does nothing.
func (keepOpen) Close() error { return nil }
