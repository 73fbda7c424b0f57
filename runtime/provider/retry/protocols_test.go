// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/responses"
)

// protocol is one wire protocol: its client, a reply that is an answer, and
// replies of status 200 that hold none, by what they lack.
type protocol struct {
	observer func(exchange.Endpoint) provider.Observer
	answer   string
	empty    map[string]string
	refused  map[string]string
	cut      map[string]string
	failed   map[string]string
}

var protocols = map[string]protocol{
	"chat": {
		observer: func(at exchange.Endpoint) provider.Observer { return chat.New(at) },
		answer:   `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"seen"}}]}`,
		empty: map[string]string{
			"no member choices":     `{"id":"x"}`,
			"choices that is null":  `{"choices":null}`,
			"choices that is empty": `{"choices":[]}`,
			"null for content":      `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":null}}]}`,
			"blank content":         `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":" \n"}}]}`,
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
		failed: map[string]string{"an error with a status for code": `{"error":{"code":502,"message":"x"}}`},
	},
	"responses": {
		observer: func(at exchange.Endpoint) provider.Observer { return responses.New(at) },
		answer:   `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"seen"}]}]}`,
		empty: map[string]string{
			"no member output":         `{"status":"completed"}`,
			"output that is empty":     `{"status":"completed","output":[]}`,
			"a message without a part": `{"status":"completed","output":[{"type":"message","content":[]}]}`,
			"nothing beside reasoning": `{"status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}]}]}`,
		},
		refused: map[string]string{
			"a refusal":        `{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]}`,
			"a content filter": `{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`,
		},
		cut: map[string]string{
			"text that ends at the limit": `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"type":"output_text","text":"se"}]}]}`,
			"a limit met in thought":      `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"reasoning","summary":[]}]}`,
		},
		failed: map[string]string{"a server error": `{"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}`},
	},
	"anthropic": {
		observer: func(at exchange.Endpoint) provider.Observer { return anthropic.New(at) },
		answer:   `{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"seen"}]}`,
		empty: map[string]string{
			"no member content":       `{"type":"message","stop_reason":"end_turn"}`,
			"content that is empty":   `{"type":"message","stop_reason":"end_turn","content":[]}`,
			"blank text":              `{"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":" \n"}]}`,
			"nothing beside thinking": `{"type":"message","stop_reason":"end_turn","content":[{"type":"thinking","thinking":"Hm.","signature":"x"}]}`,
		},
		refused: map[string]string{
			"the stop reason refusal":              `{"type":"message","stop_reason":"refusal","content":[]}`,
			"the stop reason refusal after a word": `{"type":"message","stop_reason":"refusal","content":[{"type":"text","text":"se"}]}`,
		},
		cut: map[string]string{
			"text that ends at the limit": `{"type":"message","stop_reason":"max_tokens","content":[{"type":"text","text":"se"}]}`,
			"a full context window":       `{"type":"message","stop_reason":"model_context_window_exceeded","content":[]}`,
		},
		failed: map[string]string{"an error of type overloaded": `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`},
	},
	"gemini": {
		observer: func(at exchange.Endpoint) provider.Observer { return gemini.New(at) },
		answer:   `{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"seen"}]}}]}`,
		empty: map[string]string{
			"no member candidates":     `{"modelVersion":"x"}`,
			"candidates that is empty": `{"candidates":[]}`,
			"no member content":        `{"candidates":[{"finishReason":"STOP"}]}`,
			"no part":                  `{"candidates":[{"finishReason":"STOP","content":{"parts":[]}}]}`,
			"nothing beside thoughts":  `{"candidates":[{"finishReason":"STOP","content":{"parts":[{"thought":true,"text":"Hm."}]}}]}`,
		},
		refused: map[string]string{
			"a blocked prompt":      `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`,
			"the reason SAFETY":     `{"candidates":[{"finishReason":"SAFETY"}]}`,
			"the reason SPII":       `{"candidates":[{"finishReason":"SPII","content":{"parts":[{"text":"se"}]}}]}`,
			"the reason RECITATION": `{"candidates":[{"finishReason":"RECITATION","content":{}}]}`,
		},
		cut: map[string]string{
			"text that ends at the limit": `{"candidates":[{"finishReason":"MAX_TOKENS","content":{"parts":[{"text":"se"}]}}]}`,
			"a limit met in thought":      `{"candidates":[{"finishReason":"MAX_TOKENS","content":{"role":"model"}}]}`,
		},
		failed: map[string]string{"an error of status 503": `{"error":{"code":503,"status":"UNAVAILABLE","message":"x"}}`},
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
	for name, reply := range p.failed {
		rows["a failure with status 200, by "+name] = row{server: answering(replies(http.StatusOK, reply)), attempts: 3, wait: twoBackoffs, reason: "UpstreamStatus", retryable: true}
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
