// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package workspace

// openFlags: other systems have no FIFOs or terminals among their files.
const openFlags = 0
