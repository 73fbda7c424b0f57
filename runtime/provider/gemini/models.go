// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// maxPages bounds how many pages of models are asked for, of 1000 models each.
const maxPages = 5

// page is a page of the list of models.
type page struct {
	Models        exchange.Array[model] `json:"models"`
	NextPageToken string                `json:"nextPageToken"`
}

type model struct {
	Name                       string         `json:"name"`
	InputTokenLimit            exchange.Count `json:"inputTokenLimit"`
	OutputTokenLimit           exchange.Count `json:"outputTokenLimit"`
	SupportedGenerationMethods []string       `json:"supportedGenerationMethods"`
}

// List asks the endpoint which models it serves, and keeps those that generate
// content. Whether they take images the API does not tell. It reads maxPages
// pages at most. Errors are *fault.Fault.
func (c *Client) List(ctx context.Context) ([]provider.Listed, error) {
	var models []provider.Listed
	query, last := "?pageSize=1000", ""
	for range maxPages {
		body, err := exchange.Get(ctx, c.at.Client, c.at.URL("/models"+query), nil)
		if err != nil {
			return nil, err
		}
		p, err := parsePage(body)
		if err != nil {
			return nil, err
		}
		if last != "" && p.NextPageToken == last {
			break // a server that knows no pages sends its first again
		}
		models = append(models, p.listed()...)
		if p.NextPageToken == "" {
			break
		}
		last = p.NextPageToken
		query = "?pageSize=1000&pageToken=" + url.QueryEscape(last)
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
