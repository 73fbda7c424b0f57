// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/review"
)

// FuzzReview reviews bodies of every dialect under a policy that takes one image,
// and holds what the two kinds of patches make of a body against each other.
func FuzzReview(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*/request.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		request, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		req, err := review.ReadEnvelope(filled(request))
		if err != nil {
			f.Fatal(err)
		}
		d, _ := review.FromPath(req.Path)
		f.Add(slices.Index(message.Dialects(), d), req.Body)
	}
	doc := document()
	doc.Profiles[0].Limits.Request.MaxDistinctImages = 1
	granted := grants(doc)
	f.Fuzz(func(t *testing.T, dialect int, body []byte) {
		if dialect < 0 || dialect >= len(message.Dialects()) {
			return
		}
		judge := func(kind review.PatchType) *review.Response {
			response, err := review.Review(t.Context(), &review.Request{
				Dialect: message.Dialects()[dialect], PatchTypes: []review.PatchType{kind}, Body: body,
			}, granted)
			if err != nil {
				if reason, _ := reasonOf(err); reason != "BadFacts" {
					t.Fatal(err)
				}
				return nil
			}
			return response
		}
		first, second := judge(review.JSONPatch), judge(review.ByteRanges)
		if first == nil || !first.Degraded() || !utf8.Valid(body) {
			return
		}
		p, err := jsonpatch.DecodePatch(first.Patch)
		if err != nil {
			t.Fatalf("%v in %s", err, first.Patch)
		}
		byPatch, err := p.Apply(body)
		if err != nil {
			t.Fatalf("%v of %s", err, first.Patch)
		}
		var edits []review.Edit
		if err := json.Unmarshal(second.Patch, &edits); err != nil {
			t.Fatal(err)
		}
		byBytes := bytes.Clone(body)
		for _, e := range edits {
			byBytes = slices.Replace(byBytes, e.Offset, e.Offset+e.Length, []byte(e.Text)...)
		}
		if !reflect.DeepEqual(exact(t, byPatch), exact(t, byBytes)) {
			t.Fatalf("patched to\n%s\nand\n%s", byPatch, byBytes)
		}
	})
}
