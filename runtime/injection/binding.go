// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import "github.com/visionoperator/vision-operator/runtime/message"

// BindingBeta is the value of the header anthropic-beta that a request with
// LetDrop's edits needs.
const BindingBeta = "thinking-binding-controls-2026-08-01"

// dropBlock is what asks Anthropic to leave reasoning out that does not belong to
// the conversation.
const dropBlock = `{"prefix_mismatch_behavior":"drop_block"}`

// LetDrop makes a request of Anthropic's Messages ask that signed reasoning which
// is bound to a different conversation be left out, where the error for it offers
// that; see "Fix a thinking block bound to a different conversation",
// https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/fix-bound-to-a-different-conversation.
// Every later request of the conversation has to ask it again. ok is false where
// the request turns thinking off: then the blocks are to be removed by hand, as
// DropSignatures does.
func LetDrop(body []byte) (edits []message.Edit, ok bool) {
	root := message.Span{Start: skipSpace(body, 0), End: len(body)}
	thinking := memberOf(body, root, "thinking")
	switch {
	case thinking.Len() == 0:
		member := `"thinking":{"type":"adaptive","block_binding":` + dropBlock + `}`
		return insertFirst(body, root, member), true
	case kindOf(body, thinking) == 'n':
		return []message.Edit{{Span: thinking, Segments: text(`{"type":"adaptive","block_binding":` + dropBlock + `}`)}}, true
	case kindOf(body, thinking) != '{' || stringOf(body, memberOf(body, thinking, "type")) == "disabled":
		return nil, false
	}
	binding := memberOf(body, thinking, "block_binding")
	if binding.Len() == 0 {
		return insertFirst(body, thinking, `"block_binding":`+dropBlock), true
	}
	behavior := memberOf(body, binding, "prefix_mismatch_behavior")
	switch {
	case kindOf(body, binding) != '{':
		return []message.Edit{{Span: binding, Segments: text(dropBlock)}}, true
	case behavior.Len() == 0:
		return insertFirst(body, binding, `"prefix_mismatch_behavior":"drop_block"`), true
	case stringOf(body, behavior) == "drop_block":
		return nil, false // it was asked already
	}
	return []message.Edit{{Span: behavior, Segments: text(`"drop_block"`)}}, true
}

// insertFirst puts a member before all others of an object.
func insertFirst(body []byte, object message.Span, member string) []message.Edit {
	at := object.Start + 1
	if body[skipSpace(body, at)] != '}' {
		member += ","
	}
	return []message.Edit{{Span: message.Span{Start: at, End: at}, Segments: text(member)}}
}
