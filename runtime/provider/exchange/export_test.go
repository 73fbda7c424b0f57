// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

// ReadStatus is readStatus, and RetryAfter retryAfter, for tests of bytes and clocks.
var (
	ReadStatus = readStatus
	RetryAfter = retryAfter
)
