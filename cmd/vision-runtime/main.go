// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vision-runtime is the sidecar that looks at images for an agent: it
// reads the router document that the platform team published, and serves the
// ViewImage tool over HTTP and MCP on loopback.
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

const usage = `vision-runtime looks at images for an agent, under a platform team's policy.

Usage:
  vision-runtime serve [flags]    serve the ViewImage tool over HTTP and MCP
  vision-runtime mcp [flags]      serve the ViewImage tool over MCP on standard input and output
  vision-runtime version          print the version, as --version does

Run "vision-runtime serve --help" or "vision-runtime mcp --help" for the flags.
`

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "vision-runtime: %v\n", err)
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

// run executes one command until it is done or ctx ends.
func run(ctx context.Context, args []string, stdin io.ReadCloser, stdout io.Writer, stderr io.Writer) error {
	if len(args) == 0 {
		return &usageError{problem: "no command was given; the commands are serve, mcp and version"}
	}
	name, rest := args[0], args[1:]
	switch name {
	case "serve":
		cfg, err := parseServe(rest, stdout)
		if err != nil {
			return unlessHelp(err)
		}
		return serveCommand(ctx, cfg, stderr)
	case "mcp":
		cfg, err := parseMCP(rest, stdout)
		if err != nil {
			return unlessHelp(err)
		}
		return mcpCommand(ctx, cfg, stdin, stdout, stderr)
	case "version", "--version":
		if len(rest) > 0 {
			return &usageError{problem: fmt.Sprintf("%s takes no argument; got %q", name, rest[0])}
		}
		_, err := fmt.Fprintf(stdout, "vision-runtime %s\n", buildVersion())
		return err
	case "help", "-h", "--help":
		_, err := io.WriteString(stdout, usage)
		return err
	}
	return &usageError{problem: fmt.Sprintf("there is no command %q; the commands are serve, mcp and version", name)}
}

// unlessHelp turns "the help was asked for and printed" into success.
func unlessHelp(err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	return err
}
