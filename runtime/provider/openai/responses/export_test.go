// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

// ParseReply is parseReply for fuzzing.
var ParseReply = parseReply
