// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat speaks the OpenAI Chat Completions protocol, which OpenAI,
// Azure OpenAI, vLLM, Ollama and many others serve. It turns one look at one
// image into one POST and the reply into text; the one thing that it asks again
// is a question whose response_format the server refused, without it.
//
// Source of the shapes: the OpenAI API reference, "Create chat completion".
package chat

import (
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/models"
)

// New returns a client for an endpoint.
func New(at exchange.Endpoint) *exchange.Client {
	limit := limitFieldOf(at)
	return exchange.NewClient(at, exchange.Protocol{
		Path:   func(string) string { return "/chat/completions" },
		Encode: func(req provider.Request) (*exchange.Body, error) { return encode(req, limit) },
		Format: func(provider.Request) string { return "response_format" },
		Parse:  parseReply,
		List:   models.List,
	})
}

// limitField is the name of the field that caps a reply.
type limitField string

const (
	maxCompletionTokens limitField = "max_completion_tokens"
	maxTokens           limitField = "max_tokens"
)

// limitFieldOf chooses by the host. OpenAI and Azure OpenAI deprecate
// max_tokens, and their reasoning models refuse it; servers that imitate them
// all know max_tokens, while some ignore or refuse max_completion_tokens.
func limitFieldOf(at exchange.Endpoint) limitField {
	if at.HostIn("openai.com", "openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com") {
		return maxCompletionTokens
	}
	return maxTokens
}
