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
	"net/url"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// New returns a client for an endpoint. Its base URL ends in the API's version,
// such as "https://generativelanguage.googleapis.com/v1beta".
func New(at exchange.Endpoint) *exchange.Client {
	var e encoder
	return exchange.NewClient(at, exchange.Protocol{
		Path:   func(model string) string { return Resource(model) + ":generateContent" },
		Encode: e.encode,
		Format: func(provider.Request) string { return "generationConfig" },
		Parse:  parseReply,
		List:   list,
	})
}

// collections are those that a model's name may begin with. A name without is in the first.
var collections = []string{"models/", "tunedModels/"}

// Resource is the path of a model below an endpoint's base URL: its collection,
// then the name as one segment, with the colon escaped that would else begin the
// method.
func Resource(model string) string {
	collection, name := collections[0], model
	for _, c := range collections {
		if rest, found := strings.CutPrefix(model, c); found {
			collection, name = c, rest
		}
	}
	return "/" + collection + strings.ReplaceAll(url.PathEscape(name), ":", "%3A")
}
