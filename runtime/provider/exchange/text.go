// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"encoding/json"
	"strings"
)

// Join joins the texts of a reply: trimmed, blank ones skipped, a blank line between.
func Join(texts []string) string {
	var kept []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, "\n\n")
}

// said is a text in a reply, for what is good to know and not needed: whatever
// is no string reads as "", and takes no memory.
type said string

// UnmarshalJSON never fails.
func (s *said) UnmarshalJSON(data []byte) error {
	var text string
	if len(data) > 0 && data[0] == '"' && json.Unmarshal(data, &text) != nil {
		text = ""
	}
	*s = said(text)
	return nil
}
