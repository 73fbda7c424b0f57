// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// MaxDetails is the most that Details may be as JSON, in characters. Faults are
// shown to models: what is longer costs tokens at every call and helps nobody.
const MaxDetails = 1000

// previewLength is how much of details that were left out is still shown.
const previewLength = 200

// Normalize returns the Fault with its Details bounded; f itself is not
// changed. Details over MaxDetails are replaced by what identifies them: their
// length, their digest and their beginning. The field at fault is kept.
func (f *Fault) Normalize() *Fault {
	text, err := json.Marshal(f.Details)
	if err == nil && utf8.RuneCount(text) <= MaxDetails {
		return f
	}
	bounded := *f
	if err != nil {
		bounded.Details = map[string]any{"omitted": true, "reason": "the details cannot be written as JSON"}
		return &bounded
	}
	digest := sha256.Sum256(text)
	bounded.Details = map[string]any{
		"omitted":    true,
		"reason":     "the details are too long",
		"char_count": utf8.RuneCount(text),
		"sha256":     hex.EncodeToString(digest[:]),
		"preview":    strings.ToValidUTF8(string(text[:previewLength]), ""),
	}
	if field, ok := f.Details["field"].(string); ok && len(field) <= previewLength {
		bounded.Details["field"] = field
	}
	return &bounded
}
