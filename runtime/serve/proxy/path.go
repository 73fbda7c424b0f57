// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
)

// Operation is what a path is for.
type Operation string

// The operations. Unknown is a path of none of them.
const (
	Unknown    Operation = "unknown"
	Generating Operation = "generate"
	Counting   Operation = "count"
	Listing    Operation = "models"
	Describing Operation = "model"
	Passing    Operation = "passthrough"
)

// method is the method that an operation takes; "" for what has none of its own.
func (o Operation) method() string {
	switch o {
	case Generating, Counting:
		return http.MethodPost
	case Listing, Describing:
		return http.MethodGet
	}
	return ""
}

// call is what a path asks for.
type call struct {
	dialect   message.Dialect
	operation Operation
	// model is the one that the path names, unescaped; "" when it names none.
	model string
	// verb is what Gemini asks a model for, such as "generateContent".
	verb string
	// tail is the path below the upstream's base URL, as the client escaped it, with
	// a slash before it. It is "" for a path that is sent nowhere.
	tail string
	// plain is the whole path, unescaped, as the policy's rules name it.
	plain string
}

// fixed are the paths without a model's name.
var fixed = map[string]call{
	"/openai/v1/chat/completions":         {dialect: message.OpenAIChat, operation: Generating},
	"/openai/v1/responses":                {dialect: message.OpenAIResponses, operation: Generating},
	"/openai/v1/responses/input_tokens":   {dialect: message.OpenAIResponses, operation: Counting},
	"/openai/v1/models":                   {dialect: message.OpenAIChat, operation: Listing},
	"/anthropic/v1/messages":              {dialect: message.AnthropicMessages, operation: Generating},
	"/anthropic/v1/messages/count_tokens": {dialect: message.AnthropicMessages, operation: Counting},
	"/anthropic/v1/models":                {dialect: message.AnthropicMessages, operation: Listing},
	"/gemini/v1beta/models":               {dialect: message.GeminiContents, operation: Listing},
}

// verbs are what Gemini's paths may ask a model for.
var verbs = map[string]Operation{"generateContent": Generating, "streamGenerateContent": Generating, "countTokens": Counting}

// models is the collection of the paths that name a model.
const models = "models/"

// parse reads a path, as the client escaped it. Whatever it is given, the result
// has a dialect: that in which to refuse it.
func parse(path string) call {
	if c, ok := fixed[path]; ok {
		c.plain, c.tail = path, tailOf(path)
		return c
	}
	c := call{dialect: dialectOf(path), operation: Unknown, plain: path}
	plain, err := url.PathUnescape(path)
	if err != nil || strays(plain) || strings.ContainsAny(path, "?#") { // which end an address's path
		return c
	}
	c.plain, c.tail = plain, tailOf(path)
	rest := strings.TrimPrefix(c.tail, "/"+models)
	if len(rest) == len(c.tail) || rest == "" || rest[0] == ':' {
		return c
	}
	if c.dialect == message.GeminiContents {
		if at := strings.LastIndexByte(rest, ':'); at >= 0 {
			if operation, ok := verbs[rest[at+1:]]; ok {
				c.operation, c.verb, rest = operation, rest[at+1:], rest[:at]
			}
		}
	}
	if c.operation == Unknown {
		c.operation = Describing
	}
	c.model, _ = url.PathUnescape(rest) // part of what could be unescaped
	return c
}

// dialectOf is the dialect of a path by how it begins.
func dialectOf(path string) message.Dialect {
	for _, p := range prefixes {
		brand := p.root[:strings.IndexByte(p.root[1:], '/')+1]
		if rest, ok := strings.CutPrefix(path, brand); ok && (rest == "" || rest[0] == '/') {
			return p.dialect
		}
	}
	return message.OpenAIChat
}

// tailOf is what follows the version in a path, with the slash; "" for a path
// without.
func tailOf(path string) string {
	for _, p := range prefixes {
		if strings.HasPrefix(path, p.root) && len(path) > len(p.root) {
			return path[len(p.root)-1:]
		}
	}
	return ""
}

// strays reports whether a path could be read as another one by whom it is sent
// to: by its empty segments, by those that lead elsewhere, with parameters behind
// them too (RFC 3986 §3.3), by what may part segments for some, by what is no
// character of a path, or by any of these once it is unescaped again.
func strays(plain string) bool {
	if strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return true
	}
	for segment := range strings.SplitSeq(strings.TrimPrefix(plain, "/"), "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name == "" || name == "." || name == ".." {
			return true
		}
	}
	again, err := url.PathUnescape(plain)
	return err == nil && again != plain && strays(again)
}

// unknownVerb says that the path of a Gemini model ends in what may be a verb that
// the proxy does not know. To GET, it is part of the name.
func (c *call) unknownVerb() bool {
	return c.dialect == message.GeminiContents && c.operation == Describing && strings.LastIndexByte(c.model, ':') > 0
}

// address is where a call goes, but for the query: below the target's base URL,
// Gemini's model under the upstream's name.
func (c *call) address(to *engine.Target) string {
	at := exchange.Endpoint{BaseURL: to.Endpoint.BaseURL, APIVersion: to.Endpoint.APIVersion}
	if c.dialect == message.AnthropicMessages {
		at.BaseURL = anthropic.Base(at.BaseURL)
	}
	if c.verb != "" && c.model != to.Model {
		return at.URL(gemini.Resource(to.Model) + ":" + c.verb)
	}
	return at.URL(c.tail)
}
