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
	"context"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/models"
)

// Client is a provider.Observer, provider.Sizer and provider.Lister for one endpoint.
type Client struct {
	at     exchange.Endpoint
	format exchange.Memory
}

var (
	_ provider.Observer = (*Client)(nil)
	_ provider.Sizer    = (*Client)(nil)
	_ provider.Lister   = (*Client)(nil)
)

// New returns a Client for an endpoint.
func New(at exchange.Endpoint) *Client { return &Client{at: at} }

// formatMember is the member of a request that asks for structured output;
// servers name it, or text.format, when they refuse.
const formatMember = "text"

// Observe sends the request and returns the model's text. Errors are *fault.Fault.
func (c *Client) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	return c.format.Ask(ctx, req, formatMember, c.observe)
}

func (c *Client) observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	body, err := encode(req)
	if err != nil {
		return provider.Reply{}, exchange.Unwritable(err)
	}
	reply, err := exchange.Post{Client: c.at.Client, URL: c.at.URL("/responses"), Body: body, BeforeLarge: req.BeforeLarge}.Do(ctx)
	if err != nil {
		return provider.Reply{}, err
	}
	return parseReply(reply)
}

// RequestBytes is the exact length of the body that Observe would send first.
func (c *Client) RequestBytes(req provider.Request) int64 {
	body, err := encode(c.format.Shape(req))
	if err != nil {
		return 0
	}
	return body.Size()
}

// List asks the endpoint for its models; see models.List.
func (c *Client) List(ctx context.Context) ([]provider.Listed, error) { return models.List(ctx, c.at) }
