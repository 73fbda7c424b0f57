// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openai speaks the OpenAI Chat Completions protocol, which OpenAI,
// Azure OpenAI, vLLM, Ollama and many others serve. It turns one look at one
// image into one POST and the reply into text; it retries nothing.
//
// Source of the shapes: the OpenAI API reference, "Create chat completion".
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
)

// Client is a provider.Observer, and a provider.Sizer, for one endpoint.
type Client struct {
	url    string
	limit  limitField
	client *http.Client
}

var (
	_ provider.Observer = (*Client)(nil)
	_ provider.Sizer    = (*Client)(nil)
)

// New returns a Client for a base URL as it is declared, such as
// "https://api.openai.com/v1". The client brings deadline, credential, headers
// and limits; see transport.New.
func New(baseURL string, client *http.Client) *Client {
	base := strings.TrimRight(baseURL, "/")
	return &Client{url: base + "/chat/completions", limit: limitFieldOf(base), client: client}
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
func limitFieldOf(base string) limitField {
	u, err := url.Parse(base)
	if err != nil {
		return maxTokens
	}
	host := strings.ToLower(u.Hostname())
	for _, vendor := range []string{"openai.com", "openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"} {
		if host == vendor || strings.HasSuffix(host, "."+vendor) {
			return maxCompletionTokens
		}
	}
	return maxTokens
}

// Observe sends the request and returns the model's text. Errors are *fault.Fault.
func (c *Client) Observe(ctx context.Context, req provider.Request) (provider.Reply, error) {
	p, err := plan(req, c.limit)
	if err != nil {
		return provider.Reply{}, fault.New(fault.VisionObservationFailed, "Internal", "the request could not be written").Because(err)
	}
	httpReq, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, p.reader())
	if err != nil {
		return provider.Reply{}, fault.New(fault.VisionAdapterUnavailable, "EndpointInvalid", "the endpoint's URL is not usable").Because(err)
	}
	httpReq.ContentLength = p.size()
	httpReq.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(p.reader()), nil }
	httpReq.Header.Set("Content-Type", "application/json")
	httpReq.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(httpReq)
	if err != nil {
		return provider.Reply{}, callFault(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // the reply was read or given up
	if resp.StatusCode != http.StatusOK {
		return provider.Reply{}, statusFault(resp)
	}
	body, err := readReply(ctx, resp.Body, req.BeforeLarge)
	if err != nil {
		return provider.Reply{}, callFault(ctx, err)
	}
	return parseReply(body)
}

// readReply reads a reply whole, and asks beforeLarge in between when it is a large one.
func readReply(ctx context.Context, from io.Reader, beforeLarge func(context.Context) error) ([]byte, error) {
	var reply bytes.Buffer
	if _, err := reply.ReadFrom(io.LimitReader(from, provider.SmallReply)); err != nil {
		return nil, err
	}
	if reply.Len() == provider.SmallReply && beforeLarge != nil {
		if err := beforeLarge(ctx); err != nil {
			return nil, err
		}
	}
	_, err := reply.ReadFrom(from)
	return reply.Bytes(), err
}

// RequestBytes is the exact length of the body that Observe would send.
func (c *Client) RequestBytes(req provider.Request) int64 {
	p, err := plan(req, c.limit)
	if err != nil {
		return 0
	}
	return p.size()
}

// parseReply reads a completion. It is strict about what it needs and blind to the rest.
func parseReply(body []byte) (provider.Reply, error) {
	var c completion
	if err := json.Unmarshal(body, &c); err != nil {
		return provider.Reply{}, failed("InvalidResponse", false, "the provider's reply is not a chat completion").Because(errNotCompletion)
	}
	if c.Error != nil {
		return provider.Reply{}, failed("UpstreamStatus", false, "the provider answered with an error%s", c.Error.words())
	}
	if len(c.Choices) == 0 {
		return provider.Reply{}, failed("Empty", true, "the provider's reply holds no choice")
	}
	choice := c.Choices[0]
	text := choice.Message.Content.text()
	switch {
	case choice.FinishReason == "content_filter":
		return provider.Reply{}, failed("Refused", false, "the provider's content filter withheld the reply").
			Hint("Ask for something else; the same image and prompt will be refused again.")
	case choice.Message.Refusal != "":
		return provider.Reply{}, failed("Refused", false, "the model refused to look at the image for this prompt").
			Hint("Ask for something else; the same image and prompt will be refused again.")
	case choice.FinishReason == "length":
		return provider.Reply{}, failed("Truncated", false, "the model's reply was cut off at its output limit").
			Hint("Ask for less, or raise the model's maxOutputTokens.")
	case text == "":
		return provider.Reply{}, failed("Empty", true, "the model's reply holds no text")
	}
	return provider.Reply{Text: text, Model: c.Model, Usage: provider.Usage{
		InputTokens: c.Usage.PromptTokens, OutputTokens: c.Usage.CompletionTokens,
	}}, nil
}

// errNotCompletion stands for a decoder's error, whose text may repeat the reply.
var errNotCompletion = errors.New("reading chat completion: JSON does not match")

func failed(reason string, retryable bool, format string, args ...any) *fault.Fault {
	f := fault.New(fault.VisionObservationFailed, reason, format, args...)
	f.Retryable = retryable
	return f
}
