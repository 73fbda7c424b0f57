// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"github.com/visionoperator/vision-operator/runtime/message"
)

// SkipSignature is what Gemini documents for a signature that is not there, as the
// JSON string itself: its 32 characters are base64url already (Thought Signatures,
// FAQs, https://ai.google.dev/gemini-api/docs/thought-signatures, and "Using REST or
// manual handling" of Vertex AI's page, which knows this one of the two alone).
const SkipSignature = "skip_thought_signature_validator"

// omitted stands where nothing of an assistant's message would be left; the vendor
// refuses an empty content and text of white space.
const omitted = `{"type":"text","text":"[reasoning left out]"}`

// DropSignatures says how signed reasoning is taken out of a request whose earlier
// part was edited, as the vendors document it:
//
//   - Anthropic: thinking and redacted_thinking blocks are left out. Their error
//     for signatures "bound to a different conversation" says "Remove the block";
//     all of them go, since "removing a thinking block from anywhere other than the
//     start of the run invalidates every thinking block after it" (What's new in
//     Claude Fable 5.1). With thinking of the type "enabled", the blocks of the
//     newest assistant message stay when it called tools: there, it must begin with
//     one (Extended thinking, "Toggling thinking modes in conversations"). With
//     "adaptive", and where thinking is always on, it need not (Adaptive thinking,
//     "Validation changes").
//   - OpenAI Responses: reasoning items with encrypted content are left out, whole;
//     they are optional in the input of a stateless conversation. The error has the
//     code invalid_encrypted_content. There is no documented way but sending none.
//   - Gemini: each signature becomes SkipSignature.
//
// A body without signatures gets no edits, and so does one whose signatures have
// been dropped.
func DropSignatures(r *message.Request, body []byte) []message.Edit {
	if len(r.Signatures) == 0 {
		return nil
	}
	kept := -1
	if r.Dialect == message.AnthropicMessages && manualThinking(body) {
		kept = callingTurn(r)
	}
	var spans []message.Span
	for _, s := range r.Signatures {
		if kept < 0 || s.Turn < kept {
			spans = append(spans, s.Span)
		}
	}
	switch r.Dialect {
	case message.AnthropicMessages:
		return without(body, spans, omitted)
	case message.OpenAIResponses:
		return without(body, spans, "")
	case message.GeminiContents:
		var edits []message.Edit
		for _, span := range spans {
			if stringOf(body, span) != SkipSignature {
				edits = append(edits, message.Edit{Span: span, Segments: text(`"` + SkipSignature + `"`)})
			}
		}
		return edits
	}
	return nil
}

// callingTurn is the first turn of the newest run of the assistant's, if that run
// called a tool; -1 otherwise.
func callingTurn(r *message.Request) int {
	end := len(r.Turns)
	for end > 0 && r.Turns[end-1].Role != message.Assistant {
		end--
	}
	first := end
	for first > 0 && r.Turns[first-1].Role == message.Assistant {
		first--
	}
	for _, c := range r.Calls {
		if c.Turn >= first && c.Turn < end {
			return first
		}
	}
	return -1
}

// manualThinking reports whether the request asks for thinking of the type "enabled".
func manualThinking(body []byte) bool {
	root := message.Span{Start: skipSpace(body, 0), End: len(body)}
	return stringOf(body, memberOf(body, memberOf(body, root, "thinking"), "type")) == "enabled"
}
