// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gemini speaks the Gemini API's generateContent, as Google's Gemini API
// and those who imitate it serve it. It turns one look at one image into one
// POST and the reply into text; the one thing that it asks again is a question
// whose structured output the server refused, without it.
//
// Source of the shapes: the Gemini API reference, "models.generateContent" and
// "models.list", and the vendor's Go SDK.
package gemini

import (
	"context"
	"net/url"
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

// New returns a Client for an endpoint. Its base URL ends in the API's version,
// such as "https://generativelanguage.googleapis.com/v1beta".
func New(at exchange.Endpoint) *Client { return &Client{at: at} }

// formatMember is the member of a request that asks for structured output.
const formatMember = "generationConfig"

// Observe sends the request and returns the model's text. Errors are *fault.Fault.
func (c *Client) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	return c.format.Ask(ctx, req, formatMember, c.observe)
}

func (c *Client) observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	body, err := encode(req)
	if err != nil {
		return provider.Reply{}, exchange.Unwritable(err)
	}
	address := c.at.URL(resource(req.Model) + ":generateContent")
	reply, err := exchange.Post{Client: c.at.Client, URL: address, Body: body, BeforeLarge: req.BeforeLarge}.Do(ctx)
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

// collections are those that a model's name may begin with. A name without is in the first.
var collections = []string{"models/", "tunedModels/"}

// resource is the path of a model: its collection, then the name as one segment,
// with the colon escaped that would else begin the method.
func resource(model string) string {
	collection, name := collections[0], model
	for _, c := range collections {
		if rest, found := strings.CutPrefix(model, c); found {
			collection, name = c, rest
		}
	}
	return "/" + collection + strings.ReplaceAll(url.PathEscape(name), ":", "%3A")
}
