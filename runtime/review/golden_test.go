// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/review"
)

var update = flag.Bool("update", false, "write the responses of testdata anew")

// eachGolden calls do for each folder of testdata.
func eachGolden(t *testing.T, do func(t *testing.T, folder string, request []byte)) {
	files, err := filepath.Glob("testdata/*/*/request.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d requests, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(filepath.Dir(file), "testdata/"), func(t *testing.T) {
			request, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			do(t, filepath.Dir(file), filled(request))
		})
	}
}

func read(t *testing.T, data []byte) *review.Request {
	t.Helper()
	req, err := review.ReadEnvelope(bytes.Clone(data))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestReviewsAreAnsweredAsInTheFolders(t *testing.T) {
	eachGolden(t, func(t *testing.T, folder string, request []byte) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, written(t, judged(t, read(t, request))), "", " "); err != nil {
			t.Fatal(err)
		}
		got := indented.Bytes()
		file := filepath.Join(folder, "response.json")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got %s", got)
		}
	})
}

func TestPatchesChangeWhatIsLeftOutAndNothingElse(t *testing.T) {
	degraded := 0
	eachGolden(t, func(t *testing.T, _ string, request []byte) {
		req := read(t, request)
		body := bytes.Clone(req.Body)
		req.PatchTypes = []review.PatchType{review.JSONPatch}
		byPatch := judged(t, req)
		req.PatchTypes = []review.PatchType{"MergePatch", review.ByteRanges, review.JSONPatch}
		byBytes := judged(t, req)
		if !reflect.DeepEqual(byPatch.Decisions, byBytes.Decisions) {
			t.Fatalf("the decisions differ: %+v, %+v", byPatch.Decisions, byBytes.Decisions)
		}
		left := 0
		for _, d := range byPatch.Decisions {
			if d.Outcome == preflight.Degraded {
				left++
			}
		}
		if !byPatch.Allowed || left == 0 {
			if byPatch.Patch != nil || byBytes.Patch != nil || byPatch.PatchType != "" || byPatch.Degraded() {
				t.Errorf("there is a patch: %s, %s", byPatch.Patch, byBytes.Patch)
			}
			return
		}
		degraded++
		if byPatch.PatchType != review.JSONPatch || byBytes.PatchType != review.ByteRanges || !byPatch.Degraded() {
			t.Errorf("patches are %q and %q", byPatch.PatchType, byBytes.PatchType)
		}
		want := replaced(t, body, byPatch.Decisions)
		if got := exact(t, patched(t, body, byPatch.Patch)); !reflect.DeepEqual(got, want) {
			t.Errorf("patched by RFC 6902:\n%v; want\n%v", got, want)
		}
		edited := edit(t, body, byBytes.Patch, left)
		if got := exact(t, edited); !reflect.DeepEqual(got, want) {
			t.Errorf("patched by bytes:\n%v; want\n%v", got, want)
		}
		for _, patch := range []json.RawMessage{byPatch.Patch, byBytes.Patch} {
			if bytes.Contains(patch, []byte("iVBOR")) || bytes.Contains(patch, []byte("sha256")) {
				t.Errorf("image data in %s", patch)
			}
		}
	})
	if degraded < 7 {
		t.Errorf("%d folders leave something out", degraded)
	}
}

func patched(t *testing.T, body []byte, patch json.RawMessage) []byte {
	t.Helper()
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%v in %s", err, patch)
	}
	out, err := p.Apply(body)
	if err != nil {
		t.Fatalf("%v of %s", err, patch)
	}
	return out
}

// edit applies edits one after the other, and holds every byte beside them
// against the body's.
func edit(t *testing.T, body []byte, patch json.RawMessage, want int) []byte {
	t.Helper()
	var edits []review.Edit
	if err := json.Unmarshal(patch, &edits); err != nil || len(edits) != want {
		t.Fatalf("%d edits, %v", len(edits), err)
	}
	out := bytes.Clone(body)
	for i, e := range edits {
		if i > 0 && e.Offset+e.Length > edits[i-1].Offset {
			t.Fatalf("edits overlap or go forward: %+v", edits)
		}
		out = slices.Replace(out, e.Offset, e.Offset+e.Length, []byte(e.Text)...)
	}
	rest, at := out, 0
	for _, e := range slices.Backward(edits) {
		kept := body[at:e.Offset]
		if !bytes.HasPrefix(rest, append(bytes.Clone(kept), e.Text...)) {
			t.Fatalf("bytes before %d changed", e.Offset)
		}
		rest, at = rest[len(kept)+len(e.Text):], e.Offset+e.Length
	}
	if !bytes.Equal(rest, body[at:]) {
		t.Fatal("bytes at the end changed")
	}
	return out
}

// replaced is the body with each part that is left out replaced in a tree of Go
// values, by nothing that the product computes but ID and reason.
func replaced(t *testing.T, body []byte, decisions []preflight.Decision) any {
	t.Helper()
	root := exact(t, body)
	for _, d := range decisions {
		if d.Outcome != preflight.Degraded {
			continue
		}
		steps := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(d.ID), ".")
		at := root
		for _, step := range steps[:len(steps)-1] {
			at = child(at, step)
		}
		last, err := strconv.Atoi(steps[len(steps)-1])
		if err != nil {
			t.Fatalf("%s is not in a list", d.ID)
		}
		at.([]any)[last] = noteFor(at.([]any)[last].(map[string]any), d)
	}
	return root
}

func child(at any, step string) any {
	if n, err := strconv.Atoi(step); err == nil {
		return at.([]any)[n]
	}
	return at.(map[string]any)[step]
}

// noteFor is the part that stands in another's place.
func noteFor(part map[string]any, d preflight.Decision) map[string]any {
	note := map[string]any{"text": preflight.Note(d.Reason)}
	switch {
	case strings.Contains(d.ID, "functionResponse"):
		data := part["inlineData"].(map[string]any)
		encoded, _ := json.Marshal([]byte(preflight.Note(d.Reason)))
		return map[string]any{"inlineData": map[string]any{
			"mimeType": "text/plain", "displayName": data["displayName"], "data": strings.Trim(string(encoded), `"`),
		}}
	case strings.HasPrefix(d.ID, "contents"):
		return note
	case part["type"] == "input_image":
		note["type"] = "input_text"
	default:
		note["type"] = "text"
	}
	if mark, ok := part["cache_control"]; ok {
		note["cache_control"] = mark
	}
	return note
}

// A patch of a review in the facts form is for the body that has the data.
func TestAPatchOfFactsFitsTheBodyWithTheData(t *testing.T) {
	fits := 0
	eachGolden(t, func(t *testing.T, folder string, request []byte) {
		if filepath.Base(folder) != "facts" {
			return
		}
		fits++
		response := judged(t, read(t, request))
		req := read(t, withData(t, request))
		want := replaced(t, req.Body, response.Decisions)
		if got := exact(t, patched(t, req.Body, response.Patch)); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v; want %v", got, want)
		}
	})
	if fits != 2 {
		t.Errorf("%d folders", fits)
	}
}

// withData puts data in the place of facts, as each dialect has it.
func withData(t *testing.T, request []byte) []byte {
	t.Helper()
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for name, value := range v {
				facts, ok := value.(map[string]any)
				switch {
				case !ok || facts["sha256"] == nil:
					v[name] = walk(value)
				case name == "url":
					v[name] = "data:image/png;base64,AAAA"
				default:
					v[name] = map[string]any{"mimeType": "image/png", "data": "AAAA"}
				}
			}
		}
		return v
	}
	out, err := json.Marshal(walk(exact(t, request)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A patch that was made for one body does not change another: its guards fail.
func TestAPatchIsRefusedByABodyThatHasSomethingElseThere(t *testing.T) {
	others := 0
	eachGolden(t, func(t *testing.T, _ string, request []byte) {
		req := read(t, request)
		req.PatchTypes = nil
		response := judged(t, req)
		if !response.Degraded() {
			return
		}
		others++
		other := exact(t, req.Body).(map[string]any)
		for _, d := range response.Decisions {
			if d.Outcome != preflight.Degraded {
				continue
			}
			steps := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(d.ID), ".")
			var at any = other
			for _, step := range steps[:len(steps)-1] {
				at = child(at, step)
			}
			i, _ := strconv.Atoi(steps[len(steps)-1])
			at.([]any)[i] = map[string]any{"type": "words", "text": "another"}
		}
		body, err := json.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		p, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.Apply(body); err == nil {
			t.Errorf("%s was applied: %s", response.Patch, out)
		}
	})
	if others < 7 {
		t.Errorf("%d folders leave something out", others)
	}
}
