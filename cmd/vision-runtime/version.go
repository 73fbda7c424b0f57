// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/visionoperator/vision-operator/cmd/internal/build"

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = ""

// buildVersion is the version that --version prints.
func buildVersion() string { return build.Version(version) }
