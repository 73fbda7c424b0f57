// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

// Bounds of what templates write, in bytes.
const (
	// maxValue cuts each variable's value, and MaxText the whole of a text.
	maxValue = 1 << 10
	MaxText  = 16 << 10
)

// The constant texts of sights that are not resolved.
const (
	reasonError  = "the tool reported an error"
	reasonNoPath = "the call names no file"
	textOld      = "[image of an earlier turn, not shown any more: {path}]"
)

// unknown stands for a value that is not known.
const unknown = "unknown"

// Heading is the text that stands before the images of one message. It has no
// variables of its own: those of a single image are unknown there.
func (p *Plan) Heading() string { return fill(p.rules.Heading, nil) }

// ItemText is the text that stands before the image of sight i, the index-th
// (from 1) of its message; "" where none stands: in a tool's result, unless the
// policy sets one.
func (p *Plan) ItemText(i int, picture *Picture, index int) string {
	if p.inResult(i) && !p.rules.ItemInResult {
		return ""
	}
	return fill(p.rules.Item, p.values(i, picture, index, ""))
}

// Unavailable is the one text in the place of the image of sight i that cannot be
// shown; reason is a clause such as "it does not exist". Sights that are Old,
// ErrorResult or NoPath have reasons of their own. A Markdown image has none, ""
// is returned: the human's own text stays, and nothing is put beside it.
func (p *Plan) Unavailable(i int, reason string) string {
	s := &p.Sights[i]
	template := p.rules.Unavailable
	switch {
	case s.Kind == Markdown:
		return ""
	case s.State == Old:
		template = textOld
	case s.State == ErrorResult:
		reason = reasonError
	case s.State == NoPath:
		reason = reasonNoPath
	}
	values := p.values(i, nil, 0, reason)
	return or(fill(template, values), fill(defaultUnavailable, values))
}

// values are a template's variables: path, mime, width, height, bytes, sha256 of
// the image; ocr, the text that a result of ViewImage says is in it; source, which
// is the tool that was called, or "Markdown"; index; and reason, of an image that
// is unavailable.
func (p *Plan) values(i int, picture *Picture, index int, reason string) map[string]string {
	s := &p.Sights[i]
	source := s.Tool
	if s.Kind == Markdown {
		source = string(Markdown)
	}
	values := map[string]string{"path": s.Path, "source": source, "reason": reason, "sha256": s.SHA256, "ocr": s.OCR}
	if index > 0 {
		values["index"] = strconv.Itoa(index)
	}
	if picture != nil {
		values["mime"], values["sha256"] = picture.MediaType, picture.SHA256
		values["width"], values["height"] = number(int64(picture.Width)), number(int64(picture.Height))
		values["bytes"] = number(picture.Size)
	}
	return values
}

// number is "" for what is not known.
func number(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

var variables = []string{"path", "mime", "width", "height", "bytes", "sha256", "source", "index", "ocr", "reason"}

// fill writes a template with its variables. It passes the template once, so
// that a value that looks like a variable stays as it is; braces around anything
// else stay too. White space alone, which Anthropic refuses as a text, is "".
func fill(template string, values map[string]string) string {
	var b strings.Builder
	for rest := template; rest != "" && b.Len() <= MaxText; {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			break
		}
		rest = after
		if name := variable(after); name != "" {
			b.WriteString(printable(name, values[name]))
			rest = after[len(name)+1:]
		} else {
			b.WriteByte('{')
		}
	}
	if strings.TrimSpace(b.String()) == "" {
		return ""
	}
	return cut(b.String(), MaxText)
}

// variable is the variable that begins after a brace; "" when there is none.
func variable(after string) string {
	for _, name := range variables {
		if strings.HasPrefix(after, name) && strings.HasPrefix(after[len(name):], "}") {
			return name
		}
	}
	return ""
}

// printable is a value in one line, within its bound, and with nothing in it that
// makes a reader see another text.
func printable(name, value string) string {
	if value == "" && name != "ocr" {
		return unknown
	}
	value = observation.Printable(strings.ToValidUTF8(cut(value, maxValue), "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, value)
}

// cut is at most so many bytes of a text, an ellipsis at their end included; it
// cuts no character in two.
func cut(text string, most int) string {
	const ellipsis = "…"
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
