// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import "strings"

// maxContainers is how deep quotes and lists may nest; what is deeper is text.
const maxContainers = 32

// paragraphs are the parts of a Markdown text in which images may stand: its
// paragraphs and headings, without what begins their lines. Code blocks, fenced
// or indented, are none, in quotes and lists too. Other blocks end where they end
// for CommonMark or later, in text alike.
func paragraphs(text string) []string {
	b := blocks{}
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		b.line(strings.TrimSuffix(line, "\r"))
	}
	b.end()
	return b.found
}

// blocks is the reading of a text's lines.
type blocks struct {
	containers []container
	paragraph  strings.Builder
	open       bool // a paragraph
	fence      fence
	found      []string
}

// container is a quote, or an item of a list whose text begins at a column; an
// item that is empty so far ends at a blank line.
type container struct {
	quote, empty bool
	indent       int
}

// fence is an open code block's: its sign, how often it stands there, and the
// number of containers around it. No sign: none is open.
type fence struct {
	sign       byte
	long, deep int
}

// end ends the paragraph.
func (b *blocks) end() {
	if b.open {
		b.found = append(b.found, b.paragraph.String())
		b.paragraph.Reset()
		b.open = false
	}
}

func (b *blocks) line(s string) {
	l := cursor{s: s}
	matched := b.within(&l)
	if b.fence.sign != 0 {
		if matched == b.fence.deep {
			b.fenced(&l)
			return
		}
		b.fence = fence{}
	}
	if matched < len(b.containers) {
		if b.open && b.lazy(l) {
			b.add(l.rest())
			return
		}
		b.end()
		b.containers = b.containers[:matched]
	}
	b.begin(&l)
	b.leaf(&l)
}

// within passes what begins the line of the open containers, and says how many
// of them the line goes on with.
func (b *blocks) within(l *cursor) int {
	for i, c := range b.containers {
		switch {
		case c.quote && l.indent() < 4 && l.next() == '>':
			l.quote()
		case !c.quote && !c.empty && l.blank():
		case !c.quote && l.indent() >= c.indent && !l.blank():
			l.pass(c.indent)
			b.containers[i].empty = false
		default:
			return i
		}
	}
	return len(b.containers)
}

// fenced reads a line of a fenced code block: its last one, or code.
func (b *blocks) fenced(l *cursor) {
	rest := l.rest()
	n := run(rest, b.fence.sign)
	if l.indent() < 4 && n >= b.fence.long && strings.Trim(rest[n:], " \t") == "" {
		b.fence = fence{}
	}
}

// lazy reports whether a line that leaves containers goes on with a paragraph
// within them all the same: one that begins nothing of its own.
func (b *blocks) lazy(l cursor) bool {
	if l.blank() {
		return false
	}
	if l.indent() >= 4 {
		return true
	}
	rest := l.rest()
	if rest[0] == '>' || rest[0] == '#' && heading(rest) || rule(rest) {
		return false
	}
	if _, _, is := fenceOf(rest); is {
		return false
	}
	_, is := item(rest, true)
	return !is
}

// begin opens the quotes and lists that the line begins.
func (b *blocks) begin(l *cursor) {
	for len(b.containers) < maxContainers && !l.blank() && l.indent() < 4 {
		rest := l.rest()
		if rest[0] == '>' {
			b.end()
			l.quote()
			b.containers = append(b.containers, container{quote: true})
			continue
		}
		width, is := item(rest, b.open)
		if !is || rule(rest) {
			return
		}
		b.end()
		indent := l.indent()
		l.pass(indent + width)
		if spaces := l.indent(); !l.blank() && spaces <= 4 && spaces > 0 {
			l.pass(spaces)
			width += spaces
		} else {
			l.pass(1)
			width++
		}
		b.containers = append(b.containers, container{indent: indent + width, empty: l.blank()})
	}
}

// leaf reads what the line holds within its containers.
func (b *blocks) leaf(l *cursor) {
	rest := l.rest()
	switch sign, long, fenced := fenceOf(rest); {
	case rest == "":
		b.end()
	case l.indent() >= 4 && !b.open: // code
	case l.indent() >= 4:
		b.add(rest)
	case fenced:
		b.end()
		b.fence = fence{sign, long, len(b.containers)}
	case heading(rest):
		b.end()
		b.add(rest)
		b.end()
	case rule(rest) || b.open && strings.Trim(strings.TrimRight(rest, " \t"), "=") == "":
		b.end()
	default:
		b.add(rest)
	}
}

func (b *blocks) add(s string) {
	if b.open {
		b.paragraph.WriteByte('\n')
	}
	b.open = true
	b.paragraph.WriteString(s)
}

// heading reports whether a line is one of #.
func heading(s string) bool {
	n := run(s, '#')
	return n > 0 && n <= 6 && (n == len(s) || s[n] == ' ' || s[n] == '\t')
}

// rule reports whether a line is a thematic break, or underlines a heading with -.
func rule(s string) bool {
	sign := s[0]
	if sign != '-' && sign != '*' && sign != '_' {
		return false
	}
	n := 0
	for i := range len(s) {
		switch s[i] {
		case sign:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n >= 3
}

// fenceOf reads the beginning of a fenced code block.
func fenceOf(s string) (sign byte, long int, ok bool) {
	if s == "" || s[0] != '`' && s[0] != '~' {
		return 0, 0, false
	}
	long = run(s, s[0])
	return s[0], long, long >= 3 && (s[0] == '~' || strings.IndexByte(s[long:], '`') < 0)
}

// item reads the mark of a list's item, which is so wide. One that interrupts a
// paragraph has text and, with a number, begins at 1.
func item(s string, interrupts bool) (width int, ok bool) {
	switch s[0] {
	case '-', '+', '*':
		width = 1
	default:
		for width < len(s) && width < 10 && '0' <= s[width] && s[width] <= '9' {
			width++
		}
		if width == 0 || width == 10 || width == len(s) || s[width] != '.' && s[width] != ')' || interrupts && s[:width] != "1" {
			return 0, false
		}
		width++
	}
	if interrupts && strings.Trim(s[width:], " \t") == "" {
		return 0, false
	}
	return width, width == len(s) || s[width] == ' ' || s[width] == '\t'
}

// cursor is a place in a line, counted in columns: a tab goes on to the next
// column that is a multiple of 4.
type cursor struct {
	s      string
	column int
	spare  int // columns of a tab that was passed in part
}

// indent is how many columns of white space follow.
func (c *cursor) indent() int {
	n := c.spare
	for i := 0; i < len(c.s); i++ {
		switch c.s[i] {
		case ' ':
			n++
		case '\t':
			n += 4 - (c.column+n)%4
		default:
			return n
		}
	}
	return n
}

// rest is what follows, without white space before it.
func (c *cursor) rest() string { return strings.TrimLeft(c.s, " \t") }

func (c *cursor) blank() bool { return c.rest() == "" }

// next is the first character that is no white space; 0 at the end.
func (c *cursor) next() byte {
	if rest := c.rest(); rest != "" {
		return rest[0]
	}
	return 0
}

// pass passes so many columns.
func (c *cursor) pass(columns int) {
	for columns > 0 {
		if c.spare > 0 {
			n := min(columns, c.spare)
			c.spare -= n
			c.column += n
			columns -= n
			continue
		}
		if c.s == "" {
			return
		}
		if c.s[0] == '\t' {
			c.spare = 4 - c.column%4
			c.s = c.s[1:]
			continue
		}
		c.s = c.s[1:]
		c.column++
		columns--
	}
}

// quote passes the sign of a quote, with what is before it and a space behind it.
func (c *cursor) quote() {
	c.pass(c.indent() + 1)
	if c.spare > 0 || c.s != "" && (c.s[0] == ' ' || c.s[0] == '\t') {
		c.pass(1)
	}
}
