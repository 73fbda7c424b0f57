// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tesseract

import (
	"slices"
	"strings"
)

// Box is a rectangle in pixels from the picture's top left.
type Box struct {
	X, Y, Width, Height int
}

// Word is one recognised word. Its text is never blank.
type Word struct {
	Text string
	Box  Box
	// Confidence is the engine's own estimate, 0 to 1.
	Confidence float64
}

// Line is one line of text: at least one word, in reading order.
type Line struct {
	Box   Box
	Words []Word
	// Paragraph counts the paragraphs of the block from 1.
	Paragraph int
}

// Text is the line's words with single spaces between.
func (l Line) Text() string {
	words := make([]string, len(l.Words))
	for i, w := range l.Words {
		words[i] = w.Text
	}
	return strings.Join(words, " ")
}

// Confidence is the mean of the words' confidences, 0 to 1.
func (l Line) Confidence() float64 {
	return Mean([]Line{l})
}

// Block is one column, heading, cell or other separate piece of text: at
// least one line, in reading order.
type Block struct {
	Box   Box
	Lines []Line
}

// Confidence is the mean of the words' confidences, 0 to 1.
func (b Block) Confidence() float64 { return Mean(b.Lines) }

// Mean is the mean confidence of the words of lines, 0 when there are none.
func Mean(lines []Line) float64 {
	sum, n := 0.0, 0
	for _, l := range lines {
		for _, w := range l.Words {
			sum += w.Confidence
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// Page is what was recognised in one picture.
type Page struct {
	// Width and Height are the picture's, in pixels.
	Width, Height int
	// Blocks hold text, in reading order.
	Blocks []Block
	// Textless counts the regions that the engine set apart but found no text
	// in: pictures, rules, charts.
	Textless int
}

// Lines are the lines of all blocks, in reading order.
func (p Page) Lines() []Line {
	var out []Line
	for _, b := range p.Blocks {
		out = append(out, b.Lines...)
	}
	return out
}

// wordHeight is the median height of the page's words, in pixels; 0 without words.
func (p Page) wordHeight() int {
	var heights []int
	for _, l := range p.Lines() {
		for _, w := range l.Words {
			heights = append(heights, w.Box.Height)
		}
	}
	if len(heights) == 0 {
		return 0
	}
	slices.Sort(heights)
	return heights[len(heights)/2]
}

// Text is the page as plain text: a line break after each line, an empty line
// between paragraphs and between blocks. It is empty when no text was found.
func (p Page) Text() string {
	var out strings.Builder
	for i, b := range p.Blocks {
		for j, l := range b.Lines {
			if (j == 0 && i > 0) || (j > 0 && l.Paragraph != b.Lines[j-1].Paragraph) {
				out.WriteByte('\n')
			}
			out.WriteString(l.Text())
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// Reduced is the page with positions for a picture 1/n as wide and as high;
// boxes are rounded outwards and kept inside the picture.
func (p Page) Reduced(n int) Page {
	if n <= 1 {
		return p
	}
	width, height := p.Width/n, p.Height/n
	box := func(b Box) Box {
		right, bottom := min((b.X+b.Width+n-1)/n, width), min((b.Y+b.Height+n-1)/n, height)
		return Box{X: b.X / n, Y: b.Y / n, Width: max(right-b.X/n, 0), Height: max(bottom-b.Y/n, 0)}
	}
	out := Page{Width: width, Height: height, Textless: p.Textless, Blocks: make([]Block, len(p.Blocks))}
	for i, b := range p.Blocks {
		lines := make([]Line, len(b.Lines))
		for j, l := range b.Lines {
			words := make([]Word, len(l.Words))
			for k, w := range l.Words {
				words[k] = Word{Text: w.Text, Box: box(w.Box), Confidence: w.Confidence}
			}
			lines[j] = Line{Box: box(l.Box), Words: words, Paragraph: l.Paragraph}
		}
		out.Blocks[i] = Block{Box: box(b.Box), Lines: lines}
	}
	return out
}
