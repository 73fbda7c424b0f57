// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gobuild builds a program of the project for an image, the same bytes for
// the same source, version and Go, wherever the source lies.
package gobuild

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// Binary is a program that was built.
type Binary struct {
	Data []byte
	// Info is what Go wrote into it: its modules, and the Go version.
	Info *debug.BuildInfo
}

// BuildError is a build that failed, with what Go said.
type BuildError struct {
	Package, Said string
	Err           error
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("building %s: %v: %s", e.Package, e.Err, e.Said)
}

func (e *BuildError) Unwrap() error { return e.Err }

// Arguments are those of the go command. The build ID depends on the folders of
// the build, and the stamp of the version control system on the clone, so both are left out.
func Arguments(pkg, version, out string) []string {
	return []string{
		"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version=" + version, "-o", out, pkg,
	}
}

// Environment is what decides the bytes, on top of the caller's environment: no C, no
// workspace, and the oldest processors of each architecture, whatever the user has set.
func Environment(arch string) []string {
	return []string{
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
	}
}

// Build builds the package pkg (./cmd/name) of the module in root for Linux on arch.
func Build(ctx context.Context, root, pkg, version, arch string) (Binary, error) {
	dir, err := os.MkdirTemp("", "vision-images.")
	if err != nil {
		return Binary{}, fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", Arguments(pkg, version, name)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), Environment(arch)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return Binary{}, &BuildError{Package: pkg, Said: strings.TrimSpace(string(said)), Err: err}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return Binary{}, fmt.Errorf("reading what was built: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return Binary{}, fmt.Errorf("reading the modules of %s: %w", pkg, err)
	}
	return Binary{Data: data, Info: info}, nil
}
