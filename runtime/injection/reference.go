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

// space is the white space of JSON.
const space = " \t\r\n"

// refer takes over what the result of a sight's call tells of its image.
func (rules *Rules) refer(s *Sight, result []byte) {
	found := referenceIn(result)
	s.SHA256 = found.digest
	if rules.readsOCR {
		s.OCR = found.ocr()
	}
}

// references reports whether a text may hold a reference.
func references(text string) bool {
	return strings.Contains(text, "visual_reference") || strings.Contains(text, referenceLine)
}

// refers is what a result of ViewImage tells of its image.
type refers struct {
	// digest is the image's; "" means that there is none.
	digest string
	// behind is what the result says after it: see ocr.
	behind string
}

// referenceIn finds the digest of the image that a result of ViewImage is about,
// in whatever a host has made of it: structured content, text, or text around
// them. A result may be anybody's: it says no more than that the image must have
// this digest.
func referenceIn(raw []byte) refers {
	if len(raw) > maxAnswer {
		return refers{}
	}
	return digestIn(string(raw), 0)
}

func digestIn(text string, depth int) refers {
	if !references(text) {
		return refers{}
	}
	if found, is := inMember(text); is {
		return found
	}
	if found := inLine(text); found.digest != "" || depth == maxWraps {
		return found
	}
	return inStrings(text, depth)
}

// inMember reads the member where it stands in a text, of JSON or not. Nothing
// else of a text that has it is looked at, since that may come out of an image.
func inMember(text string) (found refers, is bool) {
	_, rest, _ := strings.Cut(text, referenceMember)
	if rest, is = strings.CutPrefix(strings.TrimLeft(rest, space), ":"); !is {
		return refers{}, false
	}
	var reference struct {
		SHA256 string `json:"sha256"`
	}
	decoder := json.NewDecoder(strings.NewReader(rest))
	if err := decoder.Decode(&reference); err != nil || !wholeDigest(reference.SHA256) {
		return refers{}, true
	}
	return refers{reference.SHA256, rest[decoder.InputOffset():]}, true
}

// inLine reads the line, which says: Reference: vis_… (sha256 …, image/png, …
func inLine(text string) refers {
	at := 0
	if !strings.HasPrefix(text, referenceLine) {
		if at = strings.Index(text, "\n"+referenceLine) + 1; at == 0 {
			return refers{}
		}
	}
	id, rest, _ := strings.Cut(text[at+len(referenceLine):], " (sha256 ")
	digest, behind, found := strings.Cut(rest, ",")
	if !found || !wholeDigest(digest) || observation.ReferenceID(digest) != id {
		return refers{}
	}
	return refers{digest, behind}
}

// inStrings searches the strings of a JSON text, in their order.
func inStrings(text string, depth int) refers {
	if trimmed := strings.TrimLeft(text, space); trimmed == "" || !strings.ContainsRune(`{["`, rune(trimmed[0])) {
		return refers{}
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		token, err := decoder.Token()
		if err != nil {
			return refers{}
		}
		if s, ok := token.(string); ok {
			if found := digestIn(s, depth+1); found.digest != "" {
				return found
			}
		}
	}
}

// wholeDigest reports whether a text is a sha256 as we write it.
func wholeDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// ocr is the text that a result says was read from its image, in one line: of the
// member that follows the reference, or of the text's own line. "" means that there
// is none. It is as little to be trusted as the image.
func (r refers) ocr() string {
	list := ""
	if rest, is := strings.CutPrefix(strings.TrimLeft(r.behind, space), ","); is {
		if rest, is = strings.CutPrefix(strings.TrimLeft(rest, space), `"observation"`); !is {
			return ""
		}
		var seen struct {
			OCR json.RawMessage `json:"ocr"`
		}
		rest = strings.TrimPrefix(strings.TrimLeft(rest, space), ":")
		if json.NewDecoder(strings.NewReader(rest)).Decode(&seen) != nil {
			return ""
		}
		list = string(seen.OCR)
	} else {
		_, list, _ = strings.Cut(r.behind, "\nOCR: ")
		list, _, _ = strings.Cut(list, "\n")
	}
	var entries []map[string]any
	if json.Unmarshal([]byte(list), &entries) != nil {
		return ""
	}
	var texts []string
	for _, entry := range entries {
		if text, ok := entry["text"].(string); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
}
