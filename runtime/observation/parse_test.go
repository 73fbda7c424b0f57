// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	testRef = NewReference("/ws/a.png", strings.Repeat("0123456789abcdef", 4), "image/png", 1234, 640, 480)
	testBy  = GeneratedBy{Mode: ModeAdapter, Provider: "openai", Model: "gpt-6", SelectionReason: ReasonAuto}
)

// minimal is the least that is an observation; more is put before its brace.
func minimal(more string) string {
	return `{"type":"visual_observation","schema":"visual_observation.v1","summary":"A sign.","uncertainties":[]` + more + `}`
}

// parsed is what minimal means, changed by edit.
func parsed(edit func(*Observation)) *Observation {
	o := &Observation{
		Type: "visual_observation", Schema: "visual_observation.v1", VisualReferenceID: "vis_0123456789abcdef",
		Prompt: "read it", GeneratedBy: testBy, Notice: Notice, Summary: "A sign.", Uncertainties: []string{},
	}
	if edit != nil {
		edit(o)
	}
	return o
}

func reasonOf(err error) ParseReason {
	if e, ok := errors.AsType[*ParseError](err); ok {
		return e.Reason
	}
	return ""
}

type entry = map[string]any

func TestParse(t *testing.T) {
	plain := parsed(nil)
	tests := map[string]struct {
		reply string
		want  *Observation
	}{
		"an object alone":                  {minimal(""), plain},
		"white space around it":            {"\n\t " + minimal("") + "\n", plain},
		"a json fence":                     {"```json\n" + minimal("") + "\n```", plain},
		"a plain fence":                    {"```\n" + minimal("") + "\n```", plain},
		"a fence that is not closed":       {"```json\n" + minimal(""), plain},
		"prose before and after":           {"Sure! Here it is:\n" + minimal("") + "\nAnything {else}?", plain},
		"braces in the prose before":       {"The set {a, b} and {} and {\"k\": 1}: " + minimal(""), plain},
		"many openings before it":          {strings.Repeat("{a ", maxAttempts-1) + minimal(""), plain},
		"doubled braces of a template":     {"{" + minimal("") + "}", plain},
		"a byte order mark":                {"\ufeff" + minimal(""), plain},
		"an array around it":               {"[" + minimal("") + "]", plain},
		"the first of two":                 {minimal("") + strings.Replace(minimal(""), "A sign.", "Another.", 1), plain},
		"another object before it":         {`{"type":"thought","summary":"hm"}` + minimal(""), plain},
		"a foreign id and prompt":          {minimal(`,"visual_reference_id":"vis_evil","prompt":"obey","generated_by":{"mode":"x"}`), plain},
		"keys that nobody knows":           {minimal(`,"mood":"fine"`), plain},
		"no uncertainties at all":          {strings.Replace(minimal(""), `,"uncertainties":[]`, "", 1), plain},
		"blanks around the summary":        {strings.Replace(minimal(""), "A sign.", `  A sign.\n `, 1), plain},
		"braces and quotes within strings": {"x " + strings.Replace(minimal(""), "A sign.", `}{ \"}\" \\`, 1) + " {y}", parsed(func(o *Observation) { o.Summary = `}{ "}" \` })},
		"lists as they should be": {
			minimal(`,"ocr":[{"text":"EXIT","bbox":{"x":1,"y":2.5,"width":3,"height":4},"confidence":0.9}],"relations":[{"type":"above","a":"e1","b":"e2"}]`),
			parsed(func(o *Observation) {
				o.OCR = []map[string]any{{"text": "EXIT", "bbox": entry{"x": 1.0, "y": 2.5, "width": 3.0, "height": 4.0}, "confidence": 0.9}}
				o.Relations = []map[string]any{{"type": "above", "a": "e1", "b": "e2"}}
			}),
		},
		"lists of other shapes": {
			minimal(`,"ocr":" HOLON ","elements":{"id":"e1"},"relations":"a above b","issues":null,"external_sources":42`),
			parsed(func(o *Observation) {
				o.OCR = []map[string]any{{"text": "HOLON"}}
				o.Elements = []map[string]any{{"id": "e1"}}
				o.Relations = []map[string]any{{"description": "a above b"}}
			}),
		},
		"blank, boolean and empty lists": {minimal(`,"ocr":"  ","elements":true,"relations":[],"issues":{},"external_sources":[[1],null,7,""]`), plain},
		"strings within lists": {
			minimal(`,"ocr":["one",{"text":"two"},null," "],"issues":["cut off"]`),
			parsed(func(o *Observation) {
				o.OCR = []map[string]any{{"text": "one"}, {"text": "two"}}
				o.Issues = []map[string]any{{"description": "cut off"}}
			}),
		},
		"nulls of a strict schema": {
			minimal(`,"elements":[{"id":"e1","text":null,"bbox":null,"tags":["a",null]},{"id":null}]`),
			parsed(func(o *Observation) { o.Elements = []map[string]any{{"id": "e1", "tags": []any{"a"}}} }),
		},
		"uncertainties of other shapes": {
			minimal(`,"uncertainties":["blurred"," ",{"message":"dark"},{"text":"","description":" far "},{"n":1},3,null,{"summary":"small"}]`),
			parsed(func(o *Observation) { o.Uncertainties = []string{"blurred", "dark", "far", "small"} }),
		},
		"one uncertainty, not in a list": {minimal(`,"uncertainties":{"message":"dark"}`), parsed(func(o *Observation) { o.Uncertainties = []string{"dark"} })},
		"uncertainties null":             {minimal(`,"uncertainties":null`), plain},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.reply, testRef, "read it", testBy)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		reply string
		want  ParseReason
	}{
		"nothing":                               {"", EmptyReply},
		"white space":                           {" \n\t", EmptyReply},
		"text":                                  {"not json", NoJSON},
		"a number":                              {"42", NoJSON},
		"a list of numbers":                     {"[1, 2]", NoJSON},
		"an object that stops":                  {minimal("")[:60], IncompleteJSON},
		"an object that stops behind a part":    {minimal(`,"ocr":[{"type":"visual_observation","schema":"visual_observation.v1","summary":"x"},{"te`)[:190], IncompleteJSON},
		"an open brace":                         {"here: {", IncompleteJSON},
		"single quotes":                         {`{'type': 'visual_observation'}`, InvalidJSON},
		"a trailing comma":                      {minimal(`,`), InvalidJSON},
		"more openings than are tried":          {strings.Repeat("{a ", maxAttempts) + minimal(""), InvalidJSON},
		"prose in braces":                       {"I see {nothing}", InvalidJSON},
		"a number out of range":                 {minimal(`,"ocr":[{"confidence":1e999}]`), InvalidJSON},
		"no type":                               {`{"schema":"visual_observation.v1","summary":"x"}`, WrongType},
		"another type":                          {strings.Replace(minimal(""), "visual_observation\"", "visual\"", 1), WrongType},
		"a type that is no string":              {strings.Replace(minimal(""), `"visual_observation"`, `["visual_observation"]`, 1), WrongType},
		"a later schema":                        {strings.Replace(minimal(""), ".v1", ".v2", 1), WrongSchema},
		"no schema":                             {`{"type":"visual_observation","summary":"x"}`, WrongSchema},
		"a blank summary":                       {strings.Replace(minimal(""), "A sign.", ` \n`, 1), BlankSummary},
		"no summary":                            {`{"type":"visual_observation","schema":"visual_observation.v1"}`, BlankSummary},
		"a summary that is a list":              {strings.Replace(minimal(""), `"A sign."`, `["A sign."]`, 1), BlankSummary},
		"a reply beyond the bound":              {minimal("") + strings.Repeat(" ", MaxReply), ReplyTooLarge},
		"an object within another is no answer": {`{"result":` + minimal("") + `}`, WrongType},
	}
	seen := map[ParseReason]bool{}
	for name, tc := range tests {
		seen[tc.want] = true
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.reply, testRef, "read it", testBy)
			if got != nil || reasonOf(err) != tc.want {
				t.Errorf("Parse = %+v, %v, want reason %s", got, err, tc.want)
			}
		})
	}
	for reason, text := range parseProblems {
		if !seen[reason] || text == "" || !strings.Contains((&ParseError{reason}).Error(), text) {
			t.Errorf("reason %s: no case, or no text", reason)
		}
	}
}

// many repeats an entry n times as a JSON list.
func many(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func TestParseBoundsWhatItKeeps(t *testing.T) {
	parse := func(t *testing.T, reply string) *Observation {
		t.Helper()
		o, err := Parse(reply, testRef, "read it", testBy)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	noted := func(t *testing.T, o *Observation, notes ...string) {
		t.Helper()
		if diff := cmp.Diff(notes, o.Uncertainties); diff != "" {
			t.Errorf("uncertainties: %s", diff)
		}
	}
	t.Run("as many entries as allowed are kept without a note", func(t *testing.T) {
		o := parse(t, minimal(`,"ocr":`+many(maxEntries, `"x"`)))
		if len(o.OCR) != maxEntries || len(o.Uncertainties) != 0 {
			t.Errorf("%d entries, %q", len(o.OCR), o.Uncertainties)
		}
	})
	t.Run("further entries are left out and counted", func(t *testing.T) {
		o := parse(t, minimal(`,"ocr":`+many(maxEntries+3, `"x"`)))
		if len(o.OCR) != maxEntries {
			t.Errorf("%d entries", len(o.OCR))
		}
		noted(t, o, "ocr: left out 3 values of an over-long reply")
	})
	t.Run("a long summary is cut at a rune", func(t *testing.T) {
		o := parse(t, strings.Replace(minimal(""), "A sign.", "a"+strings.Repeat("é", maxSummary), 1))
		if len(o.Summary) > maxSummary || len(o.Summary) < maxSummary-4 || !strings.HasSuffix(o.Summary, "é…") {
			t.Errorf("%d bytes ending in %q", len(o.Summary), o.Summary[len(o.Summary)-8:])
		}
		noted(t, o, "summary: cut 1 over-long texts")
	})
	t.Run("a long text in an entry is cut", func(t *testing.T) {
		o := parse(t, minimal(`,"issues":["`+strings.Repeat("x", maxText+1)+`","`+strings.Repeat("y", maxText)+`"]`))
		if first, _ := o.Issues[0]["description"].(string); len(first) != maxText {
			t.Errorf("%d bytes", len(first))
		}
		noted(t, o, "issues: cut 1 over-long texts")
	})
	t.Run("many keys are left out, the first by name stay", func(t *testing.T) {
		var keys strings.Builder
		for i := range maxKeys + 2 {
			fmt.Fprintf(&keys, `,"k%03d":%d`, i, i)
		}
		o := parse(t, minimal(`,"elements":{"a":1`+keys.String()+"}"))
		if len(o.Elements[0]) != maxKeys || o.Elements[0]["a"] == nil {
			t.Errorf("%d keys", len(o.Elements[0]))
		}
		noted(t, o, "elements: left out 3 values of an over-long reply")
	})
	t.Run("deep nesting is left out", func(t *testing.T) {
		o := parse(t, minimal(`,"elements":{"a":{"b":{"c":{"d":{"e":1}}}},"list":[[[[1]]]]}`))
		want := []map[string]any{{"a": entry{"b": entry{"c": entry{}}}, "list": []any{[]any{[]any{}}}}}
		if diff := cmp.Diff(want, o.Elements); diff != "" {
			t.Error(diff)
		}
		noted(t, o, "elements: left out 2 values of an over-long reply")
	})
	t.Run("many uncertainties are left out, the notes stay", func(t *testing.T) {
		o := parse(t, minimal(`,"uncertainties":`+many(maxUncertainties+5, `"dark"`)))
		if n := len(o.Uncertainties); n != maxUncertainties+1 || o.Uncertainties[n-1] != "uncertainties: left out 5 values of an over-long reply" {
			t.Errorf("%d, the last %q", n, o.Uncertainties[n-1])
		}
	})
}

func TestParseReadsWhatTheSchemaAsksFor(t *testing.T) {
	got, err := Parse(sample(t, ReplySchema()), testRef, "read it", testBy)
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]map[string]any{
		"ocr": got.OCR, "elements": got.Elements, "relations": got.Relations, "issues": got.Issues, "external_sources": got.ExternalSources,
	} {
		if len(list) != 1 {
			t.Errorf("%s: %v, want one entry", name, list)
		}
	}
	if len(got.Uncertainties) != 1 {
		t.Errorf("uncertainties: %q", got.Uncertainties)
	}
}
