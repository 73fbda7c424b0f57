// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package random holds pods of random valid shapes against a real API server
// that calls the operator's webhook: what it accepts without the runtime it
// accepts with it.
package random
