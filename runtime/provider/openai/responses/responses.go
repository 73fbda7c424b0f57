// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package responses speaks the OpenAI Responses protocol, which OpenAI, Azure
// OpenAI, xAI, OpenRouter, vLLM, Ollama and others serve. It turns one look at
// one image into one POST, of which the server keeps nothing, and the reply
// into text; the one thing that it asks again is a question whose text.format
// the server refused, without it.
//
// Source of the shapes: the OpenAI API reference, "Create a model response".
package responses

import (
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/models"
)

// New returns a client for an endpoint.
func New(at exchange.Endpoint) *exchange.Client {
	return exchange.NewClient(at, exchange.Protocol{
		Path:   func(string) string { return "/responses" },
		Encode: encode,
		// Servers name it, or text.format, when they refuse.
		Format: func(provider.Request) string { return "text" },
		Parse:  parseReply,
		List:   models.List,
	})
}
