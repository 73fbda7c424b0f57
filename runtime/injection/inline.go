// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"html"
	"strings"
)

// link is an image of a paragraph, as it is written.
type link struct {
	start   int // of its "!"
	alt, to string
}

// maxNesting is how deep parentheses of a destination may nest, as in cmark.
const maxNesting = 32

// links are the images of a paragraph, the outermost ones, in its order.
func links(text string) []link {
	p := inline{text: text, runs: backticks(text)}
	for p.i < len(text) {
		switch text[p.i] {
		case '\\':
			p.i++
			if p.i < len(text) && punctuation(text[p.i]) {
				p.i++
			}
		case '`':
			p.code()
		case '<':
			p.autolink()
		case '!':
			p.i++
			if p.i < len(text) && text[p.i] == '[' {
				p.open(true)
			}
		case '[':
			p.open(false)
		case ']':
			p.close()
		default:
			p.i++
		}
	}
	return p.found
}

// inline is the reading of one paragraph.
type inline struct {
	text  string
	i     int
	stack []bracket
	// barred is how many brackets at the stack's bottom begin no link any more,
	// since links hold no links; images still do.
	barred int
	runs   map[int][]int // where runs of backticks begin, by their lengths
	found  []link
}

// bracket is one that is open: its text begins at after.
type bracket struct {
	after int
	image bool
}

func (p *inline) open(image bool) {
	p.i++
	p.stack = append(p.stack, bracket{p.i, image})
}

// close ends the last bracket, as a link, an image or just text.
func (p *inline) close() {
	end := p.i
	p.i++
	top := len(p.stack) - 1
	if top < 0 {
		return
	}
	b := p.stack[top]
	p.stack = p.stack[:top]
	barred := !b.image && top < p.barred
	p.barred = min(p.barred, top)
	if barred {
		return
	}
	to, after, ok := target(p.text, p.i)
	if !ok {
		return
	}
	p.i = after
	if !b.image {
		p.barred = top
		return
	}
	start := b.after - 2
	for len(p.found) > 0 && p.found[len(p.found)-1].start > start {
		p.found = p.found[:len(p.found)-1] // they are part of this one's description
	}
	p.found = append(p.found, link{start, p.text[b.after:end], to})
}

// backticks tells where each run of backticks begins, by length.
func backticks(text string) map[int][]int {
	var runs map[int][]int
	for i := 0; i < len(text); {
		n := run(text[i:], '`')
		if n == 0 {
			next := strings.IndexByte(text[i:], '`')
			if next < 0 {
				break
			}
			i += next
			continue
		}
		if runs == nil {
			runs = map[int][]int{}
		}
		runs[n] = append(runs[n], i)
		i += n
	}
	return runs
}

// run is how often c begins a text.
func run(text string, c byte) int {
	n := 0
	for n < len(text) && text[n] == c {
		n++
	}
	return n
}

// code passes a code span; backticks without an equal run after them are text.
func (p *inline) code() {
	n := run(p.text[p.i:], '`')
	p.i += n
	at := p.runs[n]
	for len(at) > 0 && at[0] < p.i {
		at = at[1:]
	}
	p.runs[n] = at
	if len(at) > 0 {
		p.i = at[0] + n
	}
}

// autolink passes an address in angle brackets, <scheme:...>.
func (p *inline) autolink() {
	p.i++
	end := strings.IndexAny(p.text[p.i:], "<> \t\n")
	if end > 0 && p.text[p.i+end] == '>' && addressed(p.text[p.i:p.i+end]) {
		p.i += end + 1
	}
}

// target reads what stands in parentheses behind a bracket: a destination and
// perhaps a title. after is the index behind them.
func target(text string, i int) (to string, after int, ok bool) {
	if i >= len(text) || text[i] != '(' {
		return "", 0, false
	}
	i = whitespace(text, i+1)
	to, i, ok = destination(text, i)
	if !ok {
		return "", 0, false
	}
	if next := whitespace(text, i); next > i {
		i = next
		if end, titled := title(text, i); titled {
			i = whitespace(text, end)
		}
	}
	return to, i + 1, i < len(text) && text[i] == ')'
}

// whitespace passes spaces, tabs and line feeds; a paragraph has no blank lines.
func whitespace(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n') {
		i++
	}
	return i
}

func destination(text string, i int) (to string, after int, ok bool) {
	if i < len(text) && text[i] == '<' {
		for j := i + 1; j < len(text); j++ {
			switch text[j] {
			case '\\':
				if j+1 < len(text) && punctuation(text[j+1]) {
					j++
				}
			case '\n', '<':
				return "", 0, false
			case '>':
				return text[i+1 : j], j + 1, true
			}
		}
		return "", 0, false
	}
	depth, j := 0, i
	for ; j < len(text); j++ {
		switch c := text[j]; {
		case c == '\\' && j+1 < len(text) && punctuation(text[j+1]):
			j++
		case c <= ' ' || c == 0x7f:
			return text[i:j], j, depth == 0
		case c == '(':
			if depth++; depth > maxNesting {
				return "", 0, false
			}
		case c == ')' && depth == 0:
			return text[i:j], j, true
		case c == ')':
			depth--
		}
	}
	return "", 0, false
}

// title passes a title: in double or single quotes, or in parentheses.
func title(text string, i int) (after int, ok bool) {
	if i >= len(text) {
		return 0, false
	}
	closing := text[i]
	switch closing {
	case '"', '\'':
	case '(':
		closing = ')'
	default:
		return 0, false
	}
	for j := i + 1; j < len(text); j++ {
		switch c := text[j]; {
		case c == '\\':
			j++
		case c == closing:
			return j + 1, true
		case c == '(' && closing == ')':
			return 0, false
		}
	}
	return 0, false
}

func punctuation(c byte) bool {
	return '!' <= c && c <= '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || '{' <= c && c <= '~'
}

// maxEntity is more than any entity has, in bytes: the longest name is
// CounterClockwiseContourIntegral.
const maxEntity = 40

// unescaped takes backslashes from punctuation, and replaces entities.
func unescaped(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && punctuation(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			entity := entityOf(s[i:])
			b.WriteString(html.UnescapeString(entity))
			i += len(entity) - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// entityOf is the entity that begins a text, or its "&" alone.
func entityOf(s string) string {
	for i := 1; i < min(len(s), maxEntity); i++ {
		switch c := s[i]; {
		case c == ';':
			return s[:i+1]
		case c == '#' && i == 1, '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z':
		default:
			return s[:1]
		}
	}
	return s[:1]
}
