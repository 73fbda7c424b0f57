// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

type (
	reply struct {
		Candidates     exchange.Array[candidate] `json:"candidates"`
		PromptFeedback struct {
			BlockReason string `json:"blockReason"`
		} `json:"promptFeedback"`
		UsageMetadata struct {
			PromptTokenCount     exchange.Count `json:"promptTokenCount"`
			CandidatesTokenCount exchange.Count `json:"candidatesTokenCount"`
			ThoughtsTokenCount   exchange.Count `json:"thoughtsTokenCount"`
		} `json:"usageMetadata"`
		ModelVersion string          `json:"modelVersion"`
		Error        json.RawMessage `json:"error"`
	}
	// candidate is one answer. Its content may be absent, and so may the content's
	// role and parts.
	candidate struct {
		FinishReason string `json:"finishReason"`
		Content      struct {
			Parts exchange.Array[answer] `json:"parts"`
		} `json:"content"`
	}
	// answer is a part of an answer. Of its thoughtSignature nothing is kept: it is
	// for replaying function calls, and none are made.
	answer struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought"`
	}
)

// parseReply reads a response. It is strict about what it needs and blind to the rest.
func parseReply(body []byte, _ provider.Request) (provider.Reply, error) {
	var r reply
	if err := exchange.Read(body, &r, "a generateContent response"); err != nil {
		return provider.Reply{}, err
	}
	if bad := exchange.ErrorIn(r.Error); bad != nil {
		return provider.Reply{}, bad
	}
	usage := provider.Usage{
		InputTokens:  int64(r.UsageMetadata.PromptTokenCount),
		OutputTokens: int64(r.UsageMetadata.CandidatesTokenCount + r.UsageMetadata.ThoughtsTokenCount),
	}
	if bad := r.unusable(); bad != nil {
		return provider.Reply{}, exchange.Counted(bad, usage)
	}
	return provider.Reply{Text: r.Candidates[0].text(), Model: r.ModelVersion, Usage: usage}, nil
}

// unusable says why a response holds no answer, or is nil.
func (r *reply) unusable() *fault.Fault {
	if reason := r.PromptFeedback.BlockReason; reason != "" && reason != "BLOCK_REASON_UNSPECIFIED" {
		return exchange.Refused("the provider's filter withheld the prompt or the image from the model")
	}
	if len(r.Candidates) == 0 {
		return exchange.Failed("Empty", true, "the provider's reply holds no candidate")
	}
	c := r.Candidates[0]
	switch {
	case cutOff[c.FinishReason]:
		return exchange.Truncated()
	case withheld[c.FinishReason] || strings.HasPrefix(c.FinishReason, "IMAGE_"):
		return exchange.Refused("the provider's filter withheld the model's reply")
	case c.text() == "":
		return exchange.Empty()
	}
	return nil
}

// cutOff are the finish reasons of an answer that is not whole. One that was cut
// off while the model still thought has no parts at all.
var cutOff = map[string]bool{"MAX_TOKENS": true, "CONTINUATION": true}

// withheld are the finish reasons of an answer that a filter stopped, beside
// those that begin with IMAGE_. What begins with neither is judged by its text.
var withheld = map[string]bool{
	"SAFETY": true, "RECITATION": true, "LANGUAGE": true, "BLOCKLIST": true, "PROHIBITED_CONTENT": true, "SPII": true,
}

// text joins the answer's parts without anything between, as the vendor's SDKs
// do: a long text comes in parts that end anywhere.
func (c candidate) text() string {
	var b strings.Builder
	for _, part := range c.Content.Parts {
		if !part.Thought {
			b.WriteString(part.Text)
		}
	}
	return strings.TrimSpace(b.String())
}
