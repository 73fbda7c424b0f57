// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd carries the generated CustomResourceDefinitions, so that programs
// can apply their rules without a cluster.
package crd

import "embed"

// Bases holds one manifest for each kind, below bases/.
//
//go:embed bases/*.yaml
var Bases embed.FS
