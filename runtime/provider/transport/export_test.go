// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

// NewStreamWithIdle is NewStream with another idle limit.
var NewStreamWithIdle = newStream
