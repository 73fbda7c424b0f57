// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

const listDialect = "langchain-messages"

// allDialects are those of POST /v1/inject.
func allDialects() []string {
	all := []string{listDialect}
	for _, d := range message.Dialects() {
		all = append(all, string(d))
	}
	return all
}

// line is what somebody says, as a dialect has it: a call and its answer have an id.
type line struct {
	who            string // human, assistant, call or answer
	id, tool, text string
	image          []byte
}

func says(who, text string) line         { return line{who: who, text: text} }
func pictured(who string, d []byte) line { return line{who: who, image: d} }
func calls(id, tool, path string) line   { return line{who: "call", id: id, tool: tool, text: path} }
func answers(id, text string) line       { return line{who: "answer", id: id, text: text} }

// spoken is a conversation in a dialect. Calls that stand side by side are one turn's.
func spoken(d string, lines ...line) string {
	var all []string
	for i := 0; i < len(lines); i++ {
		end := i + 1
		for lines[i].who == "call" && end < len(lines) && lines[end].who == "call" {
			end++
		}
		all = append(all, messagesOf(d, lines[i:end])...)
		i = end - 1
	}
	return "[" + strings.Join(all, ",") + "]"
}

// messagesOf are the messages of one turn.
func messagesOf(d string, turn []line) []string {
	l := turn[0]
	var parts []string
	for i := range turn {
		parts = append(parts, partOf(d, &turn[i]))
	}
	whole := strings.Join(parts, ",")
	switch {
	case d == "openai-responses" && (l.who == "call" || l.who == "answer"):
		return parts
	case d == "gemini-contents":
		role := map[string]string{"human": "user", "assistant": "model", "call": "model", "answer": "user"}[l.who]
		return []string{fmt.Sprintf(`{"role":%q,"parts":[%s]}`, role, whole)}
	case d == "anthropic-messages" || l.who == "human" || l.who == "assistant":
		role := map[string]string{"call": "assistant", "answer": "user", "human": "user", "assistant": "assistant"}[l.who]
		if d == listDialect {
			return []string{fmt.Sprintf(`{"type":%q,"content":[%s]}`, map[string]string{"user": "human", "assistant": "ai"}[role], whole)}
		}
		return []string{fmt.Sprintf(`{"role":%q,"content":[%s]}`, role, whole)}
	case l.who == "answer":
		return parts
	case d == listDialect:
		return []string{`{"type":"ai","content":"","tool_calls":[` + whole + `]}`}
	}
	return []string{`{"role":"assistant","content":null,"tool_calls":[` + whole + `]}`}
}

// partOf is a part of a message, or the item or message of an answer.
func partOf(d string, l *line) string {
	arguments := fmt.Sprintf(`{"path":%q}`, l.text)
	if l.text == "" {
		arguments = "{}"
	}
	var forms map[string]string
	switch {
	case l.who == "call":
		forms = map[string]string{
			"openai-chat":        fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, l.id, l.tool, arguments),
			"openai-responses":   fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":%q}`, l.id, l.tool, arguments),
			"anthropic-messages": fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, l.id, l.tool, arguments),
			"gemini-contents":    fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}}`, l.id, l.tool, arguments),
			listDialect:          fmt.Sprintf(`{"id":%q,"name":%q,"args":%s}`, l.id, l.tool, arguments),
		}
	case l.who == "answer":
		tool := "view_image"
		if l.text == "listed" {
			tool = "ls"
		}
		forms = map[string]string{
			"openai-chat":        fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, l.id, l.text),
			"openai-responses":   fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, l.id, l.text),
			"anthropic-messages": fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%q}`, l.id, l.text),
			"gemini-contents":    fmt.Sprintf(`{"functionResponse":{"id":%q,"name":%q,"response":{"result":%q}}}`, l.id, tool, l.text),
			listDialect:          fmt.Sprintf(`{"type":"tool","tool_call_id":%q,"content":%q}`, l.id, l.text),
		}
	case l.image != nil:
		data := base64Of(l.image)
		chat := fmt.Sprintf(`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`, data)
		forms = map[string]string{
			"openai-chat": chat, listDialect: chat,
			"openai-responses":   fmt.Sprintf(`{"type":"input_image","image_url":"data:image/png;base64,%s"}`, data),
			"anthropic-messages": fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, data),
			"gemini-contents":    fmt.Sprintf(`{"inlineData":{"mimeType":"image/png","data":%q}}`, data),
		}
	default:
		text := fmt.Sprintf(`{"type":"text","text":%q}`, l.text)
		kind := map[string]string{"human": "input_text", "assistant": "output_text"}[l.who]
		forms = map[string]string{
			"openai-chat": text, "anthropic-messages": text, listDialect: text,
			"openai-responses": fmt.Sprintf(`{"type":%q,"text":%q}`, kind, l.text),
			"gemini-contents":  fmt.Sprintf(`{"text":%q}`, l.text),
		}
	}
	return forms[d]
}

// stage is one case in one dialect.
type stage struct {
	*rig
	dialect string
}

func newStage(t *testing.T, dialect string, edit func(*router.Document)) *stage {
	s := &stage{rig: newRig(t), dialect: dialect}
	s.use(edit)
	return s
}

// show asks about a conversation, and gives what the model is shown: the messages
// with what the answer puts into them.
func (s *stage) show(messages string, more ...string) (a injectedAnswer, after string) {
	s.t.Helper()
	a, _ = s.inject(question(s.dialect, messages, more...))
	if s.dialect != listDialect {
		return a, applied(s.t, messages, &a)
	}
	var history, sent []json.RawMessage
	must(s.t, json.Unmarshal([]byte(messages), &history))
	for i, m := range history {
		for _, in := range a.Insert {
			if in.Before == i {
				sent = append(sent, in.Message)
			}
		}
		if !slices.Contains(a.Remove, i) {
			sent = append(sent, m)
		}
	}
	if a.Append != nil {
		sent = append(sent, a.Append)
	}
	var out []string
	for _, m := range sent {
		out = append(out, string(m))
	}
	return a, "[" + strings.Join(out, ",") + "]"
}

// sees holds what is shown of a conversation against the images that must be there,
// each once, and no other.
func (s *stage) sees(images [][]byte, lines ...line) (a injectedAnswer, after string) {
	s.t.Helper()
	a, after = s.show(spoken(s.dialect, lines...))
	for _, data := range images {
		if n := strings.Count(after, base64Of(data)); n != 1 {
			s.t.Errorf("an image is there %d times, not once: %+v, %.600s", n, a.Decision, after)
		}
	}
	if n := strings.Count(after, "iVBORw0KGgo"); n != len(images) {
		s.t.Errorf("%d images are shown; want %d: %+v", n, len(images), a.Decision)
	}
	return a, after
}
