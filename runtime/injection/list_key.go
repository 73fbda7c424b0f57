// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// listKeys makes the keys of one list's sights, by which images are pinned: as keys
// does, of what a list has.
type listKeys struct {
	list *List
	// seen counts what was the same before: calls by name and arguments, and by id too.
	seen map[string]int
	// human is what the first human said, nil before it is needed.
	human *string
}

// called is the key of a call: the digest of tool, call id and arguments, the last as
// canonical JSON; of an id that others may have, with the conversation's beginning,
// how often the same was called before, and what the tool answered.
func (k *listKeys) called(call *listCall, answer *listMessage) (key string, weak bool) {
	var arguments any
	canonical := call.arguments
	if json.Unmarshal(call.arguments, &arguments) == nil {
		canonical, _ = json.Marshal(arguments) // what was just read can be written
	}
	named := []any{"list", call.name, call.id, string(canonical)}
	asked := string(written(named[1:2])) + string(canonical)
	ordinal, again := k.count(asked), k.count(string(written(named)))
	if weak = weakID(call.id, call.name); weak {
		named = append(named, k.conversation(), ordinal, k.said(answer))
	} else if again > 0 {
		named = append(named, again)
	}
	sum := sha256.Sum256(written(named))
	return hex.EncodeToString(sum[:]), weak
}

// count counts how often it was asked for the same thing, from 0.
func (k *listKeys) count(thing string) int {
	if k.seen == nil {
		k.seen = map[string]int{}
	}
	n := k.seen[thing]
	k.seen[thing] = n + 1
	return n
}

// conversation is the first thing that a human said.
func (k *listKeys) conversation() string {
	if k.human == nil {
		said := ""
		for i := range k.list.messages {
			if m := &k.list.messages[i]; m.role == message.User {
				said = k.said(m)
				break
			}
		}
		k.human = &said
	}
	return *k.human
}

// said is a message's text, or its texts; "" of none.
func (k *listKeys) said(m *listMessage) string {
	switch {
	case m == nil:
		return ""
	case kindOf(k.list.body, m.content) == '"':
		return stringOf(k.list.body, m.content)
	}
	return strings.Join(textsOf(k.list.body, m.content), "\n")
}
