// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"encoding/json"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// response is what is read of a reply.
type response struct {
	Status            string `json:"status"`
	Model             string `json:"model"`
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output exchange.Array[item] `json:"output"`
	Usage  struct {
		InputTokens  exchange.Count `json:"input_tokens"`
		OutputTokens exchange.Count `json:"output_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// item is one thing that a model put out: a message, or what it thought or did
// on the way, which is not read.
type item struct {
	texts   []string
	refused bool
}

// UnmarshalJSON reads messages and is blind to other items, whose members are
// of other shapes, and to messages that only comment on the way.
func (i *item) UnmarshalJSON(data []byte) error {
	var of struct {
		Type  string `json:"type"`
		Phase string `json:"phase"`
	}
	if err := json.Unmarshal(data, &of); err != nil || of.Type != "message" || of.Phase == "commentary" {
		return err
	}
	var message struct {
		Content exchange.Array[struct {
			Type string          `json:"type"`
			Text json.RawMessage `json:"text"`
		}] `json:"content"`
	}
	if err := json.Unmarshal(data, &message); err != nil {
		return err
	}
	for _, part := range message.Content {
		switch part.Type {
		case "output_text":
			var text string
			if err := json.Unmarshal(part.Text, &text); len(part.Text) > 0 && err != nil {
				return err
			}
			i.texts = append(i.texts, text)
		case "refusal":
			i.refused = true
		}
	}
	return nil
}

// parseReply reads a response. It is strict about what it needs and blind to the rest.
func parseReply(body []byte, _ provider.Request) (provider.Reply, error) {
	var r response
	if err := exchange.Read(body, &r, "a response"); err != nil {
		return provider.Reply{}, err
	}
	if bad := exchange.ErrorIn(r.Error); bad != nil {
		return provider.Reply{}, bad
	}
	usage := provider.Usage{InputTokens: int64(r.Usage.InputTokens), OutputTokens: int64(r.Usage.OutputTokens)}
	var texts []string
	refused := false
	for _, i := range r.Output {
		texts = append(texts, i.texts...)
		refused = refused || i.refused
	}
	text := exchange.Join(texts)
	reason := r.IncompleteDetails.Reason
	switch {
	case reason == "content_filter":
		return provider.Reply{}, exchange.Counted(exchange.Refused("the provider's content filter withheld the reply"), usage)
	case refused:
		return provider.Reply{}, exchange.Counted(exchange.Refused("the model refused to look at the image for this prompt"), usage)
	case reason == "max_output_tokens":
		return provider.Reply{}, exchange.Counted(exchange.Truncated(), usage)
	case r.Status != "" && r.Status != "completed":
		return provider.Reply{}, unfinished(r.Status)
	case text == "":
		return provider.Reply{}, exchange.Counted(exchange.Empty(), usage)
	}
	return provider.Reply{Text: text, Model: r.Model, Usage: usage}, nil
}

// unfinished is a response that ended, or was handed out, before it was whole,
// and does not say why.
func unfinished(status string) error {
	switch status {
	case "failed", "cancelled", "incomplete":
	default: // in_progress and queued, which only a request in the background gets, and what is not known
		status = "unfinished"
	}
	return exchange.Failed("UpstreamStatus", true, "the provider's response is %s, and does not say why", status)
}
