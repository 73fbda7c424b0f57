// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// This file writes model requests by hand, plainly or as oddly as JSON allows. It uses
// nothing of the runtime's.

// said is one turn of a conversation: what a human or the model says, or a call of
// view_image and its result.
type said struct {
	who   string // human, model, call or result
	text  string // of result: what the tool said
	path  string // of call
	id    string // of call and result
	image []byte // PNG that stands beside the text, of human and result
}

// spoken is a request in one dialect.
type spoken struct {
	dialect, model string
	stream         bool
	turns          []said
}

// dialects are the wire protocols, and models in each that see and that do not.
var dialects = []string{"chat", "responses", "anthropic", "gemini"}

type (
	member struct {
		key   string
		value any
	}
	object []member
	list   []any
)

// path is where the request goes.
func (s *spoken) path() string {
	switch s.dialect {
	case "chat":
		return "/openai/v1/chat/completions"
	case "responses":
		return "/openai/v1/responses"
	case "anthropic":
		return "/anthropic/v1/messages"
	}
	if s.stream {
		return "/gemini/v1beta/models/" + s.model + ":streamGenerateContent?alt=sse"
	}
	return "/gemini/v1beta/models/" + s.model + ":generateContent"
}

// body is the request's document.
func (s *spoken) body() object {
	var messages list
	for _, t := range s.turns {
		messages = append(messages, map[string]func(said) object{
			"chat": chatTurn, "responses": responsesTurn, "anthropic": anthropicTurn, "gemini": geminiTurn,
		}[s.dialect](t))
	}
	if s.dialect == "gemini" {
		return object{{"contents", messages}}
	}
	o := object{{"model", s.model}}
	switch s.dialect {
	case "anthropic":
		o = append(o, member{"max_tokens", 100}, member{"messages", messages})
	case "responses":
		o = append(o, member{"input", messages})
	default:
		o = append(o, member{"messages", messages})
	}
	if s.stream {
		o = append(o, member{"stream", true})
	}
	return o
}

func arguments(t said) string { return fmt.Sprintf(`{"path":%q}`, t.path) }

func pngURL(png []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
}

func chatTurn(t said) object {
	switch t.who {
	case "model":
		return object{{"role", "assistant"}, {"content", t.text}}
	case "call":
		function := object{{"name", "view_image"}, {"arguments", arguments(t)}}
		return object{{"role", "assistant"}, {"content", nil}, {"tool_calls", list{object{{"id", t.id}, {"type", "function"}, {"function", function}}}}}
	case "result":
		return object{{"role", "tool"}, {"tool_call_id", t.id}, {"content", t.text}}
	}
	if t.image == nil {
		return object{{"role", "user"}, {"content", t.text}}
	}
	return object{{"role", "user"}, {"content", list{
		object{{"type", "text"}, {"text", t.text}}, object{{"type", "image_url"}, {"image_url", object{{"url", pngURL(t.image)}}}},
	}}}
}

func responsesTurn(t said) object {
	switch t.who {
	case "model":
		return object{{"type", "message"}, {"id", "msg_1"}, {"status", "completed"}, {"role", "assistant"}, {"content", list{object{{"type", "output_text"}, {"text", t.text}, {"annotations", list{}}}}}}
	case "call":
		return object{{"type", "function_call"}, {"call_id", t.id}, {"name", "view_image"}, {"arguments", arguments(t)}}
	case "result":
		return object{{"type", "function_call_output"}, {"call_id", t.id}, {"output", t.text}}
	}
	content := list{object{{"type", "input_text"}, {"text", t.text}}}
	if t.image != nil {
		content = append(content, object{{"type", "input_image"}, {"detail", "auto"}, {"image_url", pngURL(t.image)}})
	}
	return object{{"role", "user"}, {"content", content}}
}

func anthropicTurn(t said) object {
	switch t.who {
	case "model":
		return object{{"role", "assistant"}, {"content", t.text}}
	case "call":
		return object{{"role", "assistant"}, {"content", list{object{{"type", "tool_use"}, {"id", t.id}, {"name", "view_image"}, {"input", object{{"path", t.path}}}}}}}
	case "result":
		return object{{"role", "user"}, {"content", list{object{{"type", "tool_result"}, {"tool_use_id", t.id}, {"content", t.text}}}}}
	}
	if t.image == nil {
		return object{{"role", "user"}, {"content", t.text}}
	}
	source := object{{"type", "base64"}, {"media_type", "image/png"}, {"data", base64.StdEncoding.EncodeToString(t.image)}}
	return object{{"role", "user"}, {"content", list{object{{"type", "text"}, {"text", t.text}}, object{{"type", "image"}, {"source", source}}}}}
}

func geminiTurn(t said) object {
	switch t.who {
	case "model":
		return object{{"role", "model"}, {"parts", list{object{{"text", t.text}}}}}
	case "call":
		return object{{"role", "model"}, {"parts", list{object{{"functionCall", object{{"id", t.id}, {"name", "view_image"}, {"args", object{{"path", t.path}}}}}}}}}
	case "result":
		return object{{"role", "user"}, {"parts", list{object{{"functionResponse", object{{"id", t.id}, {"name", "view_image"}, {"response", object{{"output", t.text}}}}}}}}}
	}
	parts := list{object{{"text", t.text}}}
	if t.image != nil {
		parts = append(parts, object{{"inlineData", object{{"mimeType", "image/png"}, {"data", base64.StdEncoding.EncodeToString(t.image)}}}})
	}
	return object{{"role", "user"}, {"parts", parts}}
}

// script is a way of writing JSON; the zero value writes it plainly.
type script struct {
	rand *rand.Rand // nil for none of the oddities
	out  strings.Builder
}

// written is a document as bytes: plainly, or with a source of chance, oddly: with white
// space, escapes, and members that nobody knows, some of them twice.
func written(v any, chance *rand.Rand) []byte {
	s := &script{rand: chance}
	s.value(v)
	s.space()
	return []byte(s.out.String())
}

func (s *script) often(n int) bool { return s.rand != nil && s.rand.IntN(n) == 0 }

func (s *script) space() {
	for s.often(4) {
		s.out.WriteByte(" \t\r\n"[s.rand.IntN(4)])
	}
}

func (s *script) value(v any) {
	s.space()
	switch v := v.(type) {
	case object:
		s.object(v)
	case list:
		s.out.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				s.space()
				s.out.WriteByte(',')
			}
			s.value(e)
		}
		s.space()
		s.out.WriteByte(']')
	case string:
		s.text(v)
	case json.RawMessage:
		s.out.Write(v)
	default:
		data, err := json.Marshal(v)
		if err != nil {
			panic(err) // of what these tests themselves put together
		}
		s.out.Write(data)
	}
}

func (s *script) object(o object) {
	s.out.WriteByte('{')
	first := true
	add := func(key string, value any) {
		if !first {
			s.space()
			s.out.WriteByte(',')
		}
		first = false
		s.space()
		s.text(key)
		s.space()
		s.out.WriteByte(':')
		s.value(value)
	}
	for _, m := range o {
		s.unknown(add)
		add(m.key, m.value)
	}
	s.unknown(add)
	s.space()
	s.out.WriteByte('}')
}

// unknown adds a member that no dialect has, perhaps twice.
func (s *script) unknown(add func(string, any)) {
	if !s.often(6) {
		return
	}
	key := []string{"x_unknown", "ünknown", "", "x\"y", "\u2028"}[s.rand.IntN(5)]
	for range 1 + s.rand.IntN(2) {
		add(key, s.odd())
	}
}

// odd is any value.
func (s *script) odd() any {
	switch s.rand.IntN(8) {
	case 0:
		return strings.Repeat("long ünd 漢字 ", 1+s.rand.IntN(2000))
	case 1:
		return list{nil, true, object{{"deep", list{list{}, object{}}}}}
	case 2:
		return "\u0000\u001f\u007f\ufffd\U0001F600"
	default:
		numbers := []string{"1.50e3", "-0", "1E400", "0.1000", "123456789012345678901234567890", "-1.0E-7", "1e+0"}
		return json.RawMessage(numbers[s.rand.IntN(len(numbers))])
	}
}

// text writes a string, its characters escaped in one of the ways that there are.
func (s *script) text(v string) {
	s.out.WriteByte('"')
	for _, c := range v {
		switch {
		case c == '"' || c == '\\':
			s.out.WriteByte('\\')
			s.out.WriteRune(c)
		case c == '/' && s.often(2):
			s.out.WriteString(`\/`)
		case c == '\n' && s.often(2):
			s.out.WriteString(`\n`)
		case c < ' ' || s.often(40) && c < 0x10000:
			fmt.Fprintf(&s.out, `\u%04x`, c)
		case c >= 0x10000 && s.often(2):
			c -= 0x10000
			fmt.Fprintf(&s.out, `\u%04X\u%04x`, 0xD800+(c>>10), 0xDC00+(c&0x3FF))
		default:
			s.out.WriteRune(c)
		}
	}
	s.out.WriteByte('"')
}
