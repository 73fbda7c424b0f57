// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"path"
	"strings"
	"unicode/utf8"
)

// Bounds of Markdown.
const (
	// maxMarkdownText is the longest text that is searched, in bytes.
	maxMarkdownText = 1 << 20
	// maxPictures is how many images of one text are looked at; it is far more than
	// any budget lets a request show.
	maxPictures = 64
	// MaxPath is the longest path, in bytes; as of a call's argument.
	MaxPath = 4096
	// maxAlt cuts what the Markdown says of its image, in bytes.
	maxAlt = 1 << 10
)

// mention is one image of a Markdown text.
type mention struct {
	// alt is its description, in one line.
	alt string
	// path names the file: the destination without escapes, entities and percent
	// signs; skip is set where it is none that may be opened.
	path, skip string
}

// mentions are the images of a Markdown text, in its order. They are found as
// CommonMark has it: not in code spans and code blocks, not behind a backslash,
// with destinations in angle brackets or with balanced parentheses, and titles in
// double quotes, single quotes and parentheses. Images by reference are none, and
// raw HTML is text like any other. It takes linear time.
func mentions(text string) []mention {
	if !strings.Contains(text, "![") {
		return nil
	}
	var found []mention
	for _, block := range paragraphs(text) {
		for _, l := range links(block) {
			found = append(found, mentionOf(l))
		}
	}
	return found
}

// mentionOf judges where an image leads. Absolute paths, and symbolic links, are
// the resolver's to judge.
func mentionOf(l link) mention {
	m := mention{alt: cut(strings.Join(strings.Fields(unescaped(l.alt)), " "), maxAlt)}
	to := unescaped(l.to)
	m.path = unpercented(to)
	switch {
	case workspaceURI(to):
		m.skip = SkipOtherRoot
	case addressed(to) && !kept(to):
		m.skip = SkipRemote
	case m.path == "" || len(m.path) > MaxPath || !utf8.ValidString(m.path) || strings.ContainsRune(m.path, 0):
		m.skip = SkipMalformed
	case escapes(m.path):
		m.skip = SkipEscapes
	}
	if len(m.path) > MaxPath {
		m.path = ""
	}
	if m.alt == "" {
		m.alt = "Image from " + m.path
	}
	return m
}

func workspaceURI(to string) bool { return hasPrefixFold(to, "workspace://") }

// kept reports whether an address is one of our own references, which the
// resolver knows.
func kept(to string) bool { return hasPrefixFold(to, "vision://") }

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// addressed reports whether a destination is an address: of a scheme of at least
// two letters (one is a drive), or relative to the protocol.
func addressed(to string) bool {
	if strings.HasPrefix(to, "//") || strings.Contains(to, "://") {
		return true
	}
	scheme, _, found := strings.Cut(to, ":")
	if !found || len(scheme) < 2 {
		return false
	}
	for i := range len(scheme) {
		c := scheme[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(scheme[i]))) {
			return false
		}
	}
	return true
}

// escapes reports whether a relative path leads out of where it begins, by its
// words alone.
func escapes(name string) bool {
	if path.IsAbs(name) || kept(name) {
		return false
	}
	clean := path.Clean(name)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

// unpercented decodes percent signs: a run of them that is UTF-8 as a whole.
// Whatever else has a percent sign stays as it is.
func unpercented(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		end, run := i, []byte(nil)
		for end+2 < len(s) && s[end] == '%' && isHex(s[end+1]) && isHex(s[end+2]) {
			run = append(run, hexOf(s[end+1])<<4|hexOf(s[end+2]))
			end += 3
		}
		switch {
		case end == i:
			b.WriteByte(s[i])
			i++
		case utf8.Valid(run):
			b.Write(run)
			i = end
		default:
			b.WriteString(s[i:end])
			i = end
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func hexOf(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
