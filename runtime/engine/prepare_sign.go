// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
)

// This file says what is done when a vendor finds that signed reasoning belongs to
// another conversation than the one that it was sent with.

// mostConversations bounds the conversations that are known to go without signed
// reasoning: their names take 32 bytes each.
const mostConversations = 4096

// conversation names the conversation of a request by how it began: its first
// human's words and the model.
type conversation [sha256.Size]byte

func (p *preparation) conversation() conversation {
	h := sha256.New()
	h.Write([]byte(string(p.request.Dialect) + "\x00" + p.entry.Route.String() + "\x00"))
	for i := range p.scanned.Turns {
		if t := &p.scanned.Turns[i]; t.Role == message.User && !t.ToolResults {
			h.Write(p.request.Body[t.Span.Start:t.Span.End])
			break
		}
	}
	return conversation(h.Sum(nil))
}

// signaturesRefused reports whether the request's conversation goes without its
// signed reasoning, since its vendor refused that once.
func (e *Engine) signaturesRefused(p *preparation) bool {
	if len(p.scanned.Signatures) == 0 || e.unsigned.Len() == 0 {
		return false
	}
	_, refused := e.unsigned.Get(p.conversation())
	return refused
}

// Retry gives another body to send once, where the upstream refused the request
// for signed reasoning that belongs to another conversation, and edits of ours may
// have made it one: the same without that reasoning. Later requests of the
// conversation go without it from the start. ok is false for any other reply.
func (p *Prepared) Retry(status int, reply []byte) (body *message.Spliced, ok bool) {
	of := p.of
	if status != statusBadRequest || !of.touched || len(of.scanned.Signatures) == 0 || p.Record.SignaturesDropped {
		return nil, false
	}
	if !refusesSignature(of.request.Dialect, reply) || of.spliced(true) != nil || !of.record.SignaturesDropped {
		return nil, false
	}
	of.engine.unsigned.Add(of.conversation(), struct{}{})
	p.Body, p.Record = of.body, of.record
	of.engine.options.Logger.Warn("signed reasoning refused; sent again without it", "route", p.Record.Route)
	return p.Body, true
}

const statusBadRequest = 400

// refusesSignature reports whether an error of a vendor says that signed reasoning
// does not belong to the conversation. Only OpenAI has a code for it; the others
// say it in the message of their error for any bad request:
//
//   - Anthropic: "messages.1.content.0: Invalid `signature` in `thinking` block", and
//     "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
//   - Gemini: "… thought signature is not valid", "Corrupted thought signature", "missing a thought_signature"
//   - OpenAI: code "invalid_encrypted_content"
func refusesSignature(d message.Dialect, reply []byte) bool {
	var said struct {
		Error struct {
			Type    string          `json:"type"`
			Status  string          `json:"status"`
			Code    json.RawMessage `json:"code"`
			Message string          `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(reply, &said) != nil {
		return false
	}
	text := strings.ToLower(said.Error.Message)
	switch d {
	case message.OpenAIResponses, message.OpenAIChat:
		return string(said.Error.Code) == `"invalid_encrypted_content"`
	case message.AnthropicMessages:
		return said.Error.Type == "invalid_request_error" && strings.Contains(text, "thinking") &&
			(strings.Contains(text, "signature") || strings.Contains(text, "cannot be modified"))
	case message.GeminiContents:
		return said.Error.Status == "INVALID_ARGUMENT" && (strings.Contains(text, "thought signature") || strings.Contains(text, "thought_signature"))
	}
	return false
}

// spliced lays the body out, without signed reasoning where that has been refused.
func (p *preparation) spliced(unsigned bool) *fault.Fault {
	edits := p.edits
	if unsigned {
		if drop := injection.DropSignatures(p.scanned, p.request.Body); len(drop) > 0 {
			edits = append(edits[:len(edits):len(edits)], drop...)
			p.record.SignaturesDropped = true
		}
	}
	body, err := message.Splice(p.request.Body, edits)
	if err != nil {
		return fault.As(err)
	}
	p.body, p.record.Edits = body, body.Ranges()
	return nil
}
