// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"context"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// page is a page of the list of models.
type page struct {
	Models        exchange.Array[model] `json:"models"`
	NextPageToken string                `json:"nextPageToken"`
}

type model struct {
	Name                       string                 `json:"name"`
	InputTokenLimit            exchange.Count         `json:"inputTokenLimit"`
	OutputTokenLimit           exchange.Count         `json:"outputTokenLimit"`
	SupportedGenerationMethods exchange.Array[string] `json:"supportedGenerationMethods"`
}

// list asks an endpoint which models it serves, and keeps those that generate
// content. Whether they take images the API does not tell.
func list(ctx context.Context, at exchange.Endpoint) ([]provider.Listed, error) {
	return exchange.Pages(ctx, at, nil, "/models?pageSize=1000", "pageToken", func(p page) ([]provider.Listed, string) {
		return p.listed(), p.NextPageToken
	})
}

// listed are the page's models that generate content.
func (p page) listed() []provider.Listed {
	var out []provider.Listed
	for _, m := range p.Models {
		name := strings.TrimPrefix(m.Name, collections[0])
		if name == "" || !slices.Contains(m.SupportedGenerationMethods, "generateContent") {
			continue
		}
		out = append(out, provider.Listed{
			Name: name, ContextWindowTokens: int64(m.InputTokenLimit), MaxOutputTokens: int64(m.OutputTokenLimit),
		})
	}
	return out
}
