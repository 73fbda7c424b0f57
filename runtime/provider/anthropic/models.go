// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

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

// list asks an endpoint which models it serves.
func list(ctx context.Context, at exchange.Endpoint) ([]provider.Listed, error) {
	return exchange.Pages(ctx, at, header, "/models?limit=1000", "after_id", func(p page) ([]provider.Listed, string) {
		if !p.HasMore {
			p.LastID = ""
		}
		return p.listed(), p.LastID
	})
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
