// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images builds the project's container images without Docker: static
// programs on nothing but certificates, and for vision-ocr those files of Debian's
// packages that Tesseract needs. See docs/development.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/visionoperator/vision-operator/hack/images/internal/linkage"
	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
)

const usage = `images builds the project's container images, without Docker.

Usage:
  images build [flags]     write OCI archives and SBOMs, and check them
  images rootfs [flags]    write the images' files into folders, OUT/NAME
  images lock [flags]      write debian.lock.json anew, with the newest of Debian's packages

Flags:
`

// config is what the command line says.
type config struct {
	command       string
	root, out     string
	version       string
	recipes       []recipe.Recipe
	architectures []string
	current       bool
}

// usageError is a command line that cannot work.
type usageError struct{ problem string }

func (e *usageError) Error() string { return "reading command line: " + e.problem }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "images: %v\n", err)
	if _, ok := errors.AsType[*usageError](err); ok {
		os.Exit(2)
	}
	os.Exit(1)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	b, err := newBuilder(c, stderr)
	if err != nil {
		return err
	}
	switch c.command {
	case "build":
		return b.build(ctx, stdout)
	case "rootfs":
		return b.rootfs(ctx)
	default:
		return b.lock(ctx)
	}
}

func parse(args []string, stderr io.Writer) (config, error) {
	c := config{}
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	images := flags.String("images", "", "images to build, separated by blanks or commas; empty means all")
	arch := flags.String("arch", "amd64 arm64", "architectures to build for, separated by blanks or commas")
	debian := flags.String("debian", "locked", "versions of Debian's packages: locked (debian.lock.json) or current")
	flags.StringVar(&c.root, "root", "../..", "folder of the project")
	flags.StringVar(&c.out, "out", "../../bin/images", "folder to write to")
	flags.StringVar(&c.version, "version", "unknown", "version of the images: their tag")
	if len(args) == 0 {
		flags.Usage()
		return c, &usageError{problem: "no command was given"}
	}
	c.command = args[0]
	if c.command == "-h" || c.command == "--help" {
		flags.Usage()
		return c, flag.ErrHelp
	}
	if !slices.Contains([]string{"build", "rootfs", "lock"}, c.command) {
		return c, &usageError{problem: fmt.Sprintf("there is no command %q; there are build, rootfs and lock", c.command)}
	}
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return c, err
	} else if err != nil {
		return c, &usageError{problem: err.Error()}
	}
	if flags.NArg() > 0 {
		return c, &usageError{problem: fmt.Sprintf("there are no arguments beside the flags; got %q", flags.Arg(0))}
	}
	var err error
	if c.recipes, err = recipe.Choose(words(*images)); err != nil {
		return c, &usageError{problem: err.Error()}
	}
	if c.architectures = words(*arch); len(c.architectures) == 0 {
		return c, &usageError{problem: "-arch names none"}
	}
	for _, a := range c.architectures {
		if _, ok := linkage.Platforms[a]; !ok {
			return c, &usageError{problem: fmt.Sprintf("-arch: there is no %q; there are amd64 and arm64", a)}
		}
	}
	slices.Sort(c.architectures)
	c.architectures = slices.Compact(c.architectures)
	if *debian != "locked" && *debian != "current" {
		return c, &usageError{problem: fmt.Sprintf("-debian: %q is neither locked nor current", *debian)}
	}
	c.current = *debian == "current"
	return c, recipe.CheckVersion(c.version)
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// cacheDir is where Debian's packages are kept: ${XDG_CACHE_HOME:-$HOME/.cache}/vision-operator/images.
func cacheDir() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding a folder for Debian's packages: %w", err)
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "vision-operator", "images"), nil
}
