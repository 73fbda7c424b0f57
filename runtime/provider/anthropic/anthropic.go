// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package anthropic speaks the Anthropic Messages protocol, which Anthropic,
// Azure AI Foundry, OpenRouter and others serve. It turns one look at one image
// into one POST and the reply into text; the one thing that it asks again is a
// question whose structured output the server refused, without it.
//
// Source of the shapes: the Anthropic API reference, "Create a Message" and
// "List Models", and the vendor's Go SDK.
package anthropic

import (
	"context"
	"net/http"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// Client is a provider.Observer, Sizer and Lister for one endpoint.
type Client struct {
	at     exchange.Endpoint
	format exchange.Memory
}

var (
	_ provider.Observer = (*Client)(nil)
	_ provider.Sizer    = (*Client)(nil)
	_ provider.Lister   = (*Client)(nil)
)

// New returns a Client for an endpoint. Its base URL may or may not end in the
// protocol's version: "https://api.anthropic.com" and ".../v1" are the same.
func New(at exchange.Endpoint) *Client { return &Client{at: at} }

// version is the protocol's, and the first segment of its paths.
const version = "/v1"

// url is the address of a path such as "/messages".
func (c *Client) url(path string) string {
	if strings.HasSuffix(strings.TrimRight(c.at.BaseURL, "/"), version) {
		return c.at.URL(path)
	}
	return c.at.URL(version + path)
}

// header goes with every call. The date names the protocol's only stable
// version; what came later needs none.
func header() http.Header { return http.Header{"Anthropic-Version": {"2023-06-01"}} }

// Observe sends the request and returns the model's text. Errors are *fault.Fault.
func (c *Client) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	return c.format.Ask(ctx, req, structureOf(req).member(), c.observe)
}

func (c *Client) observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	body, err := encode(req)
	if err != nil {
		return provider.Reply{}, exchange.Unwritable(err)
	}
	post := exchange.Post{Client: c.at.Client, URL: c.url("/messages"), Header: header(), Body: body, BeforeLarge: req.BeforeLarge}
	reply, err := post.Do(ctx)
	if err != nil {
		return provider.Reply{}, err
	}
	return parseReply(reply, toolOf(req))
}

// RequestBytes is the exact length of the body that Observe would send first.
func (c *Client) RequestBytes(req provider.Request) int64 {
	body, err := encode(c.format.Shape(req))
	if err != nil {
		return 0
	}
	return body.Size()
}
