// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"encoding/json"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// The wire's shapes. Field order is the order of the bytes.
type (
	request struct {
		Model               string          `json:"model"`
		Messages            []message       `json:"messages"`
		MaxTokens           int64           `json:"max_tokens,omitempty"`
		MaxCompletionTokens int64           `json:"max_completion_tokens,omitempty"`
		ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	}
	message struct {
		Role    string `json:"role"`
		Content any    `json:"content"` // a string, or []part
	}
	part struct {
		Type     string    `json:"type"`
		Text     string    `json:"text,omitempty"`
		ImageURL *imageURL `json:"image_url,omitempty"`
	}
	imageURL struct {
		URL string `json:"url"`
	}
	responseFormat struct {
		Type       string     `json:"type"`
		JSONSchema jsonSchema `json:"json_schema"`
	}
	jsonSchema struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	}
)

// encode lays a request out. The text comes before the image, and a schema after both.
func encode(req provider.Request, limit limitField) (*exchange.Body, error) {
	var out request
	out.Model = req.Model
	if req.Instructions != "" {
		out.Messages = append(out.Messages, message{Role: "system", Content: req.Instructions})
	}
	slot := imageURL{URL: "data:" + req.Image.MediaType + ";base64,"}
	out.Messages = append(out.Messages, message{Role: "user", Content: []part{
		{Type: "text", Text: req.Prompt},
		{Type: "image_url", ImageURL: &slot},
	}})
	if limit == maxCompletionTokens {
		out.MaxCompletionTokens = req.MaxOutputTokens
	} else {
		out.MaxTokens = req.MaxOutputTokens
	}
	if req.Schema != nil {
		out.ResponseFormat = &responseFormat{Type: "json_schema", JSONSchema: jsonSchema{
			Name: req.Schema.Name, Strict: true, Schema: req.Schema.JSON,
		}}
	}
	return exchange.Encode(out, slot, req.Image.Data)
}
