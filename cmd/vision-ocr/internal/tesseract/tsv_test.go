// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tesseract

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const small = tsvHeader + "\n" +
	"1\t1\t0\t0\t0\t0\t0\t0\t200\t100\t-1\t\n" +
	"2\t1\t1\t0\t0\t0\t10\t10\t81\t41\t-1\t\n" +
	"3\t1\t1\t1\t0\t0\t10\t10\t81\t41\t-1\t\n" +
	"4\t1\t1\t1\t1\t0\t10\t10\t81\t11\t-1\t\n" +
	"5\t1\t1\t1\t1\t1\t10\t10\t30\t11\t96.5\tDisk\n" +
	"5\t1\t1\t1\t1\t2\t45\t10\t46\t11\t43.5\tfull\n" +
	"3\t1\t1\t2\t0\t0\t10\t40\t60\t11\t-1\t\n" +
	"4\t1\t1\t2\t1\t0\t10\t40\t60\t11\t-1\t\n" +
	"5\t1\t1\t2\t1\t1\t10\t40\t60\t11\t90\t\"91%\"\n" +
	"2\t1\t2\t0\t0\t0\t100\t60\t50\t30\t-1\t\n" +
	"3\t1\t2\t1\t0\t0\t100\t60\t50\t30\t-1\t\n" +
	"4\t1\t2\t1\t1\t0\t100\t60\t50\t30\t-1\t\n" +
	"5\t1\t2\t1\t1\t1\t100\t60\t50\t30\t95\t \n"

func TestParseTSV(t *testing.T) {
	got, err := ParseTSV(small)
	if err != nil {
		t.Fatal(err)
	}
	want := Page{Width: 200, Height: 100, Textless: 1, Blocks: []Block{{Box: Box{10, 10, 81, 41}, Lines: []Line{
		{Box: Box{10, 10, 81, 11}, Paragraph: 1, Words: []Word{
			{Text: "Disk", Box: Box{10, 10, 30, 11}, Confidence: 0.965},
			{Text: "full", Box: Box{45, 10, 46, 11}, Confidence: 0.435}}},
		{Box: Box{10, 40, 60, 11}, Paragraph: 2, Words: []Word{{Text: `"91%"`, Box: Box{10, 40, 60, 11}, Confidence: 0.9}}},
	}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if got := got.Text(); got != "Disk full\n\n\"91%\"\n" {
		t.Errorf("text is %q", got)
	}
	if got := want.Blocks[0].Lines[0].Confidence(); got != 0.7 {
		t.Errorf("the line's confidence is %v", got)
	}
}

func TestParseTSVOfARealPage(t *testing.T) {
	data, err := os.ReadFile("testdata/dashboard.tsv")
	if err != nil {
		t.Fatal(err)
	}
	page, err := ParseTSV(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if page.Width != 1280 || page.Height != 800 {
		t.Errorf("the page is %dx%d", page.Width, page.Height)
	}
	if text := page.Text(); !strings.Contains(text, "trailing newline. Traffic stays on release 4.18.1 and no customer order was lost.") {
		t.Errorf("the paragraph is missing from:\n%s", text)
	}
}

func TestReducedRoundsOutwardsAndStaysInside(t *testing.T) {
	page := Page{Width: 200, Height: 100, Textless: 3, Blocks: []Block{{Box: Box{11, 11, 189, 89}, Lines: []Line{{Box: Box{11, 11, 9, 4}, Words: []Word{{Text: "a", Box: Box{198, 98, 5, 5}}}}}}}}
	got := page.Reduced(2)
	if got.Width != 100 || got.Height != 50 || got.Textless != 3 {
		t.Errorf("page %+v", got)
	}
	block := got.Blocks[0]
	if block.Box != (Box{5, 5, 95, 45}) || block.Lines[0].Box != (Box{5, 5, 5, 3}) || block.Lines[0].Words[0].Box != (Box{99, 49, 1, 1}) {
		t.Errorf("boxes %+v", block)
	}
	if page.Blocks[0].Box != (Box{11, 11, 189, 89}) {
		t.Error("the page itself was changed")
	}
}

func TestParseTSVRefuses(t *testing.T) {
	page := "1\t1\t0\t0\t0\t0\t0\t0\t200\t100\t-1\t\n"
	for _, test := range []struct {
		name, tsv string
		line      int
	}{
		{"nothing", "", 1},
		{"another header", "level\ttext\n" + page, 1},
		{"bytes that are not UTF-8", tsvHeader + "\n" + page + "\xff", 1},
		{"no page", tsvHeader + "\n", 2},
		{"a block before its page", tsvHeader + "\n2\t1\t1\t0\t0\t0\t0\t0\t9\t9\t-1\t\n", 2},
		{"a second page", tsvHeader + "\n" + page + page, 3},
		{"a line before its block", tsvHeader + "\n" + page + "4\t1\t1\t1\t1\t0\t0\t0\t9\t9\t-1\t\n", 3},
		{"a word before its line", tsvHeader + "\n" + page + "2\t1\t1\t0\t0\t0\t0\t0\t9\t9\t-1\t\n5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t90\tx\n", 4},
		{"too few columns", tsvHeader + "\n" + page + "2\t1\t1\n", 3},
		{"a negative width", tsvHeader + "\n" + page + "2\t1\t1\t0\t0\t0\t0\t0\t-9\t9\t-1\t\n", 3},
		{"a level of six", tsvHeader + "\n" + page + "6\t1\t1\t0\t0\t0\t0\t0\t9\t9\t-1\t\n", 3},
		{"a confidence that is no number", tsvHeader + "\n" + page + "2\t1\t1\t0\t0\t0\t0\t0\t9\t9\tNaN\t\n", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseTSV(test.tsv)
			got, ok := errors.AsType[*TSVError](err)
			if !ok || got.Line != test.line {
				t.Errorf("got %v, want an error in line %d", err, test.line)
			}
		})
	}
}

func FuzzParseTSV(f *testing.F) {
	f.Add(small)
	f.Add(tsvHeader + "\r\n1\t1\t0\t0\t0\t0\t0\t0\t200\t100\t-1\r\n")
	if data, err := os.ReadFile("testdata/dashboard.tsv"); err == nil {
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, tsv string) {
		page, err := ParseTSV(tsv)
		if err != nil {
			if _, ok := errors.AsType[*TSVError](err); !ok {
				t.Fatalf("the error %v is of another type", err)
			}
			return
		}
		for _, l := range page.Lines() {
			if c := l.Confidence(); len(l.Words) == 0 || c < 0 || c > 1 {
				t.Fatalf("a line of %d words with confidence %v", len(l.Words), c)
			}
			if strings.TrimSpace(l.Text()) == "" {
				t.Fatal("a blank line")
			}
		}
		page.Reduced(2)
	})
}

func BenchmarkParseTSV(b *testing.B) {
	data, err := os.ReadFile("testdata/dashboard.tsv")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseTSV(string(data)); err != nil {
			b.Fatal(err)
		}
	}
}
