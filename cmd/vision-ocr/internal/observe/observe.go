// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe says what was recognised: as a visual_observation.v1 object
// or as plain text. It is pure, and honest about what an OCR engine does not
// do: nothing here pretends to have understood the question or the picture.
package observe

import (
	"fmt"
	"math"
	"strings"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/tesseract"
)

const (
	// LowConfidence is the bound below which a line or a word is uncertain.
	LowConfidence = 0.6
	// maxDoubts bounds how many uncertain lines and words are named one by one.
	maxDoubts = 20
	// maxBeginning is how many characters of the text the summary repeats.
	maxBeginning = 300
	// maxLabel is how many characters of a block its element repeats.
	maxLabel = 80
)

// Engine is who recognised.
type Engine struct {
	// Version is Tesseract's, such as "5.3.0"; Languages such as "eng+deu".
	Version, Languages string
}

// BBox is a rectangle in pixels from its image's top left.
type BBox struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Text is one line of text as read. Confidence is 0 to 1.
type Text struct {
	Text       string  `json:"text"`
	BBox       BBox    `json:"bbox"`
	Confidence float64 `json:"confidence"`
}

// Element is one block of text; its whole text is in the OCR entries that lie in its box.
type Element struct {
	// ID is "block-<n>", or "image-<m>/block-<n>" when there are several images.
	ID         string  `json:"id"`
	Role       string  `json:"role"` // always "text_block"
	BBox       BBox    `json:"bbox"`
	Confidence float64 `json:"confidence"`
	// Text is how the block begins, at most 80 characters.
	Text string `json:"text"`
}

// Observation is the answer's object: all nine keys, always.
type Observation struct {
	Type            string    `json:"type"`   // always "visual_observation"
	Schema          string    `json:"schema"` // always "visual_observation.v1"
	Summary         string    `json:"summary"`
	OCR             []Text    `json:"ocr"`
	Elements        []Element `json:"elements"`
	Relations       []any     `json:"relations"` // always empty
	Issues          []any     `json:"issues"`    // always empty
	Uncertainties   []string  `json:"uncertainties"`
	ExternalSources []any     `json:"external_sources"` // always empty
}

// Keys are the members of an Observation.
func Keys() []string {
	return []string{"type", "schema", "summary", "ocr", "elements", "relations", "issues", "uncertainties", "external_sources"}
}

// All is the keep of Compose that leaves nothing out.
const All = math.MaxInt

// Compose tells what was recognised in the images, in their order. Only the
// first keep lines, and the blocks that they lie in, are listed; what is left
// out is said.
func Compose(engine Engine, pages []tesseract.Page, keep int) Observation {
	out := Observation{
		Type: "visual_observation", Schema: "visual_observation.v1",
		Summary: summary(engine, pages),
		OCR:     []Text{}, Elements: []Element{}, Relations: []any{}, Issues: []any{}, ExternalSources: []any{},
		Uncertainties: []string{"The engine (Tesseract OCR) only reads text: it did not interpret the question, and it describes no shapes, colours, charts or photographs."},
	}
	total := 0
	for i, page := range pages {
		for j, block := range page.Blocks {
			kept := min(len(block.Lines), max(keep-total, 0))
			total += len(block.Lines)
			if kept == 0 {
				continue
			}
			for _, l := range block.Lines[:kept] {
				out.OCR = append(out.OCR, Text{Text: l.Text(), BBox: BBox(l.Box), Confidence: rounded(l.Confidence())})
			}
			out.Elements = append(out.Elements, Element{
				ID: blockID(i, j, len(pages)), Role: "text_block", BBox: BBox(block.Box), Confidence: rounded(block.Confidence()),
				Text: beginning(block.Lines, maxLabel),
			})
		}
	}
	out.Uncertainties = append(out.Uncertainties, notes(pages)...)
	if kept := len(out.OCR); kept < total {
		out.Uncertainties = append(out.Uncertainties, fmt.Sprintf("The reply's token limit left room for the first %d of %d lines only.", kept, total))
	}
	out.Uncertainties = append(out.Uncertainties, doubts(pages, len(out.OCR))...)
	return out
}

// PlainText is the text of the images in their order, with a heading before
// each when there are several; a sentence in brackets stands where there is none.
func PlainText(pages []tesseract.Page) string {
	var out strings.Builder
	for i, p := range pages {
		if len(pages) > 1 {
			if i > 0 {
				out.WriteByte('\n')
			}
			fmt.Fprintf(&out, "[Image %d of %d]\n", i+1, len(pages))
		}
		if text := p.Text(); text != "" {
			out.WriteString(text)
		} else {
			out.WriteString("[No text was found in the image.]\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// LineCount is the number of lines in all pages.
func LineCount(pages []tesseract.Page) int { return len(lines(pages)) }

func lines(pages []tesseract.Page) []tesseract.Line {
	var out []tesseract.Line
	for _, p := range pages {
		out = append(out, p.Lines()...)
	}
	return out
}

func summary(engine Engine, pages []tesseract.Page) string {
	all := lines(pages)
	who := fmt.Sprintf("Tesseract %s (%s)", engine.Version, engine.Languages)
	where := "the image"
	if len(pages) > 1 {
		where = fmt.Sprintf("the %d images", len(pages))
	}
	if len(all) == 0 {
		return fmt.Sprintf("%s found no text in %s.", who, where)
	}
	blocks, words := 0, 0
	for _, p := range pages {
		blocks += len(p.Blocks)
	}
	for _, l := range all {
		words += len(l.Words)
	}
	return fmt.Sprintf("Text recognised by %s in %s: %s, %s, %s, mean confidence %.2f. It begins: %s",
		who, where, count(blocks, "block"), count(len(all), "line"), count(words, "word"), tesseract.Mean(all), beginning(all, maxBeginning))
}

// notes are the uncertainties about images as a whole.
func notes(pages []tesseract.Page) []string {
	var out []string
	first := 1
	for i, p := range pages {
		in := "the image"
		n := len(p.Lines())
		if len(pages) > 1 {
			in = fmt.Sprintf("image %d of %d", i+1, len(pages))
			if n > 0 {
				out = append(out, fmt.Sprintf("Lines %d to %d of the text come from %s; positions are pixels of that image.", first, first+n-1, in))
			}
		}
		first += n
		if n == 0 {
			out = append(out, fmt.Sprintf("No text was found in %s.", in))
		}
		if p.Textless > 0 {
			out = append(out, fmt.Sprintf("Not described, because no text was recognised there: %s of %s (pictures, rules or charts).", count(p.Textless, "region"), in))
		}
	}
	return out
}

// doubts name the uncertain lines, and the uncertain words of other lines,
// among the first kept.
func doubts(pages []tesseract.Page, kept int) []string {
	var out []string
	more := 0
	add := func(format string, args ...any) {
		if len(out) == maxDoubts {
			more++
			return
		}
		out = append(out, fmt.Sprintf(format, args...))
	}
	for i, l := range lines(pages)[:kept] {
		if c := l.Confidence(); c < LowConfidence {
			add("Line %d, read as %q, is uncertain: confidence %.2f.", i+1, cut(l.Text(), maxLabel), c)
			continue
		}
		for _, w := range l.Words {
			if w.Confidence < LowConfidence {
				add("In line %d the word read as %q is uncertain: confidence %.2f.", i+1, cut(w.Text, maxLabel), w.Confidence)
			}
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more lines or words are uncertain; see the confidences.", more))
	}
	return out
}

func blockID(image, block, images int) string {
	if images > 1 {
		return fmt.Sprintf("image-%d/block-%d", image+1, block+1)
	}
	return fmt.Sprintf("block-%d", block+1)
}

// beginning joins lines with spaces up to limit characters.
func beginning(lines []tesseract.Line, limit int) string {
	var out strings.Builder
	for i, l := range lines {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(l.Text())
		if out.Len() > limit*4 { // no character takes more than 4 bytes
			break
		}
	}
	return cut(out.String(), limit)
}

// cut shortens text to limit characters, with an ellipsis as the last one.
func cut(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// rounded keeps two decimals, which is more than the estimate is worth.
func rounded(confidence float64) float64 { return math.Round(confidence*100) / 100 }
