// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

// Bounds of the search for a reference.
const (
	// maxAnswer is the longest result that is searched, in bytes of JSON: the
	// largest one of ViewImage, with what hosts put around and escape in it.
	maxAnswer = 4 << 20
	// maxWraps is how deep JSON within strings of JSON is followed: hosts put the
	// text of a result into their own, some of them twice.
	maxWraps = 4
)

// What a result of ViewImage names its image by: a member of its structured
// content, and the beginning of a line of its text.
const (
	referenceMember = `"visual_reference"`
	referenceLine   = "Reference: "
)

// references reports whether a text may hold a reference.
func references(text string) bool {
	return strings.Contains(text, "visual_reference") || strings.Contains(text, referenceLine)
}

// referenceIn finds the digest of the image that a result of ViewImage is about,
// in whatever a host has made of it: structured content, text, or text around
// them. "" means that there is none. A result may be anybody's: it says no more
// than that the image must have this digest.
func referenceIn(raw []byte) string {
	if len(raw) > maxAnswer {
		return ""
	}
	return digestIn(string(raw), 0)
}

func digestIn(text string, depth int) string {
	if !references(text) {
		return ""
	}
	if digest, is := inMember(text); is {
		return digest
	}
	if digest := inLine(text); digest != "" || depth == maxWraps {
		return digest
	}
	return inStrings(text, depth)
}

// inMember reads the member where it stands in a text, of JSON or not. Nothing
// else of a text that has it is looked at, since that may come out of an image.
func inMember(text string) (digest string, is bool) {
	_, rest, _ := strings.Cut(text, referenceMember)
	if rest, is = strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), ":"); !is {
		return "", false
	}
	var reference struct {
		SHA256 string `json:"sha256"`
	}
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&reference); err != nil || !wholeDigest(reference.SHA256) {
		return "", true
	}
	return reference.SHA256, true
}

// inLine reads the line, which says: Reference: vis_… (sha256 …, image/png, …
func inLine(text string) string {
	at := 0
	if !strings.HasPrefix(text, referenceLine) {
		if at = strings.Index(text, "\n"+referenceLine) + 1; at == 0 {
			return ""
		}
	}
	id, rest, _ := strings.Cut(text[at+len(referenceLine):], " (sha256 ")
	digest, _, found := strings.Cut(rest, ",")
	if !found || !wholeDigest(digest) || observation.ReferenceID(digest) != id {
		return ""
	}
	return digest
}

// inStrings searches the strings of a JSON text, in their order.
func inStrings(text string, depth int) string {
	if trimmed := strings.TrimLeft(text, " \t\r\n"); trimmed == "" || !strings.ContainsRune(`{["`, rune(trimmed[0])) {
		return ""
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		if s, ok := token.(string); ok {
			if digest := digestIn(s, depth+1); digest != "" {
				return digest
			}
		}
	}
}

// wholeDigest reports whether a text is a sha256 as we write it.
func wholeDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
