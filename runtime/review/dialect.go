// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"net/url"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
)

// Target is where a model request goes, as far as the request line tells.
type Target struct {
	Dialect message.Dialect
	// Model is the path's; "" where it names none.
	Model string
	// Bodied says that the method carries a model request.
	Bodied bool
}

// Target reads what surrounds the body. The error is a *fault.Fault.
func (r *Request) Target() (Target, error) {
	if f := r.unanswerable(); f != nil {
		return Target{}, f
	}
	t, known := Target{}, false
	t.Dialect, t.Model = FromPath(r.Path)
	if r.Dialect != "" {
		t.Dialect = r.Dialect
	}
	switch {
	case r.Dialect != "" && !slices.Contains(message.Dialects(), r.Dialect):
		return Target{}, malformed("dialect", string(message.UnknownDialect), "there is no dialect %q", clip(string(r.Dialect))).With("dialects", message.Dialects())
	case t.Dialect == "" && r.Path == "":
		return Target{}, noDialect("neither a dialect nor a path is given")
	case t.Dialect == "":
		return Target{}, noDialect("the path is none of a dialect's, and no dialect is given")
	}
	if t.Bodied, known = methods[strings.ToUpper(r.Method)]; !known {
		return Target{}, malformed("method", "MethodUnknown", "a model request is a POST, not a %q", clip(r.Method))
	}
	return t, nil
}

// unanswerable refuses what no verdict could be given in; nil otherwise.
func (r *Request) unanswerable() *fault.Fault {
	switch r.Operation {
	case Preflight, Inject, "":
	default:
		return malformed("operation", "OperationUnknown", "there is no operation %q; there are Preflight and Inject", clip(string(r.Operation)))
	}
	if len(r.PatchTypes) > 0 && r.patchType() == "" {
		if r.Operation == Inject {
			return malformed("patchTypes", "PatchTypeUnsupported", "the operation Inject is answered with ByteRanges, which is none of the patch types")
		}
		return malformed("patchTypes", "PatchTypeUnknown", "none of the patch types is known; there are JSONPatch and ByteRanges")
	}
	if r.Operation == Inject && r.DryRun {
		return malformed("dryRun", "DryRunUnsupported", "the operation Inject keeps what it shows, for later requests of the conversation, and has no dry run").
			Hint("Ask for the operation Preflight, or leave dryRun out.")
	}
	return nil
}

// methods say whether a request has a body to look at.
var methods = map[string]bool{"POST": true, "": true, "GET": false, "HEAD": false, "OPTIONS": false, "DELETE": false}

func noDialect(why string) *fault.Fault {
	return malformed("dialect", string(message.UnknownDialect), "%s", why).With("dialects", message.Dialects()).
		Hint("Give the dialect, or the path of the model request.")
}

// endings are the paths of the dialects; anything may stand before them.
var endings = []struct {
	path    string
	dialect message.Dialect
}{
	{"/chat/completions", message.OpenAIChat},
	{"/responses", message.OpenAIResponses},
	{"/v1/messages", message.AnthropicMessages},
	{"/v1/messages/count_tokens", message.AnthropicMessages},
}

// FromPath is the dialect that is spoken at a path, and the model that the path
// names; each "" where the path does not tell. A query is ignored, and anything
// may stand before what the vendors publish: /v1/chat/completions,
// /v1/responses, /v1/messages, /v1beta/models/{model}:generateContent and
// :streamGenerateContent. Azure's /deployments/{model}/… names a model too.
func FromPath(path string) (message.Dialect, string) {
	path, _, _ = strings.Cut(path, "?")
	path = "/" + strings.Trim(path, "/")
	for _, e := range endings {
		if before, ok := strings.CutSuffix(path, e.path); ok {
			return e.dialect, lastAfter(before, "/deployments/")
		}
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	for _, method := range []string{":generateContent", ":streamGenerateContent", "%3AgenerateContent", "%3AstreamGenerateContent"} {
		if model, ok := strings.CutSuffix(last, method); ok && model != "" {
			return message.GeminiContents, unescaped(model)
		}
	}
	return "", ""
}

// lastAfter is the one segment that follows a mark at a path's end.
func lastAfter(path, mark string) string {
	at := strings.LastIndex(path, mark)
	if at < 0 || strings.Contains(path[at+len(mark):], "/") {
		return ""
	}
	return unescaped(path[at+len(mark):])
}

// unescaped is a segment of a path as it was meant.
func unescaped(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}

// clip bounds a caller's text in a message.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
