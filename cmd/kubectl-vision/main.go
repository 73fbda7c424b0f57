// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-vision is a kubectl plugin, which also works without kubectl
// and without a cluster: `kubectl vision render` compiles files into the router
// document that the operator would publish, `kubectl vision explain` says why a
// pod, of a cluster or of files, gets the vision runtime or does not, `kubectl
// vision preflight` judges a model request, `kubectl vision tokens` estimates what
// an image costs, and `kubectl vision probe` says what the bytes of images tell.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

const usage = `kubectl-vision looks at what Vision Operator makes of VisionProviders, VisionPolicies, pods, model requests and images.

Usage:
  kubectl vision render -f FILE... -n NAMESPACE [flags]   compile files into a router document, without a cluster
  kubectl vision explain KIND/NAME... [flags]             say why a pod gets the vision runtime, or why not
  kubectl vision explain -f FILE... [flags]               the same of files, without a cluster
  kubectl vision preflight FILE|IMAGE... [flags]          say what would become of a model request, or of images in one
  kubectl vision tokens --model MODEL [flags]             estimate what an image costs a model in tokens
  kubectl vision probe FILE... [flags]                    say what the bytes of image files tell
  kubectl vision version                                  print the version, as --version does

Run "kubectl vision COMMAND --help" for the flags of a command.
`

// commands are the names of the commands, for a message.
const commands = "render, explain, preflight, tokens, probe and version"

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
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		if _, err := io.WriteString(stderr, usage); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return &usageError{problem: "no command was given; the commands are " + commands}
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
	case "explain":
		return runExplain(ctx, rest, stdin, stdout, stderr)
	case "preflight":
		return runPreflight(ctx, rest, stdin, stdout, stderr)
	case "tokens":
		return runTokens(rest, stdout)
	case "probe":
		return runProbe(rest, stdout)
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
	return &usageError{problem: fmt.Sprintf("there is no command %q; the commands are %s", name, commands)}
}
