// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"net/url"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// maxPages bounds how many pages of models are asked for, of 1000 models each.
const maxPages = 5

// page is a page of the list of models.
type page struct {
	Data    exchange.Array[model] `json:"data"`
	HasMore bool                  `json:"has_more"`
	LastID  string                `json:"last_id"`
}

type model struct {
	ID             string         `json:"id"`
	MaxInputTokens exchange.Count `json:"max_input_tokens"`
	MaxTokens      exchange.Count `json:"max_tokens"`
	Capabilities   struct {
		ImageInput struct {
			Supported *bool `json:"supported"`
		} `json:"image_input"`
	} `json:"capabilities"`
}

// List asks the endpoint which models it serves. It reads maxPages pages at
// most. Errors are *fault.Fault.
func (c *Client) List(ctx context.Context) ([]provider.Listed, error) {
	var models []provider.Listed
	query, last := "?limit=1000", ""
	for range maxPages {
		body, err := exchange.Get(ctx, c.at.Client, c.url("/models"+query), header())
		if err != nil {
			return nil, err
		}
		p, err := parsePage(body)
		if err != nil {
			return nil, err
		}
		if last != "" && p.LastID == last {
			break // a server that knows no pages sends its first again
		}
		models = append(models, p.listed()...)
		if !p.HasMore || p.LastID == "" {
			break
		}
		last = p.LastID
		query = "?limit=1000&after_id=" + url.QueryEscape(last)
	}
	return models, nil
}

func parsePage(body []byte) (page, error) {
	var p page
	if err := exchange.Read(body, &p, "a list of models"); err != nil {
		return page{}, err
	}
	return p, nil
}

// listed are the page's models.
func (p page) listed() []provider.Listed {
	var out []provider.Listed
	for _, m := range p.Data {
		if m.ID == "" {
			continue
		}
		out = append(out, provider.Listed{
			Name: m.ID, ImageInput: m.imageInput(),
			ContextWindowTokens: int64(m.MaxInputTokens), MaxOutputTokens: int64(m.MaxTokens),
		})
	}
	return out
}

// imageInput is Unknown when the list does not tell, as that of an imitation.
func (m model) imageInput() provider.Answer {
	switch supported := m.Capabilities.ImageInput.Supported; {
	case supported == nil:
		return provider.Unknown
	case *supported:
		return provider.Yes
	}
	return provider.No
}
