// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build says what a program was built from.
package build

import "runtime/debug"

// Version is what the linker was told (-ldflags "-X main.version=v1.2.3" sets a
// program's own variable, which it gives here), else what the Go tool recorded of
// the build, else "unknown".
func Version(linked string) string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
