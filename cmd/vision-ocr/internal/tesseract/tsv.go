// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tesseract

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The columns of Tesseract 5's TSV, and the levels of its rows
// (tesseract/src/api/baseapi.cpp, GetTSVText; level is PageIteratorLevel + 1).
const (
	tsvHeader = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"

	levelPage      = 1
	levelBlock     = 2
	levelParagraph = 3
	levelLine      = 4
	levelWord      = 5
)

// TSVError says which line of the engine's output was not understood, never
// what it held.
type TSVError struct {
	// Line counts from 1, the header included.
	Line int
	// Problem is what was wrong with it.
	Problem string
}

func (e *TSVError) Error() string {
	return fmt.Sprintf("parsing recognised text: line %d: %s", e.Line, e.Problem)
}

// row is one line of the TSV.
type row struct {
	level, paragraph int
	box              Box
	// confidence is 0..100, or -1 where the level has none.
	confidence float64
	text       string
}

// ParseTSV reads the output of one picture. Blocks and lines without a word
// that is not blank are left out (Textless counts such blocks). Its errors are
// *TSVError.
func ParseTSV(tsv string) (Page, error) {
	if !utf8.ValidString(tsv) {
		return Page{}, &TSVError{Line: 1, Problem: "the output is not UTF-8"}
	}
	var page Page
	sawPage := false
	for i, text := range strings.Split(strings.TrimRight(tsv, "\r\n"), "\n") {
		text = strings.TrimSuffix(text, "\r")
		if i == 0 {
			if text != tsvHeader {
				return Page{}, &TSVError{Line: 1, Problem: "the header is not that of Tesseract 5's TSV"}
			}
			continue
		}
		r, problem := parseRow(text)
		if problem == "" && r.level == levelPage && sawPage {
			problem = "a second page where one was asked for"
		}
		if problem == "" && r.level != levelPage && !sawPage {
			problem = "an entry before its page"
		}
		if problem == "" {
			problem = page.add(r)
		}
		if problem != "" {
			return Page{}, &TSVError{Line: i + 1, Problem: problem}
		}
		sawPage = true
	}
	if !sawPage {
		return Page{}, &TSVError{Line: 2, Problem: "there is no page"}
	}
	page.prune()
	return page, nil
}

// add appends one row to the page; it returns what is wrong with it, or "".
func (p *Page) add(r row) string {
	if r.level == levelPage {
		p.Width, p.Height = r.box.Width, r.box.Height
		return ""
	}
	if r.level == levelBlock {
		p.Blocks = append(p.Blocks, Block{Box: r.box})
		return ""
	}
	if len(p.Blocks) == 0 {
		return "an entry before its block"
	}
	block := &p.Blocks[len(p.Blocks)-1]
	switch r.level {
	case levelParagraph: // its lines carry its number
	case levelLine:
		block.Lines = append(block.Lines, Line{Box: r.box, Paragraph: r.paragraph})
	case levelWord:
		if len(block.Lines) == 0 {
			return "a word before its line"
		}
		text := strings.TrimSpace(r.text)
		if text == "" {
			return ""
		}
		line := &block.Lines[len(block.Lines)-1]
		line.Words = append(line.Words, Word{Text: text, Box: r.box, Confidence: min(max(r.confidence, 0), 100) / 100})
	}
	return ""
}

// prune drops lines without words and blocks without lines, and counts the latter.
func (p *Page) prune() {
	blocks := p.Blocks[:0]
	for _, b := range p.Blocks {
		lines := b.Lines[:0]
		for _, l := range b.Lines {
			if len(l.Words) > 0 {
				lines = append(lines, l)
			}
		}
		if len(lines) == 0 {
			p.Textless++
			continue
		}
		b.Lines = lines
		blocks = append(blocks, b)
	}
	p.Blocks = blocks
}

// parseRow reads one line; it returns what is wrong with it, or "".
func parseRow(line string) (row, string) {
	fields := strings.SplitN(line, "\t", 12)
	if len(fields) < 11 { // the text's column may be missing where it is empty
		return row{}, fmt.Sprintf("%d columns where 12 belong", len(fields))
	}
	var numbers [10]int
	for i := range numbers {
		n, err := strconv.Atoi(fields[i])
		if err != nil || n < 0 || n > math.MaxInt32 {
			return row{}, fmt.Sprintf("column %d is not a whole number from 0 to %d", i+1, math.MaxInt32)
		}
		numbers[i] = n
	}
	if numbers[0] < levelPage || numbers[0] > levelWord {
		return row{}, "the level is not 1 to 5"
	}
	confidence, err := strconv.ParseFloat(fields[10], 64)
	if err != nil || math.IsNaN(confidence) || math.IsInf(confidence, 0) {
		return row{}, "the confidence is not a number"
	}
	r := row{
		level: numbers[0], paragraph: numbers[3], confidence: confidence,
		box: Box{X: numbers[6], Y: numbers[7], Width: numbers[8], Height: numbers[9]},
	}
	if len(fields) == 12 {
		r.text = fields[11]
	}
	return r, ""
}
