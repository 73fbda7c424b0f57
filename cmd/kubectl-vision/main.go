// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-vision is a kubectl plugin, which also works without kubectl
// and without a cluster: `kubectl vision render` compiles files into the router
// document that the operator would publish.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

const usage = `kubectl-vision looks at what Vision Operator makes of VisionProviders and VisionPolicies.

Usage:
  kubectl vision render -f FILE... -n NAMESPACE [flags]   compile files into a router document, without a cluster
  kubectl vision version                                  print the version, as --version does

Run "kubectl vision render --help" for its flags.
`

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "kubectl-vision: %v\n", err)
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

// usageError is a command line that cannot work.
type usageError struct{ problem string }

// Error says what is wrong with the command line.
func (e *usageError) Error() string { return "reading command line: " + e.problem }

// run executes one command.
func run(_ context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		if _, err := io.WriteString(stderr, usage); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return &usageError{problem: "no command was given; the commands are render and version"}
	}
	name, rest := args[0], args[1:]
	switch name {
	case "render":
		options, err := parseRender(rest, stdout)
		switch {
		case errors.Is(err, pflag.ErrHelp):
			return nil
		case err != nil:
			return err
		}
		return render(options, stdin, stdout, stderr)
	case "version", "--version":
		if len(rest) > 0 {
			return &usageError{problem: fmt.Sprintf("%s takes no argument; got %q", name, rest[0])}
		}
		_, err := fmt.Fprintf(stdout, "kubectl-vision %s\n", buildVersion())
		return err
	case "help", "-h", "--help":
		_, err := io.WriteString(stdout, usage)
		return err
	}
	return &usageError{problem: fmt.Sprintf("there is no command %q; the commands are render and version", name)}
}
