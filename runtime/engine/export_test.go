// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

// FileFault is fileFault, for failures that a test cannot cause on every machine.
var FileFault = fileFault
