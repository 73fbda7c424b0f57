// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "runtime/debug"

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = ""

// buildVersion is the linked version, else what the Go tool knows of the build.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
