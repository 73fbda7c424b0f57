// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/tesseract"
)

var update = flag.Bool("update", false, "write the golden files anew")

var engine = Engine{Version: "5.3.0", Languages: "eng"}

func word(text string, confidence float64) tesseract.Word {
	return tesseract.Word{Text: text, Box: tesseract.Box{X: 1, Y: 2, Width: 30, Height: 12}, Confidence: confidence}
}

func block(lines ...[]tesseract.Word) tesseract.Block {
	b := tesseract.Block{Box: tesseract.Box{X: 1, Y: 2, Width: 90, Height: 40}}
	for i, words := range lines {
		b.Lines = append(b.Lines, tesseract.Line{Box: tesseract.Box{X: 1, Y: 2 + 14*i, Width: 90, Height: 12}, Words: words, Paragraph: 1})
	}
	return b
}

var (
	sign = tesseract.Page{Width: 100, Height: 50, Textless: 1, Blocks: []tesseract.Block{
		block([]tesseract.Word{word("Disk", 0.96), word("full", 0.94)}, []tesseract.Word{word("on", 0.9), word("node-7", 0.4)}),
		block([]tesseract.Word{word("~|", 0.2)}),
	}}
	empty = tesseract.Page{Width: 10, Height: 10}
)

// TestCompose compares whole objects with golden files, one for each case and none beside.
func TestCompose(t *testing.T) {
	cases := map[string]Observation{
		"one_image":      Compose(engine, []tesseract.Page{sign}, All),
		"no_text":        Compose(engine, []tesseract.Page{empty}, All),
		"several_images": Compose(engine, []tesseract.Page{sign, empty, sign}, All),
		"two_lines_kept": Compose(engine, []tesseract.Page{sign}, 2),
	}
	for name, observation := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(observation, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (go test -update writes it)", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("observation (-want +got):\n%s", diff)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := cases[strings.TrimSuffix(filepath.Base(file), ".json")]; !ok {
			t.Errorf("%s belongs to no case", file)
		}
	}
}

func TestKeysAreTheObservationsMembers(t *testing.T) {
	data, err := json.Marshal(Compose(engine, []tesseract.Page{empty}, All))
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	for _, key := range Keys() {
		if value, ok := members[key]; !ok || value == nil {
			t.Errorf("%s is missing or null", key)
		}
	}
	if len(members) != 9 {
		t.Errorf("there are %d members", len(members))
	}
}

func TestDoubtsAreBounded(t *testing.T) {
	var lines [][]tesseract.Word
	for range 50 {
		lines = append(lines, []tesseract.Word{word(strings.Repeat("w", 500), 0.1)})
	}
	page := tesseract.Page{Blocks: []tesseract.Block{block(lines...)}}
	got := Compose(engine, []tesseract.Page{page}, All)
	if n := len(got.Uncertainties); n != 22 {
		t.Errorf("%d uncertainties", n)
	}
	if last := got.Uncertainties[len(got.Uncertainties)-1]; last != "30 more lines or words are uncertain; see the confidences." {
		t.Errorf("the last one is %q", last)
	}
	if n := len([]rune(got.Summary)); n > 500 {
		t.Errorf("the summary has %d characters", n)
	}
	if len(got.OCR[0].Text) != 500 {
		t.Error("a line's own text was cut")
	}
}

func TestPlainText(t *testing.T) {
	if got, want := PlainText([]tesseract.Page{sign}), "Disk full\non node-7\n\n~|"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want := "[Image 1 of 2]\n[No text was found in the image.]\n\n[Image 2 of 2]\nDisk full\non node-7\n\n~|"
	if got := PlainText([]tesseract.Page{empty, sign}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func conformed(t *testing.T, schema string) (map[string]any, error) {
	t.Helper()
	s, err := ReadSchema([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	data, err := Compose(engine, []tesseract.Page{sign}, All).JSON(s)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}

func TestAnObservationObeysTheCallersSchema(t *testing.T) {
	got, err := conformed(t, `{
		"type":"object","additionalProperties":false,"required":["type","ocr","elements","note","tags","hint"],
		"$defs":{"line":{"type":"object","additionalProperties":false,"required":["text","bbox","language"],"properties":{
			"text":{"type":"string"},"language":{"type":["string","null"]},
			"bbox":{"anyOf":[{"type":"null"},{"type":"object","additionalProperties":false,"properties":{"x":{"type":"number"},"y":{"type":"number"}}}]}}}},
		"properties":{"type":{"type":"string"},"note":{"type":"string"},"tags":{"type":"array"},"hint":{"anyOf":[{"type":"string"},{"type":"null"}]},
			"ocr":{"type":"array","items":{"$ref":"#/$defs/line"}},
			"elements":{"type":"array","items":{"type":"object"}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, 0, len(got))
	for key := range got {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if diff := cmp.Diff([]string{"elements", "hint", "note", "ocr", "tags", "type"}, keys); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if got["note"] != "" || got["hint"] != nil {
		t.Errorf("unknown members are %q and %v", got["note"], got["hint"])
	}
	want := map[string]any{"text": "Disk full", "language": nil, "bbox": map[string]any{"x": 1.0, "y": 2.0}}
	if diff := cmp.Diff(want, got["ocr"].([]any)[0]); diff != "" {
		t.Errorf("first line (-want +got):\n%s", diff)
	}
	if element := got["elements"].([]any)[0].(map[string]any); element["id"] != "block-1" || element["role"] != "text_block" {
		t.Errorf("an open object lost members: %v", element)
	}
}

func TestASchemaThatAsksForTheUnknowableIsRefused(t *testing.T) {
	_, err := conformed(t, `{"properties":{"elements":{"items":{"required":["colour"],"properties":{"colour":{"enum":["red"],"type":"string"}}}}}}`)
	got, ok := errors.AsType[*SchemaError](err)
	if !ok || got.Path != "elements[].colour" {
		t.Errorf("got %v", err)
	}
}

func TestAlternativesThatReferToEachOtherEnd(t *testing.T) {
	many := strings.Repeat(`{"$ref":"#/$defs/a"},`, 9) + `{"$ref":"#/$defs/a"}`
	_, err := conformed(t, `{"properties":{"colour":{"$ref":"#/$defs/a"}},"required":["colour"],"$defs":{"a":{"type":"number","anyOf":[`+many+`]}}}`)
	if got, ok := errors.AsType[*SchemaError](err); !ok || got.Path != "colour" {
		t.Errorf("got %v", err)
	}
	got, err := conformed(t, `{"properties":{"colour":{"$ref":"#/$defs/a"}},"required":["colour"],"$defs":{"a":{"anyOf":[`+many+`,{"type":"null"}]}}}`)
	if value, there := got["colour"]; err != nil || !there || value != nil {
		t.Errorf("got %v, %v", value, err)
	}
}

func TestASchemaIsBounded(t *testing.T) {
	schema := `{"$ref":"#` + strings.Repeat("/", maxSchemaBytes) + `"}`
	if _, err := ReadSchema([]byte(schema)); err == nil {
		t.Error("a schema of more than 64 KiB is read")
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"properties":{"z":{"$ref":"#/a"}},"required":["z"],"a":{"type":"number","anyOf":[{"$ref":"#/a"},{"$ref":"#/a"},{"$ref":"#/a"}]}}`))
	f.Add([]byte(`{"type":"object","properties":{"ocr":{"items":{"$ref":"#"}}},"required":["x"]}`))
	f.Add([]byte(`{"$ref":"#"}`))
	f.Add([]byte(`{"anyOf":[{"anyOf":[{"$ref":"#/anyOf"}]},{"type":"null"}],"$defs":{"a":{"$ref":"#/$defs/a"}}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		s, err := ReadSchema(schema)
		if err != nil {
			return
		}
		s.Describes()
		data, err := Compose(engine, []tesseract.Page{sign}, All).JSON(s)
		if err != nil {
			if _, ok := errors.AsType[*SchemaError](err); !ok {
				t.Fatalf("the error %v is of another type", err)
			}
			return
		}
		if !json.Valid(data) || !bytes.HasPrefix(data, []byte("{")) {
			t.Fatalf("wrote %q", data)
		}
	})
}
