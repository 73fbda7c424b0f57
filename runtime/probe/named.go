// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

// isJXL matches JPEG XL, bare or in its container (ISO/IEC 18181-2).
func isJXL(b []byte) bool {
	return hasPrefix(b, "\xff\x0a") || hasPrefix(b, "\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a")
}

// isJP2 matches JPEG 2000 in its container (ISO/IEC 15444-1, annex I).
func isJP2(b []byte) bool { return hasPrefix(b, "\x00\x00\x00\x0cjP  \x0d\x0a\x87\x0a") }
