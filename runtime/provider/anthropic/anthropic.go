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
	"net/http"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// header goes with every call. The date names the protocol's first version: the
// one that every server knows, those that imitate it included. An endpoint's own
// headers may name a later one.
var header = http.Header{"Anthropic-Version": {"2023-06-01"}}

// version is the protocol's, and the first segment of its paths.
const version = "/v1"

// Base is the base URL of an endpoint with the protocol's version, which the
// declared one may or may not end in: "https://api.anthropic.com" and ".../v1"
// are the same.
func Base(declared string) string {
	base := strings.TrimRight(declared, "/")
	if strings.HasSuffix(base, version) {
		return base
	}
	return base + version
}

// New returns a client for an endpoint; see Base for its base URL.
func New(at exchange.Endpoint) *exchange.Client {
	at.BaseURL = Base(at.BaseURL)
	var e encoder
	return exchange.NewClient(at, exchange.Protocol{
		Header: header,
		Path:   func(string) string { return "/messages" },
		Encode: e.encode,
		Format: func(req provider.Request) string { return structureOf(req).member() },
		Parse:  parseReply,
		List:   list,
	})
}
