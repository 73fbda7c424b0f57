// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
)

// vector is one published example.
type vector struct {
	Vendor, Model, ID  string
	Width, Height      int
	Detail             string
	Tokens             *int64
	Source, Confidence string
	Note               string
	Patches            int64
	Resized            *[2]int64
	Grid               *[2]int64
	Reject, Approx     bool
	Superseded         bool
	IncludesText       bool `json:"includes_text"`
}

// key names a vector in the tables below.
func (v vector) key() string {
	return fmt.Sprintf("%s %dx%d %s", v.Model, v.Width, v.Height, v.Detail)
}

// byFormula are the rows that are about a formula and not about a model that one
// could name: the family, or the rule with other numbers, that they exercise.
var byFormula = map[string]struct{ family, rule, parameters, detail string }{
	"gpt-4.1-mini (1,536-patch edition of docs)":             {rule: "patches", parameters: `{"multiplier":1.62,"details":{"high":{"maxSide":2048,"maxPatches":1536}},"auto":"high","rejectAbovePatches":30000}`},
	"gpt-image-1 (input, low fidelity)":                      {family: "gpt-image-1"},
	"unspecified Claude":                                     {family: "anthropic"},
	"Gemini 3 PDF page":                                      {family: "gemini-3"},
	"Gemini on GDC air-gapped":                               {family: "gemini-gdc"},
	"mistral-common test config max_image_size=128 patch=16": {rule: "rows", parameters: `{"cell":16,"maxSide":128}`},
	"Qwen2-VL (max 1,003,520 px)":                            {rule: "smart", parameters: `{"factor":28,"minPixels":3136,"maxPixels":1003520,"maxAspect":200}`},
	"Qwen2-VL (max 512*784 px)":                              {rule: "smart", parameters: `{"factor":28,"minPixels":3136,"maxPixels":401408,"maxAspect":200}`},
	"Qwen2-VL on SiliconFlow":                                {family: "qwen-siliconflow"},
	"deepseek-v4-flash-vision-exp (retired)":                 {family: "deepseek-v4-vision-exp"},
	"DeepSeek-OCR Tiny":                                      {family: "deepseek-ocr", detail: "tiny"},
	"DeepSeek-OCR Small":                                     {family: "deepseek-ocr", detail: "small"},
	"DeepSeek-OCR Base":                                      {family: "deepseek-ocr", detail: "base"},
	"DeepSeek-OCR Large":                                     {family: "deepseek-ocr", detail: "large"},
	"InternVL 2/2.5/3 max":                                   {family: "internvl"},
}

// byNote are the approximate rows whose note, and not whose number, says what a
// careful estimate is.
var byNote = map[string]struct {
	tokens int64
	why    string
}{
	"gpt-4.1-mini 4000x1474 auto":          {2489, "the formula's ceil; documents allow 1 more or less"},
	"pixtral-12b / pixtral-large 720x512 ": {1472, "45 columns x 32 rows with their row ends; documents leave those out"},
	"pixtral max 1024x1024 ":               {4160, "64 row ends besides"},
	"grok-4.x 0x0 ":                        {1792, "256 is the published minimum; of an unknown size the maximum is charged"},
}

// resizedByCode are rows whose printed size is a slip of the page.
var resizedByCode = map[string][2]int64{
	"standard tier (Haiku 4.5, Sonnet 4.6, Opus 4.6 and older) 2000x1500 ": {1270, 952},
}

// excluded are the rows that are not checked for equality, and why.
var excluded = map[string]string{
	"pre-2026 docs rule w*h/750 200x200 ":   "superseded by cells of 28 px",
	"pre-2026 docs rule w*h/750 1092x1092 ": "superseded by cells of 28 px",
	"gemini-3.1-flash-lite 400x300 ":        "the number includes the prompt's text",
	"gemini-3.1-flash-lite 9000x9000 ":      "the number includes the prompt's text",
}

func published(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/published_examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Origin  string
		Vectors []vector
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Vectors
}

// family is the family that a vector is about: found by the name that a user
// would write, unless the row is about a formula.
func (v vector) family(t *testing.T) (Family, string) {
	t.Helper()
	if v.ID != "" {
		f := Find(v.ID, "")
		if f.Match().How == ByDefault {
			t.Fatalf("%s: the model %q has no family", v.key(), v.ID)
		}
		return f, v.Detail
	}
	formula, ok := byFormula[v.Model]
	if !ok {
		t.Fatalf("%s: the row has no model and is not in the table of formulas", v.key())
	}
	detail := v.Detail
	if formula.detail != "" {
		detail = formula.detail
	}
	if formula.rule == "" {
		f := Find("", formula.family)
		if f.Match().How != ByDeclaration {
			t.Fatalf("%s: no family %q", v.key(), formula.family)
		}
		return f, detail
	}
	return Family{entry: custom(t, formula.rule, formula.parameters)}, detail
}

// custom is a family with other numbers.
func custom(t *testing.T, rule, parameters string) *entry {
	t.Helper()
	r, err := newRule(rule, []byte(parameters))
	if err != nil {
		t.Fatal(err)
	}
	return &entry{Name: "custom", Sources: []string{"a test"}, Confidence: Published, rule: r}
}

func TestEveryPublishedExampleIsMatchedOrAccountedFor(t *testing.T) {
	counts := map[string]int{}
	used := map[string]bool{}
	for _, v := range published(t) {
		if why, ok := excluded[v.key()]; ok {
			if !v.Superseded && !v.IncludesText {
				t.Errorf("%s: excluded (%s) but not flagged", v.key(), why)
			}
			used[v.key()] = true
			counts["excluded"]++
			continue
		}
		counts[v.check(t, used)]++
	}
	want := map[string]int{"exact": 123, "approx": 18, "reject": 2, "excluded": 4}
	for kind, n := range want {
		if counts[kind] != n {
			t.Errorf("%d rows are %s, want %d (all: %v)", counts[kind], kind, n, counts)
		}
	}
	for key := range byNote {
		if !used[key] {
			t.Errorf("the table of notes has %q, which no row is", key)
		}
	}
	for key := range excluded {
		if !used[key] {
			t.Errorf("the table of exclusions has %q, which no row is", key)
		}
	}
}

// check compares one row and says which kind it is.
func (v vector) check(t *testing.T, used map[string]bool) string {
	t.Helper()
	f, detail := v.family(t)
	got, err := f.Estimate(Image{Width: v.Width, Height: v.Height, Detail: detail})
	if v.Reject {
		var no *RejectError
		if !errors.As(err, &no) {
			t.Errorf("%s (%s): accepted with %d tokens, want a refusal", v.key(), f.Name(), got.Tokens)
		} else if no.Actual != v.Patches || no.Value != 30000 || no.Source == "" {
			t.Errorf("%s: refused with %+v, want %d patches above 30000", v.key(), no, v.Patches)
		}
		return "reject"
	}
	if err != nil || v.Tokens == nil {
		t.Errorf("%s (%s): refused: %v", v.key(), f.Name(), err)
		return "wrong"
	}
	want, kind := *v.Tokens, "exact"
	if v.Approx {
		kind = "approx"
		if note, ok := byNote[v.key()]; ok {
			used[v.key()] = true
			want = note.tokens
		}
	}
	if got.Tokens != want {
		t.Errorf("%s (%s): %d tokens, want %d: %s; %s", v.key(), f.Name(), got.Tokens, want, got.Basis(), v.Note)
	}
	if v.Patches != 0 && got.count.parts != v.Patches {
		t.Errorf("%s: %d patches, want %d", v.key(), got.count.parts, v.Patches)
	}
	if v.Grid != nil && *v.Grid != [2]int64{got.count.cols, got.count.rows} {
		t.Errorf("%s: grid %dx%d, want %v", v.key(), got.count.cols, got.count.rows, *v.Grid)
	}
	if v.Resized != nil {
		size := *v.Resized
		if code, ok := resizedByCode[v.key()]; ok {
			size = code
		}
		if size != [2]int64{got.Resized.Width, got.Resized.Height} {
			t.Errorf("%s: resized to %s, want %v", v.key(), got.Resized, size)
		}
	}
	return kind
}
