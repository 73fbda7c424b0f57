// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"
	"strings"
)

// anthropic is Anthropic's messages.
type anthropic struct{}

func badMessage(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", message: message}
}

func (anthropic) unknown(p place, key string) *refusal {
	return badMessage(p.key(key).text + ": Extra inputs are not permitted")
}

func (anthropic) missing(p place, key string) *refusal {
	return badMessage(p.key(key).text + ": Field required")
}

func (anthropic) wrong(p place, want string) *refusal {
	return badMessage(p.text + ": Input should be " + want)
}

func (anthropic) refuse(w http.ResponseWriter, r *refusal) {
	kind := r.kind
	if r.status == http.StatusNotFound {
		kind = "not_found_error"
	}
	writeJSON(w, r.status, map[string]any{
		"type": "error", "request_id": "req_0001", "error": map[string]any{"type": kind, "message": r.message},
	})
}

// credential is in either of the headers that the vendor reads; newer SDKs send the second.
func (anthropic) credential(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return openAI{}.credential(r)
}

func (anthropic) list(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK, map[string]any{"has_more": false, "first_id": "claude-opus-5", "last_id": "claude-opus-5", "data": []any{
		map[string]any{"type": "model", "id": "claude-opus-5", "display_name": "Claude Opus 5", "created_at": "2026-08-01T00:00:00Z"},
	}})
}

const (
	countMembers = `model! messages! system tools tool_choice thinking cache_control output_config speed context_management mcp_servers`
	speakMembers = countMembers + ` max_tokens! stream temperature top_p top_k stop_sequences metadata service_tier container
		inference_geo diagnostics`
	// bindingBeta lets a request say what becomes of reasoning that is bound to another conversation.
	bindingBeta = "thinking-binding-controls-2026-08-01"
)

// anthropicTurn is what a body says so far.
type anthropicTurn struct {
	*reader
	h       *heard
	drop    bool     // blocks that do not fit are to be dropped
	of      int      // how many messages there are
	strict  bool     // the newest assistant message must begin with thinking
	pending []string // ids of calls that wait for their results
}

func (a anthropic) hear(s *Server, r *http.Request, body []byte) *heard {
	if r.Header.Get("Anthropic-Version") == "" {
		panic(badMessage("anthropic-version: header is required"))
	}
	t := &anthropicTurn{reader: &reader{words: a}, h: &heard{idPrefix: "toolu_01", idSize: 22, chained: true}}
	if s.options.TextOnly {
		t.textOnly = func(p place) *refusal { return badMessage(p.text + ": this model does not support image input") }
	}
	o, raws := t.document(body, "messages")
	t.h.counting = strings.HasSuffix(r.URL.Path, "/count_tokens")
	members := speakMembers
	if t.h.counting {
		members = countMembers
	}
	t.only(place{dotted: true}, o, members)
	t.h.model, t.h.stream = t.text(place{text: "model"}, o["model"]), yes(o, "stream")
	if n, ok := o["max_tokens"].(float64); !t.h.counting && (!ok || n < 1) {
		panic(badMessage("max_tokens: Input should be greater than or equal to 1"))
	}
	thinks := t.thinking(o["thinking"], r.Header.Values("Anthropic-Beta"))
	t.head(o)
	messages := t.list(place{text: "messages"}, o["messages"])
	if len(messages) == 0 {
		panic(badMessage("messages: at least one message is required"))
	}
	t.of = len(messages)
	for i, m := range messages {
		t.reader.message = i
		t.listen(i, m)
		t.h.hold(raws[i], true)
	}
	t.answered(len(messages))
	if t.cacheable > 4 {
		panic(badMessage("A maximum of 4 blocks with cache_control may be provided. Found " + itoa(t.cacheable) + "."))
	}
	t.h.images, t.h.unsigned = t.images, !thinks
	return t.h
}

// thinking reads how the model is to think, and says whether it does.
func (t *anthropicTurn) thinking(v any, betas []string) bool {
	if v == nil {
		return false
	}
	p := place{"thinking", true}
	o := t.object(p, v, "type! budget_tokens display block_binding")
	kind := t.oneOf(p.key("type"), o["type"], "enabled", "disabled", "adaptive")
	if binding, ok := o["block_binding"]; ok {
		if !strings.Contains(strings.Join(betas, ","), bindingBeta) {
			panic(t.unknown(p, "block_binding"))
		}
		b := t.object(p.key("block_binding"), binding, "prefix_mismatch_behavior")
		t.drop = member(b, "prefix_mismatch_behavior") == "drop_block"
	}
	t.strict = kind == "enabled"
	return kind != "disabled"
}

// head reads what stands before the messages; it is part of every prefix.
func (t *anthropicTurn) head(o map[string]any) {
	t.cache(place{"cache_control", true}, o)
	if tools, ok := o["tools"].([]any); ok {
		for i, tool := range tools {
			if tool, ok := tool.(map[string]any); ok {
				t.cache(place{"tools", true}.at(i), tool)
			}
		}
	}
	if system, ok := o["system"].([]any); ok {
		for i, block := range system {
			p := place{"system", true}.at(i)
			b := t.object(p, block, "type! text! cache_control citations")
			t.oneOf(p.key("type"), b["type"], "text")
			t.textBlock(p, b)
		}
	}
	t.h.base = canonical(encoded([]any{o["system"], o["tools"]}))
}

// cache counts marks and reads what they say.
func (t *anthropicTurn) cache(p place, o map[string]any) {
	if o["cache_control"] == nil {
		return
	}
	t.cacheable++
	mark := t.object(p.key("cache_control"), o["cache_control"], "type! ttl scope")
	t.oneOf(p.key("cache_control").key("type"), mark["type"], "ephemeral")
}

// listen reads one message.
func (t *anthropicTurn) listen(i int, v any) {
	p := place{"messages", true}.at(i)
	o := t.object(p, v, "role! content!")
	role := t.text(p.key("role"), o["role"])
	if role != "user" && role != "assistant" {
		panic(badMessage(`messages: Unexpected role "` + role + `". Allowed roles are "user" or "assistant".`))
	}
	if i == 0 && role != "user" {
		panic(badMessage("messages: first message must use the \"user\" role"))
	}
	if role == "assistant" {
		t.answered(i)
		t.h.turns++
	}
	if text, ok := o["content"].(string); ok {
		t.answered(i)
		if text == "" && (role == "user" || i < t.of-1) {
			panic(badMessage(p.text + ": all messages must have non-empty content except for the optional final assistant message"))
		}
		t.opened(role, text)
		return
	}
	blocks := t.list(p.key("content"), o["content"])
	if len(blocks) == 0 && (role == "user" || i < t.of-1) {
		panic(badMessage(p.text + ": all messages must have non-empty content except for the optional final assistant message"))
	}
	calls := len(t.pending) > 0
	for n, block := range blocks {
		at := p.key("content").at(n)
		b, ok := block.(map[string]any)
		if !ok {
			panic(t.wrong(at, "an object"))
		}
		if role == "assistant" {
			t.said(i, n, at, b)
		} else {
			t.asked(i, at, b)
		}
	}
	if role == "user" && calls {
		t.answered(i)
	}
}

func (t *anthropicTurn) opened(role, text string) {
	if role == "user" && t.h.opening == "" {
		t.h.opening = text
	}
}

// answered refuses calls without results right behind them.
func (t *anthropicTurn) answered(i int) {
	if len(t.pending) > 0 {
		panic(badMessage("messages." + itoa(i-1) + ": `tool_use` ids were found without `tool_result` blocks immediately after: " + strings.Join(t.pending, ", ") +
			". Each `tool_use` block must have a corresponding `tool_result` block in the next message."))
	}
}

// said reads one block of the assistant's.
func (t *anthropicTurn) said(i, n int, p place, b map[string]any) {
	switch kind := member(b, "type"); kind {
	case "thinking":
		t.only(p, b, "type! thinking! signature!")
		t.seal(i, p, t.text(p.key("signature"), b["signature"]))
	case "redacted_thinking":
		t.only(p, b, "type! data!")
		t.seal(i, p, t.text(p.key("data"), b["data"]))
	case "text":
		t.only(p, b, "type! text! citations cache_control")
		t.textBlock(p, b)
	case "tool_use":
		t.only(p, b, "type! id! name! input! cache_control caller toolset_name")
		t.cache(p, b)
		if _, ok := b["input"].(map[string]any); !ok {
			panic(t.wrong(p.key("tool_use").key("input"), "a valid dictionary"))
		}
		t.pending = append(t.pending, t.text(p.key("id"), b["id"]))
	case "server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result", "compaction":
		t.cache(p, b)
	case "tool_result":
		panic(badMessage("messages." + itoa(i) + ": `tool_result` blocks can only be in `user` messages"))
	default:
		panic(badMessage(p.text + ": Input tag '" + kind + "' found using 'type' does not match any of the expected tags of an `assistant` message"))
	}
	if kind := member(b, "type"); t.strict && n == 0 && i == t.of-2 && kind == "tool_use" {
		panic(badMessage(p.text + ".type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks)."))
	}
}

func (t *anthropicTurn) seal(i int, p place, signature string) {
	t.h.seals = append(t.h.seals, seal{place: p.text, signature: signature, before: i, dropped: t.drop})
}

func (t *anthropicTurn) textBlock(p place, b map[string]any) {
	text := t.text(p.key("text").key("text"), b["text"])
	if text == "" {
		panic(badMessage("messages: text content blocks must be non-empty"))
	}
	if strings.TrimSpace(text) == "" {
		panic(badMessage("messages: text content blocks must contain non-whitespace text"))
	}
	t.cache(p, b)
}

// asked reads one block of the user's.
func (t *anthropicTurn) asked(i int, p place, b map[string]any) {
	kind := member(b, "type")
	if kind != "tool_result" {
		t.answered(i) // results come first
	}
	switch kind {
	case "text":
		t.only(p, b, "type! text! citations cache_control")
		t.textBlock(p, b)
		t.opened("user", member(b, "text"))
	case "image":
		t.image(p, b)
	case "document", "search_result", "container_upload":
		t.cache(p, b)
	case "tool_result":
		t.result(p, b)
	case "tool_use", "thinking", "redacted_thinking":
		panic(badMessage("messages." + itoa(i) + ": `" + kind + "` blocks can only be in `assistant` messages"))
	default:
		panic(badMessage(p.text + ": Input tag '" + kind + "' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_result'"))
	}
}

// result reads the answer to a call.
func (t *anthropicTurn) result(p place, b map[string]any) {
	t.only(p, b, "type! tool_use_id! content is_error cache_control toolset_name")
	t.cache(p, b)
	id := t.text(p.key("tool_use_id"), b["tool_use_id"])
	at := -1
	for n, pending := range t.pending {
		if pending == id {
			at = n
		}
	}
	if at < 0 {
		panic(badMessage(p.text + ": unexpected `tool_use_id` found in `tool_result` blocks: " + id +
			". Each `tool_result` block must have a corresponding `tool_use` block in the previous message."))
	}
	t.pending = append(t.pending[:at:at], t.pending[at+1:]...)
	if _, ok := b["content"].(string); ok || b["content"] == nil {
		return
	}
	t.inResult = true
	for n, v := range t.list(p.key("content"), b["content"]) {
		inner := p.key("content").at(n)
		part, _ := v.(map[string]any)
		kind := member(part, "type")
		if kind != "text" && yes(b, "is_error") {
			panic(badMessage(p.text + ".tool_result: all content must be type \"text\" if `is_error` is true"))
		}
		switch kind {
		case "text":
			t.only(inner, part, "type! text! citations cache_control")
			t.textBlock(inner, part)
		case "image":
			t.image(inner, part)
		case "document", "search_result", "tool_reference":
			t.cache(inner, part)
		default:
			panic(badMessage(p.text + ".tool_result.content." + itoa(n) + ": Input tag '" + kind + "' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'"))
		}
	}
	t.inResult = false
}

// image reads an image block.
func (t *anthropicTurn) image(p place, b map[string]any) {
	t.only(p, b, "type! source! cache_control transformations")
	t.cache(p, b)
	at := p.key("image").key("source")
	source, ok := b["source"].(map[string]any)
	if !ok {
		panic(t.wrong(at, "an object"))
	}
	switch t.oneOf(at.key("type"), source["type"], "base64", "url", "file") {
	case "url":
		t.only(at, source, "type! url!")
		t.saw(p, Image{URL: t.text(at, source["url"])})
		return
	case "file":
		t.only(at, source, "type! file_id!")
		t.saw(p, Image{URL: t.text(at, source["file_id"])})
		return
	}
	t.only(at, source, "type! media_type! data!")
	declared := t.oneOf(at.key("base64").key("media_type"), source["media_type"], "image/jpeg", "image/png", "image/gif", "image/webp")
	raw, ok := decoded(t.text(at, source["data"]))
	if !ok {
		panic(badMessage(at.key("base64").text + ": invalid base64 data"))
	}
	kind := mediaType(raw)
	if kind == "" {
		panic(badMessage("Could not process image"))
	}
	if kind != declared {
		panic(badMessage(at.key("base64").key("data").text + ": The image was specified using the " + declared + " media type, but the image appears to be a " + kind + " image"))
	}
	t.saw(p, picture(raw, kind))
}

func (anthropic) forged(_ *heard, s seal) *refusal {
	return badMessage(s.place + ": Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".")
}
