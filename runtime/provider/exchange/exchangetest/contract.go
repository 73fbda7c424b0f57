// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchangetest

import "testing"

// Contract runs the suites that need no more than the Protocol.
func (p Protocol) Contract(t *testing.T) {
	t.Run("the image is never copied", p.ImageIsNeverCopied)
	t.Run("failures", p.Failures)
	t.Run("structured output that is refused", p.Fallback)
	t.Run("lists that cannot be read", p.UnreadableLists)
}
