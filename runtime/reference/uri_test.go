// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/reference"
)

func TestParseURI(t *testing.T) {
	const id = "vis_0123456789abcdef"
	for name, tc := range map[string]struct {
		path      string
		id        string
		isURI, ok bool
	}{
		"a reference":                     {"vision://" + id, id, true, true},
		"one with white space around":     {" vision://" + id + "\n", id, true, true},
		"one with the scheme in capitals": {"Vision://" + id, id, true, true},
		"one with the id in capitals":     {"vision://VIS_0123456789ABCDEF", "", true, false},
		"one too short":                   {"vision://" + id[:19], "", true, false},
		"one too long":                    {"vision://" + id + "0", "", true, false},
		"one with more after it":          {"vision://" + id + "/x", "", true, false},
		"one that climbs":                 {"vision://../../etc/x", "", true, false},
		"one with another prefix":         {"vision://viz_0123456789abcdef", "", true, false},
		"one that is no hexadecimal":      {"vision://vis_0123456789abcdeg", "", true, false},
		"one without an id":               {"vision://", "", true, false},
		"a bare id is a file's name":      {id, "", false, false},
		"a scheme with one slash":         {"vision:/" + id, "", false, false},
		"another scheme":                  {"file://" + id, "", false, false},
		"a file":                          {"/workspace/vision://" + id, "", false, false},
		"nothing":                         {"", "", false, false},
	} {
		if id, isURI, ok := reference.ParseURI(tc.path); id != tc.id || isURI != tc.isURI || ok != tc.ok {
			t.Errorf("%s: %q, %v, %v", name, id, isURI, ok)
		}
	}
}

func FuzzParseURI(f *testing.F) {
	for _, path := range []string{"vision://vis_0123456789abcdef", "vision://", "VISION://vis_0123456789ABCDEF", "/a.png", "", " vi\u017fion://vis_0"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		id, isURI, ok := reference.ParseURI(path)
		switch {
		case ok && (!isURI || !strings.EqualFold(strings.TrimSpace(path)[:9], "vision://") || !strings.HasSuffix(strings.TrimSpace(path), id)):
			t.Errorf("%q names %q", path, id)
		case ok != (id != ""):
			t.Errorf("%q: %q, %v", path, id, ok)
		case ok:
			if again, isURI, ok := reference.ParseURI(reference.URI(id)); again != id || !isURI || !ok {
				t.Errorf("%q does not come back: %q", id, again)
			}
		}
	})
}

// FuzzDecodeRecord gives any bytes as a record: what is taken names the image
// that it is kept for, and is written again as the same.
func FuzzDecodeRecord(f *testing.F) {
	ref := image("/workspace/a.png", "a")
	for _, kept := range []reference.Kept{
		{Reference: ref, URI: reference.URI(ref.ID), CreatedAt: time.Unix(1, 0).UTC()},
		{Reference: image(reference.URI(ref.ID), "a"), URI: reference.URI(ref.ID), Uploaded: true},
		{Reference: ref, URI: "vision://other"},
		{URI: reference.URI(ref.ID)},
	} {
		data, err := json.Marshal(kept)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(ref.ID, data)
		f.Add("vis_0", data)
	}
	f.Add(ref.ID, []byte(`{"visual_reference":{"id":"`+ref.ID+`"},"ambiguous":true}`))
	f.Fuzz(func(t *testing.T, id string, data []byte) {
		kept, again, ok := reference.DecodeRecord(id, data)
		if !ok {
			return
		}
		if _, _, named := reference.ParseURI(kept.URI); !named || kept.Reference.ID != id || !strings.HasPrefix(id, "vis_"+kept.Reference.SHA256[:16]) {
			t.Errorf("%s is taken for the record of %q", data, id)
		}
		if _, third, ok := reference.DecodeRecord(id, again); !ok || !bytes.Equal(again, third) {
			t.Errorf("%s becomes %s, and then %s", data, again, third)
		}
	})
}
