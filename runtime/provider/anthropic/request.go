// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

// The wire's shapes. Field order is the order of the bytes.
type (
	request struct {
		Model        string        `json:"model"`
		MaxTokens    int64         `json:"max_tokens"`
		System       string        `json:"system,omitempty"`
		Messages     []message     `json:"messages"`
		OutputConfig *outputConfig `json:"output_config,omitempty"`
		Tools        []tool        `json:"tools,omitempty"`
		ToolChoice   *toolChoice   `json:"tool_choice,omitempty"`
	}
	message struct {
		Role    string `json:"role"`
		Content []any  `json:"content"` // a textBlock, an imageBlock
	}
	textBlock struct {
		Type         string       `json:"type"`
		Text         string       `json:"text"`
		CacheControl cacheControl `json:"cache_control"`
	}
	imageBlock struct {
		Type   string `json:"type"`
		Source source `json:"source"`
	}
	cacheControl struct {
		Type string `json:"type"`
	}
	source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	outputConfig struct {
		Format format `json:"format"`
	}
	format struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
	}
	tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	toolChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
)

// structure is how a request asks for structured output.
type structure int

const (
	unstructured   structure = iota
	withFormat               // output_config.format
	withForcedTool           // a tool that the model must call, for older models
)

func structureOf(req provider.Request) structure {
	switch {
	case req.Schema == nil:
		return unstructured
	case generationOf(req.Model).formatsOutput():
		return withFormat
	}
	return withForcedTool
}

// member is the member of the request that a server refuses when it does not
// know the structure: the newest models refuse a forced tool, older ones a format.
func (s structure) member() string {
	if s == withForcedTool {
		return "tool_choice"
	}
	return "output_config"
}

// toolOf is the name of the tool whose input is the reply; "" for none.
func toolOf(req provider.Request) string {
	if structureOf(req) != withForcedTool {
		return ""
	}
	return "structured_response_" + req.Schema.Name
}

// encoder lays requests out; it keeps the schema that it lowered last.
type encoder struct{ schemas exchange.Lowered }

// encode lays a request out. The text comes before the image, and a schema after
// both. What is marked as worth caching is the text, never the image: the same
// image comes back only from our own cache.
func (e *encoder) encode(req provider.Request) (*exchange.Body, error) {
	slot := source{Type: "base64", MediaType: req.Image.MediaType}
	out := request{
		Model: req.Model, MaxTokens: req.MaxOutputTokens, System: req.Instructions,
		Messages: []message{{Role: "user", Content: []any{
			textBlock{Type: "text", Text: req.Prompt, CacheControl: cacheControl{Type: "ephemeral"}},
			imageBlock{Type: "image", Source: slot},
		}}},
	}
	if out.MaxTokens <= 0 {
		out.MaxTokens = generationOf(req.Model).outputTokens()
	}
	if req.Schema != nil {
		if err := e.structure(&out, req); err != nil {
			return nil, err
		}
	}
	return exchange.Encode(out, slot, req.Image.Data)
}

// structure adds what asks for structured output.
func (e *encoder) structure(r *request, req provider.Request) error {
	schema, err := e.schemas.Lower(req.Schema.JSON, lower.Anthropic)
	if err != nil {
		return err
	}
	if structureOf(req) == withFormat {
		r.OutputConfig = &outputConfig{Format: format{Type: "json_schema", Schema: schema}}
		return nil
	}
	name := toolOf(req)
	r.Tools = []tool{{Name: name, Description: "Takes the answer.", InputSchema: schema}}
	r.ToolChoice = &toolChoice{Type: "tool", Name: name}
	return nil
}
