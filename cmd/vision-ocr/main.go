// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vision-ocr is a vision provider without a key and without the
// internet: a Chat Completions server backed by Tesseract OCR. It reads the
// text of images and nothing else, and says so in every observation.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/chat"
	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/observe"
	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/tesseract"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// How long the rim waits: for a request's headers, for idle connections, and
// for open requests at the end (below Kubernetes' 30 s of grace).
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 20 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "vision-ocr: %v\n", err)
		os.Exit(exitCode(err))
	}
}

// exitCode tells a command line that cannot work from work that failed.
func exitCode(err error) int {
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// run serves until ctx ends, then lets open requests finish. "listening on
// http://ADDRESS" on stdout says that it is ready, and with --listen HOST:0 where.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFlags(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if cfg.showVersion {
		_, err := fmt.Fprintf(stdout, "vision-ocr %s\n", buildVersion())
		return err
	}
	key, err := readKey(cfg.apiKeyFile)
	if err != nil {
		return err
	}
	engine, err := tesseract.Open(ctx, cfg.tesseract, cfg.languages)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", cfg.listen, err)
	}
	log.Info("starting", "version", buildVersion(), "tesseract", engine.Version(), "languages", engine.Languages(),
		"address", listener.Addr().String(), "apiKeyRequired", key != "")
	fmt.Fprintf(stdout, "listening on http://%s\n", listener.Addr())
	return serve(ctx, listener, cfg.timeout, chat.NewHandler(chat.Options{
		Recogniser: engine, Engine: observe.Engine{Version: engine.Version(), Languages: engine.Languages()},
		Model: cfg.model, APIKey: key, MaxConcurrent: cfg.maxConcurrent,
		Timeout: cfg.timeout, MaxBodyBytes: int64(cfg.maxBodyBytes), Log: log,
	}), log)
}

// serve answers on listener until ctx ends and open requests are done.
func serve(ctx context.Context, listener net.Listener, timeout time.Duration, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout + timeout,
		WriteTimeout: 2 * (headerTimeout + timeout), IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	log.Info("stopping")
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close() // ends the requests' contexts, and so their tesseract processes
		return fmt.Errorf("waiting for open requests: %w", err)
	}
	return nil
}
