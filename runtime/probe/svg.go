// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// svgTag finds the opening tag of an SVG, past a byte order mark, white space,
// processing instructions, comments and a document type, within the first
// MaxHeader bytes. It returns what follows the tag's name. Nothing is parsed as
// XML: an SVG is recognised to be refused.
func svgTag(b []byte) (tag []byte, ok bool) {
	b = bytes.TrimPrefix(b[:min(len(b), MaxHeader)], []byte("\ufeff"))
	for {
		b = bytes.TrimLeft(b, " \t\r\n")
		switch {
		case hasPrefix(b, "<?"):
			b, ok = after(b, "?>")
		case hasPrefix(b, "<!--"):
			b, ok = after(b[4:], "-->")
		case hasPrefix(b, "<!DOCTYPE"), hasPrefix(b, "<!doctype"):
			b, ok = afterDocumentType(b)
		case hasPrefix(b, "<"):
			return svgName(b[1:])
		default:
			return nil, false
		}
		if !ok {
			return nil, false
		}
	}
}

// after is what follows the first end in b.
func after(b []byte, end string) ([]byte, bool) {
	at := bytes.Index(b, []byte(end))
	if at < 0 {
		return nil, false
	}
	return b[at+len(end):], true
}

// afterDocumentType steps over a document type with its internal subset, in
// which brackets may stand in quotes and comments. No entity is looked at.
func afterDocumentType(b []byte) ([]byte, bool) {
	depth := 0
	for len(b) > 0 {
		c, ok := b[0], true
		switch {
		case c == '"' || c == '\'':
			b, ok = after(b[1:], string(c))
		case hasPrefix(b, "<!--"):
			b, ok = after(b[4:], "-->")
		case c == '>' && depth == 0:
			return b[1:], true
		default:
			switch c {
			case '[':
				depth++
			case ']':
				depth--
			}
			b = b[1:]
		}
		if !ok {
			return nil, false
		}
	}
	return nil, false
}

// svgName wants the name svg, with or without the prefix of a namespace, and
// something behind it that ends a name.
func svgName(b []byte) (tag []byte, ok bool) {
	const longest = 64
	end := bytes.IndexAny(b[:min(len(b), longest)], " \t\r\n/>")
	if end < 0 {
		return nil, false
	}
	name := string(b[:end])
	if _, local, found := strings.Cut(name, ":"); found {
		name = local
	}
	return b[end:], name == "svg"
}

// readSVG takes the size that the tag suggests: width and height in pixels, or
// else those of the view box. A tag that does not end, or whose values hold
// entities or other units, suggests nothing.
func readSVG(tag []byte) Facts {
	facts := Facts{MediaType: SVG}
	var width, height, box string
	for {
		tag = bytes.TrimLeft(tag, " \t\r\n/")
		if hasPrefix(tag, ">") {
			break
		}
		name, value, rest, ok := attribute(tag)
		if !ok {
			return facts
		}
		switch name {
		case "width":
			width = value
		case "height":
			height = value
		case "viewBox":
			box = value
		}
		tag = rest
	}
	w, h := svgLength(width), svgLength(height)
	if w == 0 || h == 0 {
		if sides := strings.FieldsFunc(box, func(r rune) bool { return strings.ContainsRune(" ,\t\r\n", r) }); len(sides) == 4 {
			w, h = svgLength(sides[2]), svgLength(sides[3])
		}
	}
	if w > 0 && h > 0 {
		facts.Width, facts.Height = w, h
	}
	return facts
}

// attribute reads one attribute with its quoted value, and what follows it.
func attribute(b []byte) (name, value string, rest []byte, ok bool) {
	at := bytes.IndexByte(b, '=')
	if at < 0 {
		return "", "", nil, false
	}
	name = strings.TrimRight(string(b[:at]), " \t\r\n")
	b = bytes.TrimLeft(b[at+1:], " \t\r\n")
	if len(b) == 0 || b[0] != '"' && b[0] != '\'' || strings.ContainsAny(name, "<>\"' \t\r\n") {
		return "", "", nil, false
	}
	end := bytes.IndexByte(b[1:], b[0])
	if end < 0 {
		return "", "", nil, false
	}
	return name, string(b[1 : 1+end]), b[2+end:], true
}

// svgLength is a length in pixels, rounded up; 0 for any other unit, and for
// what is no number of pixels between 0 and 2^31-1.
func svgLength(text string) int {
	text = strings.TrimSuffix(strings.Trim(text, " \t\r\n"), "px")
	if len(text) > 32 || strings.Trim(text, "0123456789.+-eE") != "" {
		return 0
	}
	length, err := strconv.ParseFloat(text, 64)
	if err != nil || !(length > 0 && length <= math.MaxInt32) {
		return 0
	}
	return int(math.Ceil(length))
}
