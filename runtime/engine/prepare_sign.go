// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
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

// conversation names the conversation of a request by how it began: what its first
// human wrote and showed, and the model. What may stand beside that in one request and
// not in the next, such as a mark for the vendor's cache, is no part of it.
type conversation [sha256.Size]byte

func (p *preparation) conversation() conversation {
	h := sha256.New()
	h.Write([]byte(string(p.request.Dialect) + "\x00" + p.entry.Route.String() + "\x00"))
	for i := range p.scanned.Turns {
		if p.scanned.Turns[i].Human() {
			for _, span := range p.content(i) {
				h.Write(p.request.Body[span.Start:span.End])
				h.Write([]byte{0}) // which no JSON holds
			}
			break
		}
	}
	return conversation(h.Sum(nil))
}

// content is what a turn says and shows; the whole turn where that is neither text
// nor image data.
func (p *preparation) content(turn int) []message.Span {
	var spans []message.Span
	for i := range p.scanned.Texts {
		if t := &p.scanned.Texts[i]; t.Turn == turn {
			spans = append(spans, t.Value)
		}
	}
	for i := range p.scanned.Images {
		if m := &p.scanned.Images[i]; m.Turn == turn && m.Data.Len() > 0 {
			spans = append(spans, m.Data)
		}
	}
	if spans == nil {
		spans = append(spans, p.scanned.Turns[turn].Span)
	}
	return spans
}

// unsignedWay is how a conversation goes without its signed reasoning.
type unsignedWay int

const (
	// dropped: what is signed is left out of the body.
	dropped unsignedWay = iota + 1
	// letDrop: the vendor is asked to leave out what does not fit.
	letDrop
)

// wayWithout is how the request's conversation goes without its signed reasoning,
// since its vendor refused that once; 0 when it did not.
func (e *Engine) wayWithout(p *preparation) unsignedWay {
	if len(p.scanned.Signatures) == 0 || e.unsigned.Len() == 0 {
		return 0
	}
	way, _ := e.unsigned.Get(p.conversation())
	return way
}

// MayRetry says that a reply of a status may be one that Retry has an answer to: the
// request has signed reasoning, and edits of ours.
func (p *Prepared) MayRetry(status int) bool {
	return status == statusBadRequest && p.of.touched && len(p.of.scanned.Signatures) > 0 && !p.Record.SignaturesDropped
}

// Retry gives another body to send once, where the upstream refused the request
// for signed reasoning that belongs to another conversation, and edits of ours may
// have made it one: the same without that reasoning, in the way that the vendor
// documents. Later requests of the conversation go the same way from the start. ok
// is false for any other reply.
func (p *Prepared) Retry(status int, reply []byte) (body *message.Spliced, ok bool) {
	of := p.of
	if !p.MayRetry(status) {
		return nil, false
	}
	way := refusesSignature(of.request.Dialect, reply)
	if way == letDrop {
		if _, ok := injection.LetDrop(of.request.Body); !ok { // thinking is off, or it was asked already
			way = dropped
		}
	}
	if way == 0 || of.spliced(way) != nil || !of.record.SignaturesDropped {
		return nil, false
	}
	of.engine.unsigned.Add(of.conversation(), way)
	p.Body, p.Record = of.body, of.record
	of.engine.options.Logger.Warn("signed reasoning refused; sent again without it", "route", p.Record.Route, "edits", p.Record.Edits)
	return p.Body, true
}

// Header is what the body needs said beside the client's headers; nil for nothing.
func (p *Prepared) Header() http.Header { return p.of.header }

const statusBadRequest = 400

// refusesSignature says what an error of a vendor's, which says that signed
// reasoning does not belong to the conversation, asks for; 0 for any other error.
// Only OpenAI has a code for it; the others say it in the message of their error
// for any bad request:
//
//   - Anthropic: "messages.1.content.0: Invalid `signature` in `thinking` block", and
//     behind that "The block is bound to a different conversation. Remove the block, or
//     set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block"."; or
//     "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
//   - Gemini: "… thought signature is not valid", "Corrupted thought signature", "missing a thought_signature"
//   - OpenAI: code "invalid_encrypted_content"
func refusesSignature(d message.Dialect, reply []byte) unsignedWay {
	var said struct {
		Error struct {
			Type    string          `json:"type"`
			Status  string          `json:"status"`
			Code    json.RawMessage `json:"code"`
			Message string          `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(reply, &said) != nil {
		return 0
	}
	text := strings.ToLower(said.Error.Message)
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case d == message.OpenAIResponses && string(said.Error.Code) == `"invalid_encrypted_content"`:
		return dropped
	case d == message.AnthropicMessages && said.Error.Type == "invalid_request_error" && has("prefix_mismatch_behavior"):
		return letDrop
	case d == message.AnthropicMessages && said.Error.Type == "invalid_request_error" && has("thinking") && (has("signature") || has("cannot be modified")):
		return dropped
	case d == message.GeminiContents && said.Error.Status == "INVALID_ARGUMENT" && (has("thought signature") || has("thought_signature")):
		return dropped
	}
	return 0
}

// spliced lays the body out, without signed reasoning where that has been refused.
func (p *preparation) spliced(way unsignedWay) *fault.Fault {
	var more []message.Edit
	switch way {
	case dropped:
		more = injection.DropSignatures(p.scanned, p.request.Body)
	case letDrop:
		if more, _ = injection.LetDrop(p.request.Body); len(more) > 0 {
			p.header = http.Header{"Anthropic-Beta": {injection.BindingBeta}}
		}
	}
	p.record.SignaturesDropped = len(more) > 0
	body, err := message.Splice(p.request.Body, append(p.edits[:len(p.edits):len(p.edits)], more...))
	if err != nil {
		return fault.As(err)
	}
	p.body, p.record.Edits = body, body.Ranges()
	return nil
}
