// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// shown is a part of a golden body in a document, behind the case that it is of.
var shown = regexp.MustCompile("(?s)<!-- golden: ([a-z/-]+) -->\n```json\n(.*?)\n```")

func TestWhatTheDocumentsShowIsWhatIsSent(t *testing.T) {
	doc, err := os.ReadFile("../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := shown.FindAllSubmatch(doc, -1)
	if all := bytes.Count(doc, []byte("```json")); len(parts) == 0 || len(parts) != all {
		t.Fatalf("%d of the %d JSON blocks name a golden case", len(parts), all)
	}
	for _, part := range parts {
		name := string(part[1])
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name), "want.json"))
			if err != nil {
				t.Fatal(err)
			}
			if whole, excerpt := compacted(t, body), compacted(t, []byte("["+string(part[2])+"]")); !bytes.Contains(whole, excerpt[1:len(excerpt)-1]) {
				t.Errorf("docs/proxy.md shows\n%s\nwhich does not stand in\n%s", part[2], body)
			}
		})
	}
}

// compacted is JSON without white space.
func compacted(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
