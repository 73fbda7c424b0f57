// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lower

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden lowers each testdata/*/source.json into every dialect, and the
// schema that is sent in truth, and compares with <dialect>.json, or with
// <dialect>.error where it cannot be.
func TestGolden(t *testing.T) {
	folders, err := filepath.Glob("testdata/*")
	if err != nil || len(folders) < 10 {
		t.Fatalf("%d folders, %v", len(folders), err)
	}
	for _, folder := range folders {
		if filepath.Base(folder) == "fuzz" {
			continue
		}
		t.Run(filepath.Base(folder), func(t *testing.T) {
			fresh := map[string]bool{"source.json": true}
			source := observation.ReplySchema()
			if filepath.Base(folder) != "reply_schema" {
				if source, err = os.ReadFile(filepath.Join(folder, "source.json")); err != nil {
					t.Fatal(err)
				}
			}
			for to := range dialects {
				out, fault := requireLowered(t, source, to)
				name, got := to.String()+".error", []byte(nil)
				if fault != nil {
					got = []byte(fault.Error())
				} else {
					name, got = to.String()+".json", indented(t, out)
				}
				fresh[name] = true
				golden(t, filepath.Join(folder, name), append(got, '\n'))
			}
			entries, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if !fresh[entry.Name()] {
					t.Errorf("%s is stale", entry.Name())
				}
			}
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func indented(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTheReplySchemaIsSentToOpenAIAsItIs(t *testing.T) {
	out, err := Lower(observation.ReplySchema(), OpenAIStrict)
	if err != nil || !bytes.Equal(out, observation.ReplySchema()) {
		t.Errorf("%v, and lowered it is\n%s", err, out)
	}
}
