// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/provider"
)

// Protocol is what one wire protocol has of its own. Its functions are called
// by many at once.
type Protocol struct {
	// Header goes with every call; nil for none.
	Header http.Header
	// Path is where a model is asked, below the endpoint's base URL.
	Path func(model string) string
	// Encode lays a request out.
	Encode func(provider.Request) (*Body, error)
	// Format is the member of the request that asks for structured output; see RefusesFormat.
	Format func(provider.Request) string
	// Parse reads the reply to a request. Its errors are *fault.Fault.
	Parse func(reply []byte, to provider.Request) (provider.Reply, error)
	// List asks an endpoint for its models; see provider.Lister.
	List func(context.Context, Endpoint) ([]provider.Listed, error)
}

// Client speaks a protocol with one endpoint. It asks nothing twice but a
// question whose structured output the server refused; see Memory.
type Client struct {
	at     Endpoint
	speaks Protocol
	format Memory
}

var (
	_ provider.Observer = (*Client)(nil)
	_ provider.Sizer    = (*Client)(nil)
	_ provider.Lister   = (*Client)(nil)
)

// NewClient returns a Client for an endpoint. Every function of p must be set.
func NewClient(at Endpoint, p Protocol) *Client { return &Client{at: at, speaks: p} }

// Observe sends the request and returns the model's text. Errors are *fault.Fault.
func (c *Client) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	return c.format.Ask(ctx, req, c.speaks.Format(req), c.observe)
}

func (c *Client) observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	body, err := c.speaks.Encode(req)
	if err != nil {
		return provider.Reply{}, Unwritable(err)
	}
	post := Post{Client: c.at.Client, URL: c.at.URL(c.speaks.Path(req.Model)), Header: c.speaks.Header, Body: body, BeforeLarge: req.BeforeLarge}
	reply, err := post.Do(ctx)
	if err != nil {
		return provider.Reply{}, err
	}
	return c.speaks.Parse(reply, req)
}

// RequestBytes is the exact length of the body that Observe would send first, 0
// for a request that cannot be laid out.
func (c *Client) RequestBytes(req provider.Request) int64 {
	body, err := c.speaks.Encode(c.format.Shape(req))
	if err != nil {
		return 0
	}
	return body.Size()
}

// List asks the endpoint which models it serves. Errors are *fault.Fault.
func (c *Client) List(ctx context.Context) ([]provider.Listed, error) {
	return c.speaks.List(ctx, c.at)
}
