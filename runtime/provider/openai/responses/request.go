// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"encoding/json"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// The wire's shapes. Field order is the order of the bytes.
type (
	request struct {
		Model           string      `json:"model"`
		Instructions    string      `json:"instructions,omitempty"`
		Input           []message   `json:"input"`
		Store           bool        `json:"store"` // always false, which is not the server's default
		MaxOutputTokens int64       `json:"max_output_tokens,omitempty"`
		Text            *textConfig `json:"text,omitempty"`
	}
	message struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content []any  `json:"content"` // an inputText and an inputImage
	}
	inputText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	inputImage struct {
		Type     string `json:"type"`
		Detail   string `json:"detail"`
		ImageURL string `json:"image_url"`
	}
	textConfig struct {
		Format format `json:"format"`
	}
	format struct {
		Type   string          `json:"type"`
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	}
)

// detailAuto is what leaving detail out means to OpenAI; vLLM refuses an image
// without it.
const detailAuto = "auto"

// encode lays a request out. The text comes before the image, and a schema after both.
func encode(req provider.Request) (*exchange.Body, error) {
	slot := inputImage{Type: "input_image", Detail: detailAuto, ImageURL: "data:" + req.Image.MediaType + ";base64,"}
	out := request{
		Model:        req.Model,
		Instructions: req.Instructions,
		Input: []message{{Type: "message", Role: "user", Content: []any{
			inputText{Type: "input_text", Text: req.Prompt}, slot,
		}}},
		MaxOutputTokens: req.MaxOutputTokens,
	}
	if req.Schema != nil {
		out.Text = &textConfig{Format: format{Type: "json_schema", Name: req.Schema.Name, Strict: true, Schema: req.Schema.JSON}}
	}
	return exchange.Encode(out, slot, req.Image.Data)
}
