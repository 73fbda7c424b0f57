// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vision-operator is the control plane: it compiles VisionProviders and
// VisionPolicies into one router per namespace, reports on both, and puts the
// vision runtime beside the pods that ask for it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "vision-operator: %v\n", err)
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

// run is the operator from its command line to its end, which comes when ctx
// does or when leadership is lost. The log goes to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := parse(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case cfg.version:
		_, err := fmt.Fprintf(stdout, "vision-operator %s\n", buildVersion())
		return err
	}
	if cfg.checkInstall {
		return checkInstall(ctx, cfg, stdout)
	}
	log, err := newLogger(cfg, stderr)
	if err != nil {
		return err
	}
	return operate(ctx, cfg, log)
}
