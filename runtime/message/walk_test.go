// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/json"
	"fmt"
	"strings"
)

// seen is an image as the walker below or a scan tells it.
type seen struct {
	ID, Source, MediaType, Detail, CallID, Data, Digest string
	InToolResult, InError                               bool
}

// walk finds the images of a request in its decoded form, without a scanner and
// by rules that were written down anew: what the differential tests hold Scan
// against. It keeps no order, as maps have none.
// The second result is false for a body with a part of two kinds, which the vendor
// refuses: which of them a reader takes for the part depends on their order, and a map has none.
func walk(d Dialect, root map[string]any) (found []seen, decided bool) {
	w := &walker{}
	switch d {
	case OpenAIChat:
		w.chat(root)
	case OpenAIResponses:
		w.responses(root)
	case AnthropicMessages:
		w.anthropic(root)
	case GeminiContents:
		w.gemini(root)
	}
	return w.found, !w.twofold
}

type walker struct {
	found   []seen
	twofold bool
}

func (w *walker) chat(root map[string]any) {
	for i, m := range list(root["messages"]) {
		m := m.(map[string]any)
		first := len(w.found)
		for j, p := range list(m["content"]) {
			w.openAIPart(fmt.Sprintf("messages[%d].content[%d]", i, j), object(p))
		}
		if r := short(m["role"]); r == "tool" || r == "function" {
			w.answered(first, short(m["tool_call_id"]), false)
		}
	}
}

func (w *walker) responses(root map[string]any) {
	for i, m := range list(root["input"]) {
		m := m.(map[string]any)
		first := len(w.found)
		for _, member := range []string{"content", "output"} {
			id := fmt.Sprintf("input[%d].%s", i, member)
			for j, p := range list(m[member]) {
				w.openAIPart(fmt.Sprintf("%s[%d]", id, j), object(p))
			}
			if p, ok := m[member].(map[string]any); ok {
				w.openAIPart(id, p)
			}
		}
		kind, role := short(m["type"]), short(m["role"])
		isTool := strings.HasSuffix(kind, "_output") || kind == "mcp_approval_response"
		if kind == "message" || kind == "" {
			isTool = role == "tool" || role == "function"
		}
		if isTool {
			call := short(m["call_id"])
			if kind == "local_shell_call_output" && call == "" {
				call = short(m["id"])
			}
			w.answered(first, call, false)
		}
	}
}

func (w *walker) openAIPart(id string, p map[string]any) {
	s := seen{ID: id, Detail: strings.ToLower(short(p["detail"]))}
	switch v := p["image_url"].(type) {
	case nil:
		switch short(p["type"]) {
		case "image_url", "input_image", "computer_screenshot":
			s.Source = "unknown"
			if _, ok := p["file_id"].(string); ok {
				s.Source = "file"
			}
			w.found = append(w.found, s)
		}
		return
	case string:
		s.url(v)
	case map[string]any:
		s.urlObject(v)
		if d := strings.ToLower(short(v["detail"])); d != "" {
			s.Detail = d
		}
	default:
		s.Source = "unknown"
	}
	w.found = append(w.found, s)
}

func (s *seen) urlObject(v map[string]any) {
	inner, _ := v["url"].(map[string]any)
	for _, facts := range []map[string]any{inner, v} {
		if digest, ok := facts["sha256"].(string); ok {
			s.facts(digest, facts)
			return
		}
	}
	s.Source = "unknown"
	if url, ok := v["url"].(string); ok {
		s.url(url)
	} else if _, ok := v["file_id"].(string); ok {
		s.Source = "file"
	}
}

func (s *seen) facts(digest string, facts map[string]any) {
	s.Source, s.Digest = "facts", strings.ToLower(digest)
	for _, name := range []string{"mediaType", "media_type", "mimeType", "mime_type"} {
		if v, ok := facts[name]; ok {
			s.MediaType = cut(short(v))
		}
	}
}

// url follows RFC 2397 and the vendors' ways with it.
func (s *seen) url(url string) {
	s.Source = "unknown"
	at := strings.IndexByte(url, ':')
	if at < 0 {
		return
	}
	scheme, rest := strings.ToLower(url[:at]), url[at+1:]
	if scheme == "http" || scheme == "https" {
		s.Source = "remote"
	}
	comma := strings.IndexByte(rest, ',')
	if scheme != "data" || comma < 0 {
		return
	}
	parts := strings.Split(rest[:comma], ";")
	s.MediaType = strings.ToLower(strings.TrimSpace(parts[0]))
	if len(parts) > 1 && strings.EqualFold(strings.TrimSpace(parts[len(parts)-1]), "base64") && comma+1 < len(rest) {
		s.Source, s.Data = "inline", rest[comma+1:]
	}
}

func (w *walker) anthropic(root map[string]any) {
	w.blocks("system", root["system"])
	for i, m := range list(root["messages"]) {
		w.blocks(fmt.Sprintf("messages[%d].content", i), m.(map[string]any)["content"])
	}
}

func (w *walker) blocks(id string, v any) {
	for i, b := range list(v) {
		w.block(fmt.Sprintf("%s[%d]", id, i), b.(map[string]any))
	}
}

func (w *walker) block(id string, b map[string]any) {
	first, kind := len(w.found), short(b["type"])
	w.blocks(id+".content", b["content"])
	source, _ := b["source"].(map[string]any)
	w.blocks(id+".source.content", source["content"])
	if kind == "tool_result" {
		is, _ := b["is_error"].(bool)
		w.answered(first, short(b["tool_use_id"]), is)
	}
	if kind != "image" {
		return
	}
	s := seen{ID: id, Source: "unknown"}
	data, _ := source["data"].(string)
	url, _ := source["url"].(string)
	_, file := source["file_id"].(string)
	switch form := short(source["type"]); {
	case form == "facts":
		digest, _ := source["sha256"].(string)
		s.facts(digest, source)
	case form == "base64":
		for _, name := range []string{"media_type", "mediaType", "mimeType", "mime_type"} {
			if v, ok := source[name]; ok {
				s.MediaType = cut(short(v))
			}
		}
		if data != "" {
			s.Source, s.Data = "inline", data
		}
	case form == "url":
		if s.url(url); s.Source != "remote" {
			s = seen{ID: id, Source: "unknown"}
		}
	case form == "file" && file:
		s.Source = "file"
	}
	w.found = append(w.found, s)
}

// counted is the request of generateContent that one of countTokens holds, and the
// beginning of ids in it.
func counted(root map[string]any) (at string, within map[string]any) {
	for _, name := range []string{"generateContentRequest", "generate_content_request"} {
		if within, ok := root[name].(map[string]any); ok && root["contents"] == nil {
			return name + ".", within
		}
	}
	return "", root
}

func (w *walker) gemini(root map[string]any) {
	at, root := counted(root)
	if c, ok := root["contents"].(map[string]any); ok {
		w.content(at+"contents", c)
	}
	for i, c := range list(root["contents"]) {
		w.content(fmt.Sprintf("%scontents[%d]", at, i), c.(map[string]any))
	}
	for _, name := range []string{"systemInstruction", "system_instruction"} {
		if c, ok := root[name].(map[string]any); ok {
			w.content(at+name, c)
		}
	}
	config, _ := either(root, "generationConfig", "generation_config").(map[string]any)
	detail := resolution(either(config, "mediaResolution", "media_resolution"))
	for i := range w.found {
		if w.found[i].Detail == "" {
			w.found[i].Detail = detail
		}
	}
}

func (w *walker) content(id string, c map[string]any) {
	first := len(w.found)
	w.parts(id+".parts", c["parts"])
	if r := short(c["role"]); r == "tool" || r == "function" {
		for i := first; i < len(w.found); i++ {
			w.found[i].InToolResult = true
		}
	}
}

func (w *walker) parts(id string, v any) {
	if p, ok := v.(map[string]any); ok {
		w.part(id, p)
	}
	for i, p := range list(v) {
		w.part(fmt.Sprintf("%s[%d]", id, i), p.(map[string]any))
	}
}

func (w *walker) part(id string, p map[string]any) {
	first := len(w.found)
	for _, name := range []string{"functionResponse", "function_response"} {
		if f, ok := p[name].(map[string]any); ok {
			w.parts(id+"."+name+".parts", f["parts"])
			w.answered(first, short(f["id"]), false)
		}
	}
	inline, isInline := either(p, "inlineData", "inline_data").(map[string]any)
	file, isFile := either(p, "fileData", "file_data").(map[string]any)
	s := seen{ID: id, Source: "unknown", Detail: resolution(either(p, "mediaResolution", "media_resolution"))}
	w.twofold = w.twofold || isFile && isInline
	blob := inline
	if isFile {
		blob = file
	}
	for _, name := range []string{"mimeType", "mime_type", "mediaType", "media_type"} {
		if v, ok := blob[name]; ok {
			s.MediaType = cut(short(v))
		}
	}
	image := strings.HasPrefix(s.MediaType, "image/")
	if isFile {
		if uri, ok := either(file, "fileUri", "file_uri").(string); ok {
			s.Source = "remote"
			if strings.HasPrefix(strings.ToLower(uri), "https://generativelanguage.googleapis.com/") {
				s.Source = "file"
			}
		}
	} else if isInline {
		image = image || s.MediaType == ""
		if data, _ := inline["data"].(string); data != "" {
			s.Source, s.Data = "inline", data
		}
		if digest, ok := inline["sha256"].(string); ok {
			s.Data = ""
			s.facts(digest, inline)
		}
	}
	if image {
		w.found = append(w.found, s)
	}
}

func resolution(v any) string {
	if m, ok := v.(map[string]any); ok {
		v = m["level"]
	}
	word := strings.TrimPrefix(strings.ToLower(short(v)), "media_resolution_")
	if word == "unspecified" {
		return ""
	}
	return word
}

func (w *walker) answered(first int, call string, isError bool) {
	for i := first; i < len(w.found); i++ {
		w.found[i].InToolResult, w.found[i].CallID, w.found[i].InError = true, call, isError
	}
}

func either(m map[string]any, one, other string) any {
	if v, ok := m[one]; ok {
		return v
	}
	return m[other]
}

func list(v any) []any { l, _ := v.([]any); return l }

// object is empty for what is none.
func object(v any) map[string]any { o, _ := v.(map[string]any); return o }

func short(v any) string {
	if s, ok := v.(string); ok && len(s) <= 256 {
		return s
	}
	return ""
}

func cut(media string) string {
	media, _, _ = strings.Cut(media, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// seenBy renders what a scan found as the walker does.
func seenBy(r *Request, body []byte) []seen {
	out := []seen{}
	for n, i := range r.Images {
		s := seen{ID: r.ID(n), Source: string(i.Source), MediaType: i.MediaType, Detail: i.Detail, CallID: i.CallID, InToolResult: i.InToolResult, InError: i.InError}
		if i.Source == Inline {
			quoted := append(append([]byte{'"'}, body[i.Data.Start:i.Data.End]...), '"')
			if err := json.Unmarshal(quoted, &s.Data); err != nil {
				panic(err)
			}
			if i.DataBytes != len(s.Data) || i.Escaped != (strings.IndexByte(string(quoted), '\\') >= 0) {
				s.Data = "wrong Escaped or DataBytes"
			}
		}
		if i.Facts != nil {
			s.Digest = i.Facts.SHA256
		}
		out = append(out, s)
	}
	return out
}
