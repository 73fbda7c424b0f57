// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
)

// protocol is one wire protocol: its client, a reply that is an answer, and
// replies of status 200 that hold none, by what they lack.
type protocol struct {
	observer func(exchange.Endpoint) provider.Observer
	answer   string
	empty    map[string]string
	refused  map[string]string
	cut      map[string]string
}

var protocols = map[string]protocol{
	"chat": {
		observer: func(at exchange.Endpoint) provider.Observer { return chat.New(at) },
		answer:   `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"seen"}}]}`,
		empty: map[string]string{
			"no member choices":  `{"id":"x"}`,
			"choices that null":  `{"choices":null}`,
			"choices that empty": `{"choices":[]}`,
			"null for content":   `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":null}}]}`,
			"blank content":      `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":" \n"}}]}`,
		},
		refused: map[string]string{
			"a refusal":         `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":null,"refusal":"No."}}]}`,
			"a content filter":  `{"choices":[{"finish_reason":"content_filter","message":{"role":"assistant","content":"see"}}]}`,
			"a silenced answer": `{"choices":[{"finish_reason":"content_filter","message":{"role":"assistant"}}]}`,
		},
		cut: map[string]string{
			"text that ends at the limit":     `{"choices":[{"finish_reason":"length","message":{"role":"assistant","content":"se"}}]}`,
			"the limit before the first word": `{"choices":[{"finish_reason":"length","message":{"role":"assistant","content":""}}]}`,
		},
	},
}

// vendorRows are the rows of the fault table that differ by protocol.
func (p protocol) vendorRows() map[string]row {
	rows := map[string]row{}
	for name, reply := range p.empty {
		rows["an empty reply, by "+name] = row{server: answering(replies(http.StatusOK, reply)), attempts: 3, wait: twoBackoffs, reason: "Empty", retryable: true}
	}
	for name, reply := range p.refused {
		rows["a refusal, by "+name] = row{server: answering(replies(http.StatusOK, reply)), attempts: 1, reason: "Refused"}
	}
	for name, reply := range p.cut {
		rows["a cut reply, by "+name] = row{server: answering(replies(http.StatusOK, reply)), attempts: 1, reason: "Truncated"}
	}
	rows["an empty reply, then an answer"] = row{server: answering(replies(http.StatusOK, anyOf(p.empty)), replies(http.StatusOK, p.answer)),
		attempts: 2, wait: oneBackoff}
	return rows
}

// anyOf is one of the replies.
func anyOf(replies map[string]string) string {
	for _, reply := range replies {
		return reply
	}
	return ""
}
