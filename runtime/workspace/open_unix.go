// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import "syscall"

// openFlags keep an open from waiting for a FIFO's writer and from making a
// terminal the process's own.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
