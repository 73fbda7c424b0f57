// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

// The wire's shapes. Field order is the order of the bytes.
type (
	request struct {
		SystemInstruction *content         `json:"systemInstruction,omitempty"`
		Contents          []content        `json:"contents"`
		GenerationConfig  generationConfig `json:"generationConfig,omitzero"`
	}
	content struct {
		Role  string `json:"role,omitempty"`
		Parts []part `json:"parts"`
	}
	// part is a textPart or an imagePart.
	part     any
	textPart struct {
		Text string `json:"text"`
	}
	imagePart struct {
		InlineData inlineData `json:"inlineData"`
	}
	inlineData struct {
		MIMEType string `json:"mimeType"`
		Data     string `json:"data"`
	}
	generationConfig struct {
		MaxOutputTokens    int64           `json:"maxOutputTokens,omitempty"`
		ResponseMIMEType   string          `json:"responseMimeType,omitempty"`
		ResponseSchema     json.RawMessage `json:"responseSchema,omitempty"`
		ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
	}
)

// encoder lays requests out; it keeps the schema that it lowered last.
type encoder struct{ schemas exchange.Lowered }

// encode lays a request out: the text before the image.
func (e *encoder) encode(req provider.Request) (*exchange.Body, error) {
	slot := inlineData{MIMEType: req.Image.MediaType}
	return e.encodeParts(req, slot, []part{textPart{req.Prompt}, imagePart{slot}})
}

// encodeParts lays a request out with the parts in the order given. One of them
// holds slot, where the image goes.
func (e *encoder) encodeParts(req provider.Request, slot inlineData, parts []part) (*exchange.Body, error) {
	out := request{Contents: []content{{Role: "user", Parts: parts}}}
	if req.Instructions != "" {
		out.SystemInstruction = &content{Parts: []part{textPart{req.Instructions}}}
	}
	out.GenerationConfig.MaxOutputTokens = max(req.MaxOutputTokens, 0)
	if req.Schema != nil {
		if err := e.structure(&out.GenerationConfig, req); err != nil {
			return nil, err
		}
	}
	return exchange.Encode(out, slot, req.Image.Data)
}

// structure adds what asks for structured output. A server takes one of the two
// forms of schema, and refuses both together.
func (e *encoder) structure(g *generationConfig, req provider.Request) error {
	to := versionOf(req.Model).dialect()
	schema, err := e.schemas.Lower(req.Schema.JSON, to)
	if err != nil {
		return err
	}
	g.ResponseMIMEType = "application/json"
	if to == lower.GeminiJSONSchema {
		g.ResponseJSONSchema = schema
	} else {
		g.ResponseSchema = schema
	}
	return nil
}
