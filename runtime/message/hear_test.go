// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// heard is a call, a result, a text or a signature as the listener below or a scan
// tells it. JSON values are as encoding/json writes them.
type heard struct {
	What, At, ID, Name   string
	Value                string // of the call, the result's object, the text's part, or the signature
	Inner                string // arguments, content, or the text's string
	Part, Parts          string
	Answers              string // where the call is that a result answers
	IsError, Takes, Null bool
	Unnumbered           bool
}

// spoken is a message and what is in it.
type spoken struct {
	role    string // assistant, human, system or "" for the rest
	things  []heard
	results bool
}

// listen finds them in a request's decoded form, by rules that were written down
// anew: what the differential tests hold Scan against.
func listen(d Dialect, root map[string]any) []heard {
	var turns []spoken
	switch d {
	case OpenAIChat:
		for i, m := range list(root["messages"]) {
			turns = append(turns, listenChat(fmt.Sprintf("messages[%d]", i), m.(map[string]any)))
		}
	case OpenAIResponses:
		if s, ok := root["input"].(string); ok {
			return []heard{{What: "text", At: "input", Value: written(s), Inner: written(s)}}
		}
		for i, m := range list(root["input"]) {
			turns = append(turns, listenItem(fmt.Sprintf("input[%d]", i), m.(map[string]any)))
		}
	case AnthropicMessages:
		for i, m := range list(root["messages"]) {
			turns = append(turns, listenBlocks(fmt.Sprintf("messages[%d].content", i), m.(map[string]any)))
		}
	case GeminiContents:
		at, root := counted(root)
		if c, ok := root["contents"].(map[string]any); ok {
			turns = append(turns, listenParts(at+"contents.parts", c))
		}
		for i, c := range list(root["contents"]) {
			turns = append(turns, listenParts(fmt.Sprintf("%scontents[%d].parts", at, i), c.(map[string]any)))
		}
	}
	var all []heard
	for i := range turns {
		turns[i].prune()
	}
	for i := 0; i < len(turns); {
		start := i
		for i < len(turns) && turns[i].role == "assistant" {
			i++
		}
		run := turns[start:i]
		for start = i; i < len(turns) && turns[i].role != "assistant"; {
			i++
		}
		matchUp(run, turns[start:i])
	}
	for _, t := range turns {
		all = append(all, t.things...)
	}
	return all
}

// prune drops what the role cannot say.
func (t *spoken) prune() {
	var kept []heard
	for _, h := range t.things {
		switch h.What {
		case "call", "signature":
			if t.role != "assistant" {
				continue
			}
		case "result":
			if t.role == "assistant" || t.role == "system" {
				continue
			}
		case "text":
			if t.role != "human" || t.results {
				continue
			}
		}
		kept = append(kept, h)
	}
	t.things = kept
}

// matchUp finds for each result its call, one by one.
func matchUp(run, rest []spoken) {
	find := func(turns []spoken, what, id, name string) (found []*heard) {
		for i := range turns {
			for j := range turns[i].things {
				if h := &turns[i].things[j]; h.What == what && h.ID == id && (id != "" || h.Unnumbered && h.Name == name) {
					found = append(found, h)
				}
			}
		}
		return found
	}
	for _, t := range rest {
		for _, h := range t.things {
			if h.What != "result" || h.ID == "" && (h.Name == "" || !h.Unnumbered) {
				continue
			}
			calls, results := find(run, "call", h.ID, h.Name), find(rest, "result", h.ID, h.Name)
			if len(calls) == 0 || h.ID == "" && len(calls) != len(results) {
				continue
			}
			for n, r := range results {
				r.Answers = calls[min(n, len(calls)-1)].At
			}
		}
	}
}

func roleHeard(v any) string {
	switch short(v) {
	case "assistant":
		return "assistant"
	case "user":
		return "human"
	case "system", "developer":
		return "system"
	}
	return ""
}

func listenChat(at string, m map[string]any) spoken {
	t := spoken{role: roleHeard(m["role"])}
	for i, c := range list(m["tool_calls"]) {
		c, ok := c.(map[string]any)
		if !ok {
			continue
		}
		h := heard{What: "call", At: fmt.Sprintf("%s.tool_calls[%d]", at, i), ID: short(c["id"]), Value: written(c)}
		for _, kind := range []string{"function", "custom"} {
			if f, ok := c[kind].(map[string]any); ok {
				h.Name, h.Inner = short(f["name"]), written(either(f, "arguments", "input"))
			}
		}
		t.things = append(t.things, h)
	}
	if f, ok := m["function_call"].(map[string]any); ok {
		t.things = append(t.things, heard{What: "call", At: at + ".function_call", Name: short(f["name"]), Value: written(f), Inner: written(f["arguments"]), Unnumbered: true})
	}
	if r := short(m["role"]); r == "tool" || r == "function" {
		h := heard{What: "result", At: at, ID: short(m["tool_call_id"]), Name: short(m["name"]), Value: written(m), Takes: r == "tool", Unnumbered: r == "function"}
		h.content(m, "content")
		t.things = append(t.things, h)
	}
	t.texts(at+".content", m["content"])
	return t
}

// content is a result's.
func (h *heard) content(m map[string]any, name string) {
	v, there := m[name]
	h.Inner, h.Null = written(v), there && v == nil
}

// texts are OpenAI's and Anthropic's: a string, or parts.
func (t *spoken) texts(at string, content any) {
	if s, ok := content.(string); ok {
		t.things = append(t.things, heard{What: "text", At: at, Value: written(s), Inner: written(s)})
	}
	for i, p := range list(content) {
		t.textPart(fmt.Sprintf("%s[%d]", at, i), object(p))
	}
}

func (t *spoken) textPart(at string, p map[string]any) {
	text, ok := p["text"].(string)
	for _, other := range []string{"image_url", "file", "file_data", "file_url", "input_audio", "audio_url", "video_url"} {
		ok = ok && p[other] == nil
	}
	_, file := p["file_id"].(string)
	if kind := short(p["type"]); ok && !file && (kind == "" || kind == "text" || kind == "input_text" || kind == "output_text") {
		t.things = append(t.things, heard{What: "text", At: at, Value: written(p), Inner: written(text)})
	}
}

func listenItem(at string, m map[string]any) spoken {
	kind, role := short(m["type"]), short(m["role"])
	t := spoken{role: "assistant"}
	switch {
	case kind == "message" || kind == "" && role != "":
		t.role = roleHeard(role)
		t.results = role == "tool" || role == "function"
		t.texts(at+".content", m["content"])
		if p, ok := m["content"].(map[string]any); ok {
			t.textPart(at+".content", p)
		}
		return t
	case kind == "" || strings.HasSuffix(kind, "_output") || kind == "mcp_approval_response":
		t.role = ""
	}
	names := map[string]string{"computer_call": "computer", "local_shell_call": "shell", "shell_call": "shell", "apply_patch_call": "apply_patch"}
	switch {
	case kind == "function_call" || kind == "custom_tool_call":
		t.things = append(t.things, heard{What: "call", At: at, ID: short(m["call_id"]), Name: short(m["name"]), Value: written(m), Inner: written(either(m, "arguments", "input"))})
	case names[kind] != "":
		t.things = append(t.things, heard{What: "call", At: at, ID: short(m["call_id"]), Name: names[kind], Value: written(m)})
	case strings.HasSuffix(kind, "_call_output"):
		h := heard{What: "result", At: at, ID: short(m["call_id"]), Value: written(m), Takes: kind == "function_call_output" || kind == "custom_tool_call_output"}
		if kind == "local_shell_call_output" && h.ID == "" {
			h.ID = short(m["id"])
		}
		h.content(m, "output")
		t.things = append(t.things, h)
	case kind == "reasoning":
		if s, _ := m["encrypted_content"].(string); s != "" {
			t.things = append(t.things, heard{What: "signature", Value: written(m)})
		}
	}
	return t
}

func listenBlocks(at string, m map[string]any) spoken {
	t := spoken{role: roleHeard(m["role"]), results: len(list(m["content"])) > 0}
	if s, ok := m["content"].(string); ok {
		t.things = append(t.things, heard{What: "text", At: at, Value: written(s), Inner: written(s)})
	}
	for i, b := range list(m["content"]) {
		b, at := b.(map[string]any), fmt.Sprintf("%s[%d]", at, i)
		kind := short(b["type"])
		t.results = t.results && kind == "tool_result"
		switch kind {
		case "text":
			if s, ok := b["text"].(string); ok {
				t.things = append(t.things, heard{What: "text", At: at, Value: written(b), Inner: written(s)})
			}
		case "tool_use":
			t.things = append(t.things, heard{What: "call", At: at, ID: short(b["id"]), Name: short(b["name"]), Value: written(b), Inner: written(b["input"])})
		case "tool_result":
			_, object := b["content"].(map[string]any)
			is, _ := b["is_error"].(bool)
			h := heard{What: "result", At: at, ID: short(b["tool_use_id"]), Value: written(b), IsError: is, Takes: !object}
			h.content(b, "content")
			t.things = append(t.things, h)
		case "thinking", "redacted_thinking":
			if s, _ := b["signature"].(string); s != "" || kind == "redacted_thinking" {
				t.things = append(t.things, heard{What: "signature", Value: written(b)})
			}
		}
	}
	return t
}

func listenParts(at string, c map[string]any) spoken {
	word, _ := c["role"].(string)
	t := spoken{role: map[string]string{"": "human", "user": "human", "model": "assistant", "system": "system"}[short(word)]}
	parts := list(c["parts"])
	single, ok := c["parts"].(map[string]any)
	if ok {
		parts = []any{single}
	}
	t.results = len(parts) > 0
	for i, p := range parts {
		p, at := p.(map[string]any), fmt.Sprintf("%s[%d]", at, i)
		if single != nil {
			at = strings.TrimSuffix(at, "[0]")
		}
		thought, _ := p["thought"].(bool)
		if s, ok := p["text"].(string); ok && !thought {
			t.things = append(t.things, heard{What: "text", At: at, Value: written(p), Inner: written(s)})
		}
		if s, _ := either(p, "thoughtSignature", "thought_signature").(string); s != "" {
			t.things = append(t.things, heard{What: "signature", Value: written(s)})
		}
		response := false
		for _, name := range []string{"functionCall", "function_call"} {
			if f, ok := p[name].(map[string]any); ok {
				t.things = append(t.things, heard{What: "call", At: at + "." + name, ID: short(f["id"]), Name: short(f["name"]), Value: written(f), Inner: written(f["args"]), Unnumbered: true})
			}
		}
		for _, name := range []string{"functionResponse", "function_response"} {
			if f, ok := p[name].(map[string]any); ok {
				response = true
				h := heard{What: "result", At: at + "." + name, ID: short(f["id"]), Name: short(f["name"]), Value: written(f), Takes: true, Unnumbered: true, Part: written(p), Parts: written(c["parts"])}
				h.content(f, "parts")
				t.things = append(t.things, h)
			}
		}
		t.results = t.results && response
	}
	return t
}

// written is a value as encoding/json writes it, "" for none.
func written(v any) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// heardBy renders what a scan found as the listener does.
func heardBy(r *Request, body []byte) []heard {
	var out []heard
	at := func(s Span) string {
		if s.Len() == 0 {
			return ""
		}
		d := json.NewDecoder(bytes.NewReader(body[s.Start:s.End]))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil || d.InputOffset() != int64(s.Len()) {
			return fmt.Sprintf("%v is no value: %q", s, body[s.Start:s.End])
		}
		return written(v)
	}
	for n, c := range r.Calls {
		out = append(out, heard{What: "call", At: r.CallAt(n), ID: c.ID, Name: c.Name, Value: at(c.Span), Inner: at(c.Arguments), Unnumbered: c.unnumbered})
	}
	for n, a := range r.Results {
		h := heard{What: "result", At: r.ResultAt(n), ID: a.CallID, Name: a.Name, Value: at(a.Object), Inner: at(a.Content), Part: at(a.Part), Parts: at(a.Parts),
			IsError: a.IsError, Takes: a.Takes, Null: a.Null.Len() > 0, Unnumbered: a.unnumbered}
		if a.Call >= 0 {
			h.Answers = r.CallAt(a.Call)
		}
		out = append(out, h)
	}
	for n, t := range r.Texts {
		out = append(out, heard{What: "text", At: r.TextAt(n), Value: at(t.Part), Inner: at(t.Value)})
	}
	for _, s := range r.Signatures {
		out = append(out, heard{What: "signature", Value: at(s.Span)})
	}
	return out
}
